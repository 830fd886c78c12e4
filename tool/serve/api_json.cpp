#include "tool/serve/api_json.hpp"

#include <nlohmann/json.hpp>

#include "tool/json.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using json = nlohmann::ordered_json;
using std::chrono::system_clock;

std::string text_of(const json& j) {
  return escaped_json(j.dump(-1, ' ', false, json::error_handler_t::replace)) + '\n';
}

void add_known(json& j, const char* key, const std::string& value) {
  if (!value.empty()) j[key] = value;
}

void add_who(json& j, const participant& p) {
  add_known(j, "owner", p.short_id);
  add_known(j, "host", p.host);
  if (p.pid != 0) j["pid"] = p.pid;
  add_known(j, "program", p.program);
  j["reason"] = p.reason;
  if (p.fence != 0) j["fence"] = std::to_string(p.fence);
}

json change_json(const hold_change& c) {
  json j{{"time", rfc3339(c.at)}, {"what", to_string(c.happened)}};
  add_who(j, c.who);
  if (c.waited_known) j["waited_seconds"] = seconds_of(c.length);
  if (c.held_known) j["held_seconds"] = seconds_of(c.length);
  return j;
}

json durations_json(const durations& d) {
  json j{{"count", d.count()}, {"sum_seconds", d.seconds()}, {"buckets", json::array()}};
  for (std::size_t i = 0; i < d.buckets().size(); ++i) {
    json bucket = json::object();
    if (i < durations::bounds.size()) bucket["up_to_seconds"] = durations::bounds[i];
    bucket["count"] = d.buckets()[i];
    j["buckets"].push_back(std::move(bucket));
  }
  return j;
}

}  // namespace

std::shared_ptr<const std::string> without_end(std::string document) {
  document.resize(document.rfind('}'));
  return std::make_shared<const std::string>(std::move(document));
}

std::string age_end(double seconds) { return ",\"age_seconds\":" + json(seconds).dump() + "}\n"; }

std::string hello_json(std::span<const std::string> stores, bool unlocks) {
  return text_of({{"schema", 1},
                  {"version", HOLDFAST_VERSION},
                  {"time", rfc3339(system_clock::now())},
                  {"stores", stores},
                  {"unlocks", unlocks}});
}

std::string health_json(std::size_t index, const std::string& store, const store_health& h,
                        system_clock::time_point now) {
  json j{{"schema", 1},
         {"store", index},
         {"url", store},
         {"time", rfc3339(now)},
         {"reachable", h.reachable},
         {"round_trip_seconds", std::chrono::duration<double>(h.round_trip).count()},
         {"commands", h.commands},
         {"errors", h.errors},
         {"allowed_share", h.allowed_share},
         {"used_share", h.used_share},
         {"round_seconds", seconds_of(h.round)}};
  add_known(j, "error", h.error);
  add_known(j, "note", h.note);
  if (is_known(h.changed_at)) j["since"] = rfc3339(h.changed_at);
  return text_of(j);
}

std::string lock_page_json(const std::string& store, const listed_name& lock,
                           const history::of_name& seen, system_clock::time_point now) {
  json j{{"schema", 1}, {"store", store}, {"time", rfc3339(now)}};
  j.update(json::parse(lock_json(lock, now)));
  j["changes"] = json::array();
  for (const auto& c : seen.changes) j["changes"].push_back(change_json(c));
  j["held"] = durations_json(seen.held);
  j["waited"] = durations_json(seen.waited);
  return text_of(j);
}

std::string busiest_json(const std::string& store,
                         std::span<const std::pair<std::string, std::uint64_t>> names) {
  json j{{"schema", 1}, {"store", store}, {"locks", json::array()}};
  for (const auto& [name, taken] : names) j["locks"].push_back({{"lock", name}, {"taken", taken}});
  return text_of(j);
}

}  // namespace holdfast::tool
