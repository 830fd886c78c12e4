#include "store/redis/options.hpp"

#include <array>

#include "base/names.hpp"

namespace holdfast::store::redis {

namespace {

using own = redis_options;

constexpr std::size_t most_databases = 1'000'000;
constexpr std::size_t most_replicas = 1'000;

std::string describe_place(const redis_options& o, std::string_view scheme) {
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

// The options that a path cannot contain, and those that differ from the defaults.
std::string describe_options(const redis_options& o) {
  const bool in_path = o.unix_path.empty() || o.database == 0;
  redis_options usual;
  usual.dialect = o.dialect;
  return base::shown_options(
      {{"database", in_path ? "" : std::to_string(o.database)},
       {"prefix", o.key_prefix() == usual.key_prefix() ? "" : o.key_prefix()},
       {"dialect", o.dialect == dialect::none ? "" : std::string(name_of(o.dialect))}});
}

status read_database(redis_options& to, std::string_view text) {
  std::size_t number = 0;
  auto ok = base::read_number(number, "the database", text, 0, most_databases);
  if (ok) to.database = static_cast<unsigned>(number);
  return ok;
}

status set_database(redis_options& to, std::string_view, const std::string& value) {
  return read_database(to, value);
}

status set_ack(redis_options& to, std::string_view, const std::string& value) {
  if (value == "any") return to.ack = acknowledgement::any, done{};
  if (value == "majority") return to.ack = acknowledgement::majority, done{};
  if (value == "all") return to.ack = acknowledgement::all, done{};
  to.ack = acknowledgement::number;
  std::size_t number = 0;
  if (base::read_number(number, "ack", value, 1, most_replicas)) {
    return to.ack_number = static_cast<unsigned>(number), done{};
  }
  return base::invalid("ack= is any, majority, all, or a number of replicas from 1 to " +
                       std::to_string(most_replicas));
}

status set_replicas(redis_options& to, std::string_view, const std::string& value) {
  std::size_t number = 0;
  auto ok = base::read_number(number, "replicas, how many replicas a primary has,", value, 1,
                              most_replicas);
  if (ok) to.replicas = static_cast<unsigned>(number);
  return ok;
}

status set_dialect(redis_options& to, std::string_view, const std::string& value) {
  if (value == "redlock") return to.dialect = dialect::redlock, done{};
  if (value == "redisson") return to.dialect = dialect::redisson, done{};
  if (value == "setnx") return to.dialect = dialect::setnx, done{};
  return base::invalid("dialect='" + base::shortened(value, 80) +
                       "' is not one of redlock, redisson and setnx");
}

status set_unit(redis_options& to, std::string_view, const std::string& value) {
  to.setnx_milliseconds = value == "ms";
  if (value == "ms" || value == "s") return done{};
  return base::invalid("setnx_unit is s or ms");
}

status set_redisson_lock(redis_options& to, std::string_view, const std::string& value) {
  to.redisson_fenced = value == "fenced";
  if (value == "fenced" || value == "plain") return done{};
  return base::invalid("redisson_lock is plain (RLock) or fenced (RFencedLock)");
}

status set_prefix(redis_options& to, std::string_view, const std::string& value) {
  if (value.empty() || value.size() > 64 || value.find_first_of("{} *?[]\\") != value.npos) {
    return base::invalid(R"(a prefix has 1 to 64 bytes, and no space, brace, bracket, *, ? or \)");
  }
  return to.prefix = to.dialect_prefix = value, done{};
}

constexpr base::option<redis_options> known_options[]{
    base::time_option<own, &own::connect_timeout>("connect_timeout"),
    base::time_option<own, &own::command_timeout>("command_timeout"),
    base::time_option<own, &own::ack_timeout>("ack_timeout"),
    base::password_option<own, &own::password>("password_env"),
    base::password_option<own, &own::password>("password_file"),
    {"database", set_database},
    {"prefix", set_prefix},
    {"dialect", set_dialect},
    {"redisson_lock", set_redisson_lock},
    {"setnx_unit", set_unit},
    base::path_option<own, &own::ca>("ca"),
    base::path_option<own, &own::cert>("cert"),
    base::path_option<own, &own::key>("key"),
    base::text_option<own, &own::server_name>("server_name"),
    {"ack", set_ack},
    {"replicas", set_replicas},
    base::text_option<own, &own::sentinel_user>("sentinel_user"),
    base::password_option<own, &own::sentinel_password>("sentinel_password_env"),
    base::password_option<own, &own::sentinel_password>("sentinel_password_file")};

topology topology_of(std::string_view scheme) {
  if (scheme.ends_with("+sentinel")) return topology::sentinel;
  return scheme.ends_with("+cluster") ? topology::cluster : topology::single;
}

// The number of a database, or an empty text.
status take_database(std::string_view text, redis_options& to) {
  if (text.empty() || read_database(to, text)) return done{};
  return base::invalid(
      "the text after the / is not the number of a database; write redis://host:6379/0");
}

// After the hosts: the name of the primary, and optionally the number of a database.
status take_primary(std::string_view path, redis_options& to) {
  const auto slash = std::min(path.find('/'), path.size());
  to.primary_name = path.substr(0, slash);
  if (to.primary_name.empty()) {
    return base::invalid(
        "redis+sentinel: needs the name of the primary: redis+sentinel://host,host/mymaster");
  }
  return take_database(path.substr(std::min(slash + 1, path.size())), to);
}

status take_servers(const base::store_url& u, redis_options& to) {
  auto servers = u.servers(to.topology == topology::sentinel ? 26379 : 6379);
  if (!servers) return std::move(servers.error());
  if (to.topology != topology::single) return to.seeds = std::move(*servers), done{};
  if (servers->size() > 1) {
    return base::invalid("redis: takes one host; for a cluster write redis+cluster://host,host");
  }
  to.host = std::move(servers->front().host);
  to.port = servers->front().port;
  return done{};
}

status take_place(const base::store_url& u, redis_options& to) {
  if (u.scheme == "redis+unix") {
    if (!u.hosts.empty() || u.path.empty()) {
      return base::invalid("redis+unix: needs an absolute path: redis+unix:///run/redis.sock");
    }
    return to.unix_path = u.path, done{};
  }
  if (auto ok = take_servers(u, to); !ok) return ok;
  const auto behind = std::string_view(u.path).substr(u.path.empty() ? 0 : 1);
  return to.topology == topology::sentinel ? take_primary(behind, to) : take_database(behind, to);
}

bool names_database(const base::store_url& u, topology t) {
  if (u.scheme == "redis+unix") return false;
  const auto inner = u.inner_path();  // behind sentinels, the name of the primary comes first
  return t == topology::sentinel ? inner.find('/') != inner.npos : !inner.empty();
}

// The number of replicas that a session sees does not count: on the small side of a network split
// it would be too small.
status check_acknowledgement(const redis_options& o) {
  if (o.ack == acknowledgement::any) return done{};
  if (o.dialect != dialect::none) {
    return base::invalid(
        "ack= is not for dialects: the other programs do not wait for replicas either");
  }
  if (o.ack_timeout >= o.command_timeout) {
    return base::invalid("ack_timeout must be shorter than command_timeout, which is " +
                         std::to_string(o.command_timeout.count()) + " ms");
  }
  if (o.ack == acknowledgement::number) {
    if (o.replicas == 0 || o.ack_number <= o.replicas) return done{};
    return base::invalid("ack=" + std::to_string(o.ack_number) + " is more than replicas=" +
                         std::to_string(o.replicas) + ": nothing could be granted");
  }
  if (o.replicas > 0) return done{};
  return base::invalid(
      "ack=majority and ack=all need replicas=: how many replicas the primary has, including those "
      "that are away; or give a number, as in ack=1");
}

/// An option that is valid only together with another one.
struct belonging {
  std::string_view option;
  bool (*has_its_place)(const redis_options& o, const base::store_url& u);
  std::string_view else_said;
};

bool acknowledges(const redis_options& o, const base::store_url&) {
  return o.ack != acknowledgement::any;
}
bool names_ack(const redis_options&, const base::store_url& u) {
  return u.option("ack") != nullptr;
}
template <dialect of>
bool speaks(const redis_options& o, const base::store_url&) {
  return o.dialect == of;
}
bool is_encrypted(const redis_options& o, const base::store_url&) { return o.tls; }
bool has_sentinels(const redis_options& o, const base::store_url&) {
  return o.topology == topology::sentinel;
}

constexpr std::string_view for_tls =
    "ca, cert, key and server_name are for TLS: write a URL that begins with rediss";
constexpr std::string_view for_sentinels =
    "sentinel_user and sentinel_password_… are for redis+sentinel:";

constexpr std::array<belonging, 11> belongings{
    {{"ack_timeout", names_ack,
      "ack_timeout= is for ack=: say how many replicas have to acknowledge"},
     {"replicas", acknowledges,
      "replicas= says what ack=majority and ack=all mean: add one of them"},
     {"setnx_unit", speaks<dialect::setnx>, "setnx_unit= is for ?dialect=setnx"},
     {"redisson_lock", speaks<dialect::redisson>, "redisson_lock= is for ?dialect=redisson"},
     {"ca", is_encrypted, for_tls},
     {"cert", is_encrypted, for_tls},
     {"key", is_encrypted, for_tls},
     {"server_name", is_encrypted, for_tls},
     {"sentinel_user", has_sentinels, for_sentinels},
     {"sentinel_password_env", has_sentinels, for_sentinels},
     {"sentinel_password_file", has_sentinels, for_sentinels}}};

// Refuses the default value as well: an option that is written is expected to have an effect.
status check_belongings(const redis_options& o, const base::store_url& u) {
  for (const auto& one : belongings) {
    if (u.option(one.option) != nullptr && !one.has_its_place(o, u))
      return base::invalid(std::string(one.else_said));
  }
  return done{};
}

status check(const redis_options& o) {
  // The user may be a password whose colon was left out: the message does not repeat it.
  if (!o.user.empty() && o.password.empty() && !o.empty_password) {
    return base::invalid(
        "there is a user and no password; write redis://user:password@host, redis://:password@host "
        "without a user, or say where it is by ?password_env= or ?password_file=");
  }
  if (!o.sentinel_user.empty() && o.sentinel_password.empty()) {
    return base::invalid(
        "there is a sentinel_user and no password: add sentinel_password_env= or "
        "sentinel_password_file=");
  }
  if (auto ok = check_acknowledgement(o); !ok) return ok;
  if (o.topology == topology::cluster && o.database != 0) {
    return base::invalid("a cluster has one database, 0; tell locks apart by ?prefix=");
  }
  return done{};
}

}  // namespace

std::string_view name_of(dialect d) {
  return d == dialect::redisson ? "redisson" : d == dialect::setnx ? "setnx" : "redlock";
}

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

const char* example_of(std::string_view scheme) {
  return scheme == "redis+unix" ? ":///run/redis.sock" : "://host:6379";
}

result<redis_options> read_options(const base::store_url& u) {
  if (auto ok = base::needs_servers(u, u.scheme + example_of(u.scheme)); !ok) {
    return std::move(ok.error());
  }
  redis_options o;
  o.tls = u.scheme.starts_with("rediss");
  o.topology = topology_of(u.scheme);
  o.user = u.user;
  o.password = u.password;
  o.empty_password = u.empty_password;
  if (auto ok = take_place(u, o); !ok) return std::move(ok.error());
  const unsigned in_path = o.database;
  if (auto ok = base::read_options<redis_options>(u, known_options, o); !ok) {
    return std::move(ok.error());
  }
  if (names_database(u, o.topology) && o.database != in_path) {
    return base::invalid("names two databases: " + std::to_string(in_path) + " in the path, and " +
                         std::to_string(o.database) + " by database=; leave one of them out");
  }
  if (auto ok = check_belongings(o, u); !ok) return std::move(ok.error());
  if (auto ok = check(o); !ok) return std::move(ok.error());
  o.url = describe_place(o, u.scheme) + describe_options(o);
  return o;
}

}  // namespace holdfast::store::redis
