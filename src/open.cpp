#include <algorithm>
#include <array>
#include <holdfast/session.hpp>

#include "engine/names.hpp"
#include "engine/no_thread.hpp"
#include "engine/url.hpp"
#include "family/contender_family.hpp"
#include "family/slot_family.hpp"
#include "family/state_family.hpp"
#include "store/files/files.hpp"
#include "store/memory/memory.hpp"
#ifdef HOLDFAST_WITH_ETCD
#include "store/etcd/etcd.hpp"
#endif
#ifdef HOLDFAST_WITH_MARIADB
#include "store/mariadb/mariadb.hpp"
#endif
#ifdef HOLDFAST_WITH_MEMCACHED
#include "store/memcached/memcached.hpp"
#endif
#ifdef HOLDFAST_WITH_POSTGRES
#include "store/postgres/postgres.hpp"
#endif
#ifdef HOLDFAST_WITH_REDIS
#include "store/redis/dialect_store.hpp"
#include "store/redis/redis.hpp"
#endif
#ifdef HOLDFAST_WITH_SQLITE
#include "store/sqlite/sqlite.hpp"
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
#include "store/zookeeper/zookeeper.hpp"
#endif

// The one file that knows every store: URL scheme → driver → family.
namespace holdfast {

namespace {

using engine::url;
using opened = result<std::unique_ptr<store::session_store>>;

opened open_memory(const url& u, clock& on) {
  if (auto ok = engine::check_options(u, {}); !ok) return std::move(ok.error());
  return family::over(store::memory::open_memory(u.rest, on));
}

#ifdef HOLDFAST_WITH_SQLITE

result<std::string> sqlite_path(const url& u) {
  std::string path = u.rest;
  if (path.starts_with("///")) path.erase(0, 2);
  if (path.empty()) {
    return failure{errc::invalid_argument, "sqlite: needs the path of a file: sqlite:locks.db"};
  }
  if (path.starts_with("//")) {
    return failure{errc::invalid_argument,
                   "sqlite: has no host; write sqlite:PATH or sqlite:///PATH"};
  }
  return path;
}

opened open_sqlite(const url& u, clock& on) {
  static constexpr std::array<std::string_view, 3> known{"synchronous", "busy_timeout", "network"};
  if (auto ok = engine::check_options(u, known); !ok) return std::move(ok.error());
  auto path = sqlite_path(u);
  if (!path) return std::move(path.error());
  store::sqlite::sqlite_options options;
  options.path = std::move(*path);
  options.url = "sqlite:" + u.rest;
  options.clock = &on;
  if (const auto* const value = u.option("synchronous")) options.synchronous = *value;
  if (const auto* const value = u.option("network")) options.network = *value;
  if (const auto* const value = u.option("busy_timeout")) {
    auto timeout = engine::parse_duration(*value);
    if (!timeout) return std::move(timeout.error());
    options.busy_timeout = *timeout;
  }
  auto port = store::sqlite::open_sqlite(std::move(options));
  if (!port) return std::move(port.error());
  return family::over(std::move(*port));
}

#endif

#ifdef HOLDFAST_WITH_REDIS

std::function<void(std::string_view)> warn(const std::string& url,
                                           const std::shared_ptr<observer>& to) {
  return [url, to](std::string_view what) {
    if (!to) return;
    event e;
    e.kind = event_kind::warning;
    e.store = url;
    e.detail = what;
    try {
      to->on_event(e);
    } catch (...) {
      return;  // an observer that throws must not disturb what it watches
    }
  };
}

constexpr std::array<std::string_view, 7> redis_schemes{
    "redis",           "rediss",        "redis+unix",    "redis+sentinel",
    "rediss+sentinel", "redis+cluster", "rediss+cluster"};

opened open_redis(const url& u, clock& on, const session_options& o) {
  static constexpr std::array<std::string_view, 18> known{"connect_timeout",
                                                          "command_timeout",
                                                          "password_env",
                                                          "password_file",
                                                          "database",
                                                          "prefix",
                                                          "dialect",
                                                          "setnx_unit",
                                                          "ca",
                                                          "cert",
                                                          "key",
                                                          "server_name",
                                                          "ack",
                                                          "ack_timeout",
                                                          "replicas",
                                                          "sentinel_user",
                                                          "sentinel_password_env",
                                                          "sentinel_password_file"};
  if (auto ok = engine::check_options(u, known); !ok) return std::move(ok.error());
  auto options = store::redis::parse_address(u.scheme, u.rest);
  if (!options) return std::move(options.error());
  for (const auto& [name, value] : u.options) {
    if (auto ok = store::redis::set_option(*options, name, value); !ok)
      return std::move(ok.error());
  }
  options->clock = &on;
  options->warn = warn(options->url, o.observer);
  if (options->dialect == store::redis::dialect::none) {
    return store::redis::open_redis(std::move(*options));
  }
  auto port = store::redis::open_dialect(std::move(*options));
  if (!port) return std::move(port.error());
  return family::over(std::move(*port), on);
}

#endif

#ifdef HOLDFAST_WITH_ZOOKEEPER

opened open_zookeeper(const url& u, clock& on) {
  static constexpr std::array<std::string_view, 6> known{
      "session", "connect_timeout", "command_timeout", "password_env", "password_file", "acl"};
  if (auto ok = engine::check_options(u, known); !ok) return std::move(ok.error());
  auto options = store::zookeeper::parse_address(u.rest);
  if (!options) return std::move(options.error());
  options->clock = &on;
  for (const auto& [name, value] : u.options) {
    auto* const time = name == "session"           ? &options->session
                       : name == "connect_timeout" ? &options->connect_timeout
                       : name == "command_timeout" ? &options->command_timeout
                                                   : nullptr;
    if (time == nullptr) {
      if (auto ok = store::zookeeper::set_option(*options, name, value); !ok)
        return std::move(ok.error());
      continue;
    }
    auto parsed = engine::parse_duration(value);
    if (!parsed) return std::move(parsed.error());
    *time = *parsed;
  }
  auto port = store::zookeeper::open_zookeeper(std::move(*options));
  if (!port) return std::move(port.error());
  return family::over(std::move(*port), on);
}

#endif

#ifdef HOLDFAST_WITH_ETCD

opened open_etcd(const url& u, clock& on) {
  static constexpr std::array<std::string_view, 9> known{"session",
                                                         "connect_timeout",
                                                         "command_timeout",
                                                         "password_env",
                                                         "password_file",
                                                         "ca",
                                                         "cert",
                                                         "key",
                                                         "server_name"};
  if (auto ok = engine::check_options(u, known); !ok) return std::move(ok.error());
  auto options = store::etcd::parse_address(u.scheme, u.rest);
  if (!options) return std::move(options.error());
  options->clock = &on;
  for (const auto& [name, value] : u.options) {
    auto* const time = store::etcd::duration_of(*options, name);
    if (time == nullptr) {
      if (auto ok = store::etcd::set_option(*options, name, value); !ok)
        return std::move(ok.error());
      continue;
    }
    auto parsed = engine::parse_duration(value);
    if (!parsed) return std::move(parsed.error());
    *time = *parsed;
  }
  auto port = store::etcd::open_etcd(std::move(*options));
  if (!port) return std::move(port.error());
  return family::over(std::move(*port), on);
}

#endif

#ifdef HOLDFAST_WITH_POSTGRES

opened open_postgres(const url& u, clock& on) {
  if (auto ok = engine::check_options(u, store::postgres::known_options()); !ok) {
    return std::move(ok.error());
  }
  auto server = store::postgres::parse_address(u.rest);
  if (!server) return std::move(server.error());
  store::postgres::postgres_options options;
  options.server = std::move(*server);
  for (const auto& [name, value] : u.options) {
    if (auto ok = store::postgres::set_option(options, name, value); !ok)
      return std::move(ok.error());
  }
  options.clock = &on;
  if (options.session_mode) return store::postgres::open_postgres_session(std::move(options));
  auto port = store::postgres::open_postgres(std::move(options));
  if (!port) return std::move(port.error());
  return family::over(std::move(*port));
}

#endif

#ifdef HOLDFAST_WITH_MARIADB

opened open_mariadb(const url& u, clock& on) {
  if (auto ok = engine::check_options(u, store::mariadb::known_options()); !ok) {
    return std::move(ok.error());
  }
  auto options = store::mariadb::parse_address(u.scheme, u.rest);
  if (!options) return std::move(options.error());
  for (const auto& [name, value] : u.options) {
    if (auto ok = store::mariadb::set_option(*options, name, value); !ok)
      return std::move(ok.error());
  }
  options->clock = &on;
  if (options->session_mode) return store::mariadb::open_mariadb_session(std::move(*options));
  auto port = store::mariadb::open_mariadb(std::move(*options));
  if (!port) return std::move(port.error());
  return family::over(std::move(*port));
}

#endif

#ifdef HOLDFAST_WITH_MEMCACHED

opened open_memcached(const url& u, clock& on) {
  static constexpr std::array<std::string_view, 3> known{"prefix", "connect_timeout",
                                                         "command_timeout"};
  if (auto ok = engine::check_options(u, known); !ok) return std::move(ok.error());
  auto options = store::memcached::parse_address(u.rest);
  if (!options) return std::move(options.error());
  options->clock = &on;
  for (const auto& [name, value] : u.options) {
    if (name == "prefix") {
      if (auto ok = store::memcached::set_prefix(*options, value); !ok)
        return std::move(ok.error());
      continue;
    }
    auto parsed = engine::parse_duration(value);
    if (!parsed) return std::move(parsed.error());
    (name == "connect_timeout" ? options->connect_timeout : options->command_timeout) = *parsed;
  }
  auto port = store::memcached::open_memcached(std::move(*options));
  if (!port) return std::move(port.error());
  return family::over(std::move(*port), on);
}

#endif

opened unknown_scheme(const url& u) {
  static constexpr std::array<std::string_view, 17> known{
      "memory",     "file",           "sqlite",          "redis",         "rediss",
      "redis+unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster",
      "postgres",   "mariadb",        "mysql",           "zookeeper",     "etcd",
      "memcached",  "etcds"};
  const auto near = engine::nearest(u.scheme, known);
  if (near == u.scheme) {
    return failure{errc::unsupported,
                   "this program was built without the store '" + u.scheme + "'"};
  }
  std::string what = "there is no store '" + engine::shortened(u.scheme, 80) + ":'";
  if (!near.empty()) {
    what += "; did you mean '" + std::string(near) + ":'?";
  } else {
    what += "; there are memory, sqlite, redis, postgres, mariadb, zookeeper, etcd and memcached";
  }
  return failure{errc::invalid_argument, std::move(what)};
}

opened open_store(const url& u, clock& on, [[maybe_unused]] const session_options& options) {
  if (u.scheme == "memory") return open_memory(u, on);
#ifdef HOLDFAST_WITH_REDIS
  if (std::find(redis_schemes.begin(), redis_schemes.end(), u.scheme) != redis_schemes.end()) {
    return open_redis(u, on, options);
  }
#endif
#ifdef HOLDFAST_WITH_ETCD
  if (u.scheme == "etcd" || u.scheme == "etcds") return open_etcd(u, on);
#endif
#ifdef HOLDFAST_WITH_MARIADB
  if (u.scheme == "mariadb" || u.scheme == "mysql") return open_mariadb(u, on);
#endif
#ifdef HOLDFAST_WITH_MEMCACHED
  if (u.scheme == "memcached") return open_memcached(u, on);
#endif
#ifdef HOLDFAST_WITH_POSTGRES
  if (u.scheme == "postgres") return open_postgres(u, on);
#endif
#ifdef HOLDFAST_WITH_SQLITE
  if (u.scheme == "sqlite") return open_sqlite(u, on);
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
  if (u.scheme == "zookeeper") return open_zookeeper(u, on);
#endif
  return unknown_scheme(u);
}

}  // namespace

namespace {

/// What `file:PATH` says: the URL is the first line of that file.
result<std::string> url_in_file(const url& u) {
  if (auto ok = engine::check_options(u, {}); !ok) return std::move(ok.error());
  const std::string path = u.rest.starts_with("///") ? u.rest.substr(2) : u.rest;
  if (path.empty() || path.starts_with("//"))
    return failure{errc::invalid_argument,
                   "file: needs the path of a file: file:/etc/holdfast/store"};
  auto line = store::files::first_line(path);
  if (!line) {
    return failure{line.error().code,
                   "cannot read the URL from " + path + ": " + line.error().what};
  }
  if (line->empty()) return failure{errc::invalid_argument, path + " is empty; it needs a URL"};
  if (engine::lower(line->substr(0, 5)) == "file:")
    return failure{errc::invalid_argument, path + " names another file; it needs the store's URL"};
  return line;
}

}  // namespace

session open(std::string_view text, session_options options) {
  auto& on = options.clock ? *options.clock : real_clock();
  std::string shown = without_secrets(text.substr(0, text.find('?')));
  const auto fail = [&](failure f) {
    f.operation = "open";
    f.name = std::move(shown);
    throw_failure(std::move(f));
  };
  auto u = engine::parse_url(text);
  if (!u) {
    shown.clear();  // the message has it
    fail(std::move(u.error()));
  }
  if (u->scheme == "file") {
    auto line = url_in_file(*u);
    if (!line) fail(std::move(line.error()));
    return open(*line, std::move(options));
  }
  auto store = [&] {
    try {
      return open_store(*u, on, options);
    } catch (const error&) {
      throw;
    } catch (const std::system_error&) {
      return opened(engine::no_thread("for the store's own work"));
    }
  }();
  if (!store) fail(std::move(store.error()));
  return session(std::move(*store), std::move(options));
}

}  // namespace holdfast
