#include "store/redis/servers.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/words.hpp"
#include "store/redis/errors.hpp"

namespace holdfast::store::redis {

namespace {

/// 30 days: a program that takes locks less often than that has none to remember.
constexpr std::string_view mark_lasts_ms = "2592000000";

std::string line_of(const std::string& info, std::string_view begins) {
  const auto at = info.find(begins);
  if (at == info.npos) return {};
  const auto from = at + begins.size();
  return info.substr(from, info.find_first_of("\r\n", from) - from);
}

constexpr std::array<std::string_view, 13> telling{
    "redis_version",        "valkey_version", "redis_mode",       "role",
    "connected_slaves",     "maxmemory",      "maxmemory_policy", "evicted_keys",
    "aof_enabled",          "loading",        "rdb_saves",        "rdb_last_bgsave_status",
    "aof_last_write_status"};

void add_facts(store::facts& to, const std::string& server, const std::string& info) {
  for (const auto name : telling) {
    auto value = line_of(info, "\n" + std::string(name) + ":");
    if (!value.empty()) to.push_back({server, std::string(name), std::move(value)});
  }
}

}  // namespace

// A user without the right to INFO is not a failure: the missing right is one of the facts.
result<store::facts> servers::facts() {
  store::facts found;
  const auto anew = [&] { found = {}; };
  const auto ok = for_each(anew, [&](node& n) -> status {
    std::string bytes;
    append_command(bytes, {"INFO"});
    const auto answer = n.ask(bytes);
    if (!answer) return answer.error();
    const auto& at = n.options();
    const std::string server =
        at.unix_path.empty() ? at.host + ":" + std::to_string(at.port) : at.unix_path;
    const auto& info = answer->replies.front();
    if (info.is_error()) {
      found.push_back({server, "denied", "INFO"});
    } else {
      add_facts(found, server, info.text);
    }
    return done{};
  });
  if (!ok) return ok.error();
  return found;
}

// Only the run_id shows that a server was restarted and has lost what it did not save.
result<store::identity> servers::identify() {
  store::identity found;
  const auto anew = [&] { found = {}; };
  const auto ok = for_each(anew, [&](node& n) -> status {
    std::string bytes;
    append_command(bytes, {"INFO", "server"});
    const auto answer = n.ask(bytes);
    if (!answer) return answer.error();
    const auto& info = answer->replies.front();
    if (info.is_error()) return server_says(info.text);
    found.run_id += line_of(info.text, "run_id:");
    const auto& at = n.options();
    const std::string_view layout = at.dialect == dialect::none ? " ours " : " theirs ";
    found.part = std::to_string(at.database).append(layout) + at.key_prefix();
    // The difference of two whole seconds may be up to one second too long.
    const auto up = std::strtoll(line_of(info.text, "uptime_in_seconds:").c_str(), nullptr, 10) - 1;
    found.up_for = std::min(found.up_for.value_or(std::chrono::microseconds::max()),
                            std::chrono::microseconds(std::chrono::seconds(up)));
    return done{};
  });
  if (!ok) return ok.error();
  return found;
}

// A mark in the server has the time since when this server process has kept it. After a flush, or a
// restart without the data, there is no mark; after a failover it names another process. A session
// that uses the server for the first time cannot tell that from a flush.
result<std::optional<std::chrono::microseconds>> servers::remembers_for() {
  using std::chrono::microseconds;
  if (only_one() == nullptr) {
    auto who = identify();
    if (!who) return std::move(who.error());
    return who->up_for;
  }
  node& n = *only_one();
  const std::string key = n.options().prefix + ":remembers";
  std::string bytes;
  append_command(bytes, {"INFO", "server"});
  append_command(bytes, {"TIME"});
  append_command(bytes, {"GET", key});
  append_command(bytes, {"PEXPIRE", key, mark_lasts_ms});
  const auto answer = n.ask(bytes, 4);
  if (!answer) return answer.error();
  const auto& all = answer->replies;
  for (const auto& r : all) {
    if (r.is_error()) return server_says(r.text);
  }
  const auto process = line_of(all[0].text, "run_id:");
  const auto now = read_server_time(all[1]);
  if (process.empty() || !now) return strange_answer("INFO and TIME");
  std::string_view mark = all[2].text;
  const bool known = base::take_word(mark) == process;
  const auto since = base::number_at_start<std::int64_t>(mark, 0);
  if (known && since > 0)
    return std::optional(microseconds(std::max<std::int64_t>(*now - since, 0)));
  std::string set;
  append_command(set, {"SET", key, process + ' ' + std::to_string(*now), "PX", mark_lasts_ms});
  const auto written = n.ask(set);
  if (!written) return written.error();
  if (written->replies.front().is_error()) return server_says(written->replies.front().text);
  return std::optional(microseconds(0));
}

result<reply> judged(reply r, const request& of) {
  if (of.raw || !r.value.is_error()) return r;
  failure f = server_says(r.value.text);
  f.outcome_unknown = f.outcome_unknown || r.repeated;
  return f;
}

bool servers::post(const request& r, link::listener then) {
  if (try_post(r, then)) return true;
  auto got = ask(r);
  if (!got) return then(std::move(got.error())), false;
  link::answer one{{}, got->repeated};
  one.replies.push_back(std::move(got->value));
  return then(std::move(one)), false;
}

}  // namespace holdfast::store::redis
