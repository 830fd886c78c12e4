#include "store/redis/handshake.hpp"

#include <poll.h>
#include <algorithm>
#include <array>

#include "base/words.hpp"
#include "store/redis/errors.hpp"
#include "store/redis/scripts.hpp"

namespace holdfast::store::redis {

namespace {

std::string where(const redis_options& o) {
  if (o.locate && !o.primary_name.empty()) return "'" + o.primary_name + "'";
  return o.unix_path.empty() ? o.host + ":" + std::to_string(o.port) : o.unix_path;
}

failure no_redis(const redis_options& o, const failure& said) {
  failure f = said;
  f.what = "at " + where(o) + ": " + f.what;
  return f;
}

failure too_old(const redis_options& o, std::string_view version) {
  return {errc::unsupported, "the server at " + where(o) + " is Redis " + std::string(version) +
                                 "; holdfast needs 5.0 or later"};
}

bool anonymous(const redis_options& o) { return o.user.empty() && o.password.empty(); }

std::string greeting(const redis_options& o) {
  std::string bytes;
  const std::string_view user =
      o.user.empty() ? std::string_view("default") : std::string_view(o.user);
  if (anonymous(o)) {
    append_command(bytes, {"HELLO", "3", "SETNAME", "holdfast"});
  } else {
    append_command(bytes, {"HELLO", "3", "AUTH", user, o.password, "SETNAME", "holdfast"});
  }
  return bytes;
}

std::string old_greeting(const redis_options& o) {
  std::string bytes;
  if (anonymous(o)) {
    append_command(bytes, {"PING"});
  } else if (o.user.empty()) {
    append_command(bytes, {"AUTH", o.password});
  } else {
    append_command(bytes, {"AUTH", o.user, o.password});
  }
  return bytes;
}

bool does_not_know_hello(std::string_view error) {
  return error.starts_with("ERR unknown command") || error.starts_with("NOPROTO");
}

std::string preparation(const redis_options& o, purpose what_for, std::size_t& count) {
  std::string bytes;
  count = 0;
  if (o.commands_at) append_command(bytes, {"INFO", "server"}), ++count;
  if (o.database != 0) append_command(bytes, {"SELECT", std::to_string(o.database)}), ++count;
  if (what_for == purpose::commands) {
    for (const script& s : scripts_of(o.dialect, publication_in(o.topology))) {
      append_command(bytes, {"SCRIPT", "LOAD", s.text});
      ++count;
    }
    append_command(bytes, {"TIME"}), ++count;
  }
  // Also for the notifications: a server that is no longer the primary publishes nothing.
  if (o.topology == topology::sentinel) append_command(bytes, {"ROLE"}), ++count;
  return bytes;
}

status all_fine(const redis_options& o, const result<std::vector<resp_value>>& replies) {
  if (!replies) return no_redis(o, replies.error());
  for (const auto& r : *replies) {
    if (!r.is_error()) continue;
    failure f = server_says(r.text);
    if (r.text.find("DB index") != r.text.npos) {
      f = {errc::invalid_argument,
           "the server has no database " + std::to_string(o.database) + " ('" + r.text + "')"};
    }
    if (r.text.starts_with("ERR unknown command")) {
      f = {errc::unsupported,
           "the server answered '" + r.text.substr(0, r.text.find(',')) +
               "', which holdfast needs" +
               (o.topology == topology::single ? "; if it is a sentinel, write "
                                                 "redis+sentinel://host:26379/NAME"
                                               : "")};
    }
    return no_redis(o, f);
  }
  return done{};
}

// Servers, and programs that only look like one, repeat text that they do not understand:
// unchanged, with other quotes, or cut off. So of an answer to HELLO and AUTH only generally known
// text is shown.
constexpr std::string_view not_repeated = "(the rest is not shown: it may repeat the password)";

void hide_login(const redis_options& o, resp_value& answer) {
  if (anonymous(o) || !answer.is_error()) return;
  for (const std::string_view known :
       {std::string_view("ERR max number of clients reached"),
        std::string_view("ERR AUTH <password> called without any password configured"),
        std::string_view("ERR Client sent AUTH, but no password is set"),
        std::string_view("ERR unknown command"), std::string_view("NOAUTH"),
        std::string_view("WRONGPASS"), std::string_view("NOPERM"), std::string_view("DENIED"),
        std::string_view("LOADING"), std::string_view("BUSY"), std::string_view("MASTERDOWN"),
        std::string_view("NOPROTO"), std::string_view("ERR")}) {
    if (!answer.text.starts_with(known)) continue;
    answer.text = std::string(known) + ' ' + std::string(not_repeated);
    return;
  }
  answer.text = "an error " + std::string(not_repeated);
}

failure without_login(const redis_options& o, failure f) {
  if (anonymous(o) || f.outcome_unknown) return f;  // a network failure, in our own words
  f.what = "the server's answer to the login is not one of Redis; is it a Redis server? " +
           std::string(not_repeated);
  return f;
}

// Sentinels may be late, and a replaced primary may not know it yet.
status still_primary(const redis_options& o, const result<std::vector<resp_value>>& replies) {
  if (o.topology != topology::sentinel || !replies) return done{};
  const auto& role = replies->back().items;
  if (role.empty() || role.front().text == "master") return done{};
  return failure{errc::unavailable, "the sentinels name " + where(o) + " as the primary '" +
                                        o.primary_name + "', and it is a " + role.front().text +
                                        " by now; a failover is under way"};
}

/// The value of a `field:value` line of INFO.
std::string_view field(std::string_view info, std::string_view name) {
  const std::string key = "\n" + std::string(name) + ":";
  const auto at = info.find(key);
  if (at == info.npos) return {};
  info.remove_prefix(at + key.size());
  return info.substr(0, info.find_first_of("\r\n"));
}

// If the user has no right to INFO, the number is 0, and the connection for notifications does not
// follow to another server.
std::uint64_t process_in(const resp_value& info) {
  std::uint64_t number = 0;
  (void)base::parse_number(field(info.text, "run_id").substr(0, 16), number, 16);
  return number;
}

status refuse_or_warn(std::string_view info, const redis_options& o) {
  const auto version = field(info, "redis_version");
  if (!version.empty() && base::number_at_start(version, 0U) < 5) return too_old(o, version);
  const bool in_cluster = field(info, "cluster_enabled") == "1";
  if (in_cluster && o.topology != topology::cluster) {
    return failure{
        errc::unsupported,
        "the server at " + where(o) + " is a node of a cluster; write redis+cluster://" + where(o)};
  }
  if (!in_cluster && o.topology == topology::cluster) {
    return failure{errc::unsupported, "the server at " + where(o) +
                                          " is no node of a cluster; write redis://" + where(o)};
  }
  if (field(info, "role") == "slave" && o.topology == topology::single) {
    return failure{errc::read_only, "the server at " + where(o) +
                                        " is a replica; name its primary, " +
                                        std::string(field(info, "master_host")) + ":" +
                                        std::string(field(info, "master_port"))};
  }
  const auto policy = field(info, "maxmemory_policy");
  if (o.warn && !policy.empty() && policy != "noeviction") {
    o.warn("the server's maxmemory-policy is '" + std::string(policy) +
           "': when its memory is full it may drop locks that are held; set noeviction");
  }
  return done{};
}

}  // namespace

result<std::vector<resp_value>> exchange(connection& c, std::string_view commands,
                                         std::size_t replies, const patience& p) {
  const auto lost = [&](const std::string& why) { return failure{errc::unavailable, why, true}; };
  // Even if that failed: a server that closes the connection may have sent the reason before.
  (void)write_all(*c.wire, commands, p);
  std::vector<resp_value> all;
  std::array<char, 16 * 1024> buffer;
  while (true) {
    resp_value v;
    for (auto got = c.reader.next(v); got != resp_reader::progress::need_more;
         got = c.reader.next(v)) {
      if (got == resp_reader::progress::broken)
        return failure{errc::unavailable, c.reader.problem()};
      all.push_back(std::move(v));
      if (all.size() == replies) return all;
    }
    if (!c.wire->pending() && !wait_ready(c.wire->fd(), POLLIN, p))
      return lost("no answer in time: is the server stopped, or the network cut?");
    const auto r = c.wire->read(buffer, false);
    if (r.status == io::done) c.reader.put(std::string_view(buffer.data(), r.bytes));
    if (r.status == io::closed)
      return lost(
          "the server closed the connection without an answer; if it wants TLS there, "
          "write rediss:// instead of redis://");
    if (r.status == io::failed) return lost("the connection broke: " + c.wire->problem());
  }
}

namespace {

result<std::unique_ptr<connection>> greet_there(const redis_options& o, purpose what_for,
                                                const patience& p) {
  auto wire = connect(o, p);
  if (!wire) return std::move(wire.error());
  auto c = std::make_unique<connection>();
  c->wire = std::move(*wire);
  c->server.at = {o.host, o.port};
  c->server.since = boot_clock::now();
  auto hello = exchange(*c, greeting(o), 1, p);
  if (!hello) return no_redis(o, without_login(o, hello.error()));
  c->resp3 = !hello->front().is_error();
  if (!c->resp3 && does_not_know_hello(hello->front().text))
    hello = exchange(*c, old_greeting(o), 1, p);
  if (!hello) return no_redis(o, without_login(o, hello.error()));
  hide_login(o, hello->front());
  if (auto ok = all_fine(o, hello); !ok) return std::move(ok.error());
  std::size_t count = 0;
  const std::string rest = preparation(o, what_for, count);
  if (count == 0) return c;
  auto prepared = exchange(*c, rest, count, p);
  if (prepared && o.commands_at) {
    c->server.process = process_in(prepared->front());
    prepared->erase(prepared->begin());
  }
  if (auto ok = all_fine(o, prepared); !ok) return std::move(ok.error());
  if (auto ok = still_primary(o, prepared); !ok) return std::move(ok.error());
  for (const auto& r : *prepared) {
    const auto time = read_server_time(r);
    if (!time) continue;
    const auto here = boot_clock::now().time_since_epoch();
    c->ahead_us = *time - std::chrono::duration_cast<std::chrono::microseconds>(here).count();
  }
  return c;
}

result<std::unique_ptr<connection>> greet_at(const address& at, redis_options o, purpose what_for,
                                             const patience& p) {
  o.locate = nullptr;
  o.host = at.host;
  o.port = at.port;
  return greet_there(o, what_for, p);
}

}  // namespace

// A sentinel that is cut off from the others may name a server that is gone: then another one is
// asked.
result<std::unique_ptr<connection>> greet(const redis_options& o, purpose what_for, int wake_fd) {
  const patience p{boot_clock::now() + o.connect_timeout, wake_fd};
  if (!o.locate) return greet_there(o, what_for, p);
  std::vector<address> tried;
  std::size_t asked = 0;
  result<std::unique_ptr<connection>> made = failure{};
  do {
    auto found = o.locate(p.until, wake_fd);
    if (!found && tried.empty()) return std::move(found.error());
    if (!found) break;
    if (std::find(tried.begin(), tried.end(), *found) == tried.end()) {
      tried.push_back(*found);
      made = greet_at(*found, o, what_for, p);
    }
    if (made || made.error().code != errc::unavailable || !o.doubt) break;
    o.doubt();
  } while (++asked < o.seeds.size() && boot_clock::now() < p.until);
  return made;
}

status check_server(connection& c, const redis_options& o) {
  std::string bytes;
  append_command(bytes, {"INFO"});
  const auto info = exchange(c, bytes, 1, {boot_clock::now() + o.connect_timeout});
  if (!info) return no_redis(o, info.error());
  // A user without the right to INFO gets no warning.
  if (info->front().type != resp_type::bulk) return done{};
  return refuse_or_warn(info->front().text, o);
}

}  // namespace holdfast::store::redis
