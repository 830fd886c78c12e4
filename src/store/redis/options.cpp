#include "store/redis/options.hpp"

#include <charconv>
#include <cstdlib>

#include "store/files/files.hpp"

namespace holdfast::store::redis {

namespace {

failure bad(std::string what) { return {errc::invalid_argument, std::move(what)}; }

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [after, wrong] = std::from_chars(text.data(), end, number);
  return wrong == std::errc{} && after == end;
}

// The path of a socket may hold an @ itself: what comes before it is a user only if it does not
// look like a path.
void take_credentials(std::string_view& rest, bool may_be_path, redis_options& o) {
  const auto at = rest.rfind('@');
  if (at == rest.npos || (may_be_path && rest.starts_with('/'))) return;
  const auto credentials = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  const auto colon = std::min(credentials.find(':'), credentials.size());
  o.user = credentials.substr(0, colon);
  if (colon == credentials.size()) return;
  o.password = credentials.substr(colon + 1);
  o.empty_password = o.password.empty();
}

status take_database(std::string_view& rest, redis_options& o) {
  const auto slash = rest.find('/');
  if (slash == rest.npos) return done{};
  const auto text = rest.substr(slash + 1);
  rest = rest.substr(0, slash);
  if (text.empty() || (parse_number(text, o.database) && o.database <= 1'000'000)) return done{};
  return bad("what is behind the / is not the number of a database; write redis://host:6379/0");
}

result<address> read_address(std::string_view rest, std::uint16_t usual_port) {
  address o{{}, usual_port};
  std::string_view port;
  if (rest.starts_with('[')) {
    const auto end = rest.find(']');
    if (end == rest.npos) return bad("an IPv6 address needs its closing ]");
    o.host = rest.substr(1, end - 1);
    port = rest.substr(end + 1);
    if (!port.empty() && port.front() != ':') return bad("after ] comes :port or nothing");
    if (!port.empty()) port.remove_prefix(1);
  } else {
    const auto colon = rest.rfind(':');
    if (colon != rest.npos) port = rest.substr(colon + 1);
    o.host = rest.substr(0, colon);
    if (o.host.find(':') != o.host.npos)
      return bad("an IPv6 address is written in brackets: [::1]:6379");
  }
  if (o.host.empty()) return bad("names no host; write for example redis://localhost:6379");
  if (port.empty() || (parse_number(port, o.port) && o.port != 0)) return o;
  return bad("what is behind the colon is not a port; ports go from 1 to 65535");
}

status take_host(std::string_view rest, redis_options& o) {
  auto found = read_address(rest, o.port);
  if (!found) return std::move(found.error());
  o.host = std::move(found->host);
  o.port = found->port;
  return done{};
}

status take_seeds(std::string_view rest, redis_options& o) {
  const std::uint16_t usual_port = o.topology == topology::sentinel ? 26379 : 6379;
  while (true) {
    const auto comma = std::min(rest.find(','), rest.size());
    auto one = read_address(rest.substr(0, comma), usual_port);
    if (!one) return std::move(one.error());
    o.seeds.push_back(std::move(*one));
    if (comma == rest.size()) return done{};
    rest.remove_prefix(comma + 1);
  }
}

// After the hosts: the name of the primary, and perhaps the number of a database.
status take_primary_name(std::string_view& rest, redis_options& o) {
  const auto slash = std::min(rest.find('/'), rest.size());
  std::string_view name = rest.substr(std::min(slash + 1, rest.size()));
  rest = rest.substr(0, slash);
  if (const auto next = name.find('/'); next != name.npos) {
    std::string_view database = name.substr(next);
    name = name.substr(0, next);
    if (auto ok = take_database(database, o); !ok) return ok;
  }
  o.primary_name = name;
  if (!name.empty()) return done{};
  return bad("redis+sentinel: needs the name of the primary: redis+sentinel://host,host/mymaster");
}

result<std::string> read_password(const std::string& path) {
  auto line = files::first_line(path);
  if (line) return line;
  return bad("cannot read the password from " + path + ": " + line.error().what);
}

status set_file(std::string& to, std::string_view option, const std::string& path) {
  if (auto ok = files::check_no_fifo(option, path); !ok) return ok;
  return to = path, done{};
}

status set_timeout(std::chrono::milliseconds& to, std::string_view name, std::string_view text) {
  const bool bare_ms = text.ends_with("ms");
  const auto digits = text.substr(0, text.size() - (bare_ms ? 2 : text.ends_with('s') ? 1 : 0));
  double number = 0;
  if (!parse_number(digits, number) || !(number > 0) || number > 86'400'000) {
    return bad("'" + std::string(text) + "' is no " + std::string(name) + "; write 500ms or 2s");
  }
  to = std::chrono::milliseconds(static_cast<std::int64_t>(number * (bare_ms ? 1 : 1000)));
  if (to.count() >= 1) return done{};
  return bad(std::string(name) + " must be a millisecond at least");
}

std::string describe(const redis_options& o, std::string_view scheme) {
  std::string text(scheme);
  text += "://";
  if (!o.user.empty()) text += o.user + "@";
  if (!o.unix_path.empty()) return text + o.unix_path;
  for (const auto& seed : o.seeds) text += (seed == o.seeds.front() ? "" : ",") + to_string(seed);
  if (o.topology == topology::cluster) return text;
  if (o.topology == topology::sentinel)
    text += "/" + o.primary_name;
  else
    text += to_string(address{o.host, o.port});
  return text + "/" + std::to_string(o.database);
}

// The URL that people see says which one it is, wherever it was chosen.
void show_database(redis_options& o) {
  if (o.topology == topology::cluster) return;
  const auto number = std::to_string(o.database);
  if (o.unix_path.empty())
    o.url = o.url.substr(0, o.url.rfind('/') + 1) + number;
  else
    o.url = o.url.substr(0, o.url.rfind("?database=")) + "?database=" + number;
}

status take_place(std::string_view rest, std::string_view scheme, redis_options& o) {
  if (scheme == "redis+unix") {
    if (!rest.starts_with('/'))
      return bad("redis+unix: needs an absolute path: redis+unix:///run/redis.sock");
    o.unix_path = rest;
    return done{};
  }
  if (o.topology == topology::sentinel) {
    if (auto ok = take_primary_name(rest, o); !ok) return ok;
  } else if (auto ok = take_database(rest, o); !ok) {
    return ok;
  }
  return o.topology == topology::single ? take_host(rest, o) : take_seeds(rest, o);
}

constexpr unsigned most_replicas = 1'000;

topology topology_of(std::string_view scheme) {
  if (scheme.ends_with("+sentinel")) return topology::sentinel;
  return scheme.ends_with("+cluster") ? topology::cluster : topology::single;
}

status set_ack(redis_options& o, std::string_view value) {
  if (value == "any") return o.ack = acknowledgement::any, done{};
  if (value == "majority") return o.ack = acknowledgement::majority, done{};
  if (value == "all") return o.ack = acknowledgement::all, done{};
  o.ack = acknowledgement::number;
  if (parse_number(value, o.ack_number) && o.ack_number >= 1 && o.ack_number <= most_replicas)
    return done{};
  return bad("ack= is none of any, majority, all and a number of replicas from 1 to " +
             std::to_string(most_replicas));
}

status set_replicas(redis_options& o, std::string_view value) {
  if (parse_number(value, o.replicas) && o.replicas >= 1 && o.replicas <= most_replicas)
    return done{};
  return bad("replicas= is a number from 1 to " + std::to_string(most_replicas) +
             ": how many replicas a primary has");
}

// What a session sees is no count: on the small side of a split it would be content with too few.
status check_acknowledgement(const redis_options& o) {
  if (o.ack == acknowledgement::any) {
    if (o.replicas == 0) return done{};
    return bad("replicas= says what ack=majority and ack=all mean: add one of them");
  }
  if (o.dialect != dialect::none) {
    return bad("ack= is not for dialects: the other programs do not wait for replicas either");
  }
  if (o.ack_timeout >= o.command_timeout) {
    return bad("ack_timeout must be shorter than command_timeout, which is " +
               std::to_string(o.command_timeout.count()) + " ms");
  }
  if (o.ack == acknowledgement::number) {
    if (o.replicas == 0 || o.ack_number <= o.replicas) return done{};
    return bad("ack=" + std::to_string(o.ack_number) + " is more than replicas=" +
               std::to_string(o.replicas) + ": nothing could be granted");
  }
  if (o.replicas > 0) return done{};
  return bad(
      "ack=majority and ack=all need replicas=: how many replicas the primary has, also those that "
      "are away; or write how many have to acknowledge, as in ack=1");
}

result<std::string> from_environment(const std::string& name) {
  if (const char* const found = std::getenv(name.c_str())) return std::string(found);
  return bad("the password is to be in the environment as " + name + ", which is not set");
}

status set_password(std::string& to, std::string_view option, result<std::string> found) {
  if (!found) return std::move(found.error());
  if (found->empty())
    return bad("what " + std::string(option) + " names is empty, which is no password");
  return to = std::move(*found), done{};
}

}  // namespace

unsigned redis_options::replicas_wanted() const noexcept {
  switch (ack) {
    case acknowledgement::majority:
      return (replicas + 1) / 2;
    case acknowledgement::all:
      return replicas;
    case acknowledgement::number:
      return ack_number;
    case acknowledgement::any:
      break;
  }
  return 0;
}

std::string to_string(const address& a) {
  const bool bare_v6 = a.host.find(':') != a.host.npos;
  return (bare_v6 ? "[" + a.host + "]" : a.host) + ":" + std::to_string(a.port);
}

result<redis_options> parse_address(std::string_view scheme, std::string_view rest) {
  redis_options o;
  o.tls = scheme.starts_with("rediss");
  o.topology = topology_of(scheme);
  if (!rest.starts_with("//")) {
    return bad(std::string(scheme) + ": needs an address; write " + std::string(scheme) +
               "://host:6379");
  }
  rest.remove_prefix(2);
  take_credentials(rest, scheme == "redis+unix", o);
  if (auto ok = take_place(rest, scheme, o); !ok) return std::move(ok.error());
  o.url = describe(o, scheme);
  return o;
}

status set_dialect(redis_options& o, std::string_view value) {
  if (value == "redlock") return o.dialect = dialect::redlock, done{};
  if (value == "redisson") return o.dialect = dialect::redisson, done{};
  if (value == "setnx") return o.dialect = dialect::setnx, done{};
  return bad("dialect='" + std::string(value) + "' is none of redlock, redisson and setnx");
}

status set_option(redis_options& o, std::string_view name, const std::string& value) {
  if (name == "connect_timeout") return set_timeout(o.connect_timeout, name, value);
  if (name == "command_timeout") return set_timeout(o.command_timeout, name, value);
  if (name == "ack_timeout") return set_timeout(o.ack_timeout, name, value);
  if (name == "ack") return set_ack(o, value);
  if (name == "replicas") return set_replicas(o, value);
  if (name == "dialect") return set_dialect(o, value);
  if (name == "setnx_unit") {
    o.setnx_milliseconds = value == "ms";
    if (value == "ms" || value == "s") return done{};
    return bad("setnx_unit is s or ms");
  }
  if (name == "ca") return set_file(o.ca, name, value);
  if (name == "cert") return set_file(o.cert, name, value);
  if (name == "key") return set_file(o.key, name, value);
  if (name == "server_name") return o.server_name = value, done{};
  if (name == "database" || name == "db") {
    if (parse_number(value, o.database) && o.database <= 1'000'000) return show_database(o), done{};
    return bad("'" + value + "' is not the number of a database");
  }
  if (name == "prefix") {
    if (value.empty() || value.size() > 64 || value.find_first_of("{} *?[]\\") != value.npos) {
      return bad("a prefix has 1 to 64 bytes, without spaces, braces and wildcards");
    }
    return o.prefix = o.dialect_prefix = value, done{};
  }
  if (name == "password_env") return set_password(o.password, name, from_environment(value));
  if (name == "password_file") return set_password(o.password, name, read_password(value));
  if (name == "sentinel_user") return o.sentinel_user = value, done{};
  if (name == "sentinel_password_env")
    return set_password(o.sentinel_password, name, from_environment(value));
  if (name == "sentinel_password_file")
    return set_password(o.sentinel_password, name, read_password(value));
  return bad("there is no option '" + std::string(name) + "'");
}

status check_options(const redis_options& o) {
  // It may be a password that lacks its colon: it is not repeated.
  if (!o.user.empty() && o.password.empty() && !o.empty_password) {
    return bad(
        "there is a user and no password; write redis://user:password@host, redis://:password@host "
        "without a user, or say where it is by ?password_env= or ?password_file=");
  }
  if (!o.sentinel_user.empty() && o.sentinel_password.empty()) {
    return bad(
        "there is a sentinel_user and no password: add sentinel_password_env= or "
        "sentinel_password_file=");
  }
  if (auto ok = check_acknowledgement(o); !ok) return ok;
  if (o.setnx_milliseconds && o.dialect != dialect::setnx) {
    return bad("setnx_unit= is for ?dialect=setnx");
  }
  const bool for_sentinels = !o.sentinel_user.empty() || !o.sentinel_password.empty();
  if (for_sentinels && o.topology != topology::sentinel) {
    return bad("sentinel_user and sentinel_password_… are for redis+sentinel:");
  }
  if (o.topology == topology::cluster && o.database != 0) {
    return bad("a cluster has one database, 0; tell locks apart by ?prefix=");
  }
  return done{};
}

}  // namespace holdfast::store::redis
