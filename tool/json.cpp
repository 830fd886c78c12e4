#include "tool/json.hpp"

#include <nlohmann/json.hpp>

#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using json = nlohmann::ordered_json;

json document() { return {{"schema", 1}}; }

/// Text from a store may not be UTF-8, and must not make us fail.
std::string dumped(const json& j) {
  return escaped_json(j.dump(-1, ' ', false, json::error_handler_t::replace));
}
std::string line(const json& j) { return dumped(j) + '\n'; }

/// Unknown values are absent.
void add_text(json& j, const char* key, const std::string& value) {
  if (!value.empty()) j[key] = value;
}
void add_fence(json& j, const char* key, std::uint64_t fence) {
  if (fence != 0) j[key] = std::to_string(fence);
}

json participant_json(const participant& p, bool holds, wall_time now) {
  json j = json::object();
  add_text(j, "owner", p.short_id);
  add_text(j, "host", p.host);
  if (p.pid != 0) j["pid"] = p.pid;
  add_text(j, "program", p.program);
  j["reason"] = p.reason;
  j["weight"] = p.weight;
  if (holds) add_fence(j, "fence", p.fence);
  if (is_known(p.since)) {
    j["since"] = rfc3339(p.since);
    j[holds ? "held_seconds" : "waiting_seconds"] = seconds_of(now - p.since);
  }
  if (p.died) j["died"] = true;
  if (p.expires_in) {
    j["expires_in_seconds"] = seconds_of(*p.expires_in);
    j["expires_at"] = rfc3339(now + *p.expires_in);
  }
  return j;
}

void add_participants(json& j, const char* key, const std::vector<participant>& all, bool holds,
                      wall_time now) {
  j[key] = json::array();
  for (const auto& p : all) j[key].push_back(participant_json(p, holds, now));
}

void add_name(json& j, const name_info& info, wall_time now) {
  j["lock"] = info.name;
  j["kind"] = info.kind;
  j["capacity"] = info.capacity;
  j["remaining"] = info.remaining;
  add_fence(j, "last_fence", info.last_fence);
  add_participants(j, "holders", info.holders, true, now);
  add_participants(j, "waiters", info.waiters, false, now);
}

json buckets_json(std::span<const rate_bucket> all) {
  json list = json::array();
  for (const rate_bucket& b : all) {
    if (!b.error.empty()) {
      list.push_back({{"rule", b.rule}, {"key", b.key}, {"error", b.error}});
      continue;
    }
    list.push_back({{"rule", b.rule},
                    {"key", b.key},
                    {"limit", b.limit},
                    {"remaining", b.remaining},
                    {"tokens", b.tokens},
                    {"per_seconds", exact_seconds(b.per)},
                    {"full_in_seconds", exact_seconds(b.full_in)},
                    {"unchanged_seconds", exact_seconds(b.unchanged_for)}});
  }
  return list;
}

json listed_json(const listed_name& n, wall_time now) {
  json one = json::object();
  if (n.error.empty()) {
    add_name(one, n.info, now);
  } else {
    one["lock"] = n.info.name;
    one["error"] = n.error;
    one["not_permitted"] = n.not_permitted;
  }
  if (!n.buckets.empty()) one["buckets"] = buckets_json(n.buckets);
  return one;
}

json capabilities_json(const store::capabilities& can) {
  return {{"fences", can.fences},
          {"fair", can.fair},
          {"shared", can.shared},
          {"semaphore", can.semaphore},
          {"notices", can.notifications},  // the former name, kept while the schema is 1
          {"notifications", can.notifications},
          {"lists_waiters", can.lists_waiters},
          {"sees_death", can.sees_death},
          {"survives_failover", can.survives_failover},
          {"several_processes", can.several_processes}};
}

void add_held(json& j, const held_facts& f) {
  j["lock"] = f.lock;
  add_fence(j, "fence", f.fence);
  j["lease_seconds"] = seconds_of(f.lease);
  j["owner"] = f.owner;
  j["store"] = f.store;
}

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

}  // namespace

std::string hold_json(const held_facts& f, wall_time now) {
  json j = document();
  add_held(j, f);
  j["event"] = "acquired";
  j["waited_seconds"] = seconds_of(f.waited);
  j["time"] = rfc3339(now);
  return line(j);
}

std::string hold_end_json(std::string_view event, const held_facts& f, wall_time now) {
  json j = document();
  add_held(j, f);
  j["event"] = event;
  j["time"] = rfc3339(now);
  return line(j);
}

std::string try_json(const name_info& info, bool free, wall_time now) {
  json j = document();
  j["free"] = free;
  add_name(j, info, now);
  return line(j);
}

std::string lock_json(const listed_name& one, wall_time now) {
  return dumped(listed_json(one, now));
}

std::string json_text(std::string_view text) { return dumped(json(text)); }

std::string list_json(std::span<const listed_name> names, std::string_view store, wall_time now) {
  json j = document();
  j["store"] = store;
  j["time"] = rfc3339(now);
  j["locks"] = json::array();
  std::string text = line(j);
  // One by one: a hundred thousand names as JSON objects would be hundreds of megabytes.
  std::string all;
  for (const auto& n : names) all += (all.empty() ? "" : ",") + lock_json(n, now);
  return text.insert(text.rfind(']'), all);
}

std::string show_json(const name_info& info, std::span<const rate_bucket> buckets,
                      std::string_view store, const store::capabilities& can, wall_time now) {
  json j = document();
  j["store"] = store;
  j["time"] = rfc3339(now);
  add_name(j, info, now);
  if (info.kind == "rate_limiter") j["buckets"] = buckets_json(buckets);
  j["promises"] = capabilities_json(can);
  return line(j);
}

std::string force_unlock_json(std::string_view lock, std::string_view store, std::size_t removed,
                              std::size_t left, std::string_view reason, wall_time now) {
  json j = document();
  j["lock"] = lock;
  j["store"] = store;
  j["removed"] = removed;
  j["left"] = left;
  j["reason"] = reason;
  j["time"] = rfc3339(now);
  return line(j);
}

std::string limit_json(std::string_view name, std::string_view store, std::string_view outcome,
                       const rate_decision& d) {
  json j = document();
  j["name"] = name;
  j["store"] = store;
  j["outcome"] = outcome;
  j["wait_seconds"] = seconds_of(d.wait);
  j["rules"] = json::array();
  for (const auto& r : d.rules) {
    j["rules"].push_back({{"rule", r.rule},
                          {"limit", r.limit},
                          {"remaining", r.remaining},
                          {"wait_seconds", seconds_of(r.wait)},
                          {"reset_seconds", seconds_of(r.reset)}});
  }
  return line(j);
}

std::string meet_json(std::string_view name, std::string_view store, std::string_view outcome,
                      std::uint32_t count, std::optional<std::uint32_t> remaining) {
  json j = document();
  j["name"] = name;
  j["store"] = store;
  j["outcome"] = outcome;
  j["count"] = count;
  j["remaining"] = nullptr;
  if (remaining) j["remaining"] = *remaining;
  return line(j);
}

std::string leader_json(std::string_view name, const result<std::optional<leader>>& found) {
  json j = document();
  j["election"] = name;
  if (!found) {
    j["error"] = found.error().what;
    return line(j);
  }
  j["leader"] = nullptr;
  if (const auto& leads = *found) {
    json& l = j["leader"] = json::object();
    l["term"] = std::to_string(leads->term);
    l["note"] = leads->note;
    add_text(l, "host", leads->host);
    if (leads->pid != 0) l["pid"] = leads->pid;
    add_text(l, "program", leads->program);
    if (is_known(leads->since)) l["since"] = rfc3339(leads->since);
  }
  return line(j);
}

std::string watch_json(std::string_view lock, std::string_view store, const lock_event& e,
                       wall_time now) {
  using enum lock_event_kind;
  const bool waits = e.kind == joined || e.kind == left || e.kind == waiting;
  json j = document();
  j["event"] = to_string(e.kind);
  j["lock"] = lock;
  j["store"] = store;
  j["time"] = rfc3339(now);
  j["participant"] = participant_json(e.who, !waits, now);
  if (e.kind == handover) j["before"] = participant_json(e.before, true, now);
  return line(j);
}

std::string graph_json(const wait_graph& g, std::string_view store, wall_time now) {
  json j = document();
  j["store"] = store;
  j["time"] = rfc3339(now);
  j["processes"] = json::array();
  for (const graph_process& p : g.processes) {
    json one = json::object();
    add_text(one, "host", p.host);
    if (p.pid != 0) one["pid"] = p.pid;
    add_text(one, "program", p.program);
    add_text(one, "owner", p.id);
    j["processes"].push_back(std::move(one));
  }
  j["waits"] = json::array();
  for (const graph_wait& w : g.waits) {
    json one{{"from", w.from}, {"to", w.to}, {"must", w.must}, {"in_ring", w.in_ring}};
    add_text(one, "lock", w.name);
    if (is_known(w.since)) one["waiting_seconds"] = seconds_of(now - w.since);
    j["waits"].push_back(std::move(one));
  }
  j["waits_left_out"] = g.left_out;
  j["rings"] = g.rings;
  return line(j);
}

std::string serve_json(std::string_view url, std::string_view token) {
  json j = document();
  j["event"] = "listening";
  j["url"] = url;
  if (!token.empty()) j["token"] = token;
  return line(j);
}

std::string ping_json(std::string_view store, std::size_t number,
                      std::optional<std::chrono::nanoseconds> took, std::string_view error) {
  json j = document();
  j["store"] = store;
  j["number"] = number;
  j["seconds"] = took ? json(exact_seconds(*took)) : json();
  if (!error.empty()) j["error"] = error;
  return line(j);
}

std::string ping_summary_json(std::string_view store, const ping_summary& s) {
  json j = document();
  j["store"] = store;
  j["asked"] = s.asked;
  j["answered"] = s.answered;
  if (s.answered > 0) {
    j["least_seconds"] = exact_seconds(s.least);
    j["median_seconds"] = exact_seconds(s.median);
    j["median_of"] = s.median_of;
    j["mean_seconds"] = exact_seconds(s.mean);
    j["most_seconds"] = exact_seconds(s.most);
  }
  return line(j);
}

std::string doctor_json(std::string_view store, std::span<const finding> all, int exit_code,
                        wall_time now) {
  json j = document();
  j["store"] = store;
  j["time"] = rfc3339(now);
  j["exit_code"] = exit_code;
  j["findings"] = json::array();
  for (const auto& f : all) {
    json one = {{"level", to_string(f.level)}, {"topic", f.topic}, {"message", f.message}};
    add_text(one, "remedy", f.remedy);
    j["findings"].push_back(std::move(one));
  }
  return line(j);
}

std::string version_json(std::string_view version, std::span<const std::string> stores) {
  json j = document();
  j["version"] = version;
  j["stores"] = stores;
  j["compiler"] = __VERSION__;
  return line(j);
}

std::string status_json(const run_report& r) {
  json j = document();
  j["lock"] = r.lock;
  j["store"] = r.store;
  j["outcome"] = r.outcome;
  j["exit_code"] = r.exit_code;
  j["child_exit_code"] = or_null(r.child_exit_code);
  j["child_signal"] = or_null(r.child_signal);
  j["fence"] = r.fence ? json(std::to_string(*r.fence)) : json();
  j["owner"] = r.owner;
  j["lost"] = r.lost;
  j["killed"] = r.killed;
  j["waited_seconds"] = seconds_of(r.waited);
  j["held_seconds"] = seconds_of(r.held);
  j["began"] = rfc3339(r.began);
  j["ended"] = rfc3339(r.ended);
  j["message"] = r.message;
  return line(j);
}

}  // namespace holdfast::tool
