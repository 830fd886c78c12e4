#include <algorithm>
#include <array>
#include <holdfast/session.hpp>

#include "base/files.hpp"
#include "base/names.hpp"
#include "base/option.hpp"
#include "base/store_url.hpp"
#include "family/contender_family.hpp"
#include "family/slot_family.hpp"
#include "family/state_family.hpp"
#include "session/no_thread.hpp"
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

using base::store_url;
using opened = result<std::unique_ptr<store::session_store>>;

opened open_memory(const store_url& u, clock& on) {
  if (!u.options.empty()) return base::unknown_option(u.scheme, u.options.front().first, {});
  return family::over(store::memory::open_memory(u.path, on));
}

#ifdef HOLDFAST_WITH_SQLITE

opened open_sqlite(const store_url& u, clock& on) {
  auto options = store::sqlite::read_options(u);
  if (!options) return std::move(options.error());
  options->clock = &on;
  auto port = store::sqlite::open_sqlite(std::move(*options));
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

opened open_redis(const store_url& u, clock& on, const session_options& o) {
  auto options = store::redis::read_options(u);
  if (!options) return std::move(options.error());
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

opened open_zookeeper(const store_url& u, clock& on) {
  auto options = store::zookeeper::read_options(u);
  if (!options) return std::move(options.error());
  options->clock = &on;
  auto port = store::zookeeper::open_zookeeper(std::move(*options));
  if (!port) return std::move(port.error());
  return family::over(std::move(*port), on);
}

#endif

#ifdef HOLDFAST_WITH_ETCD

opened open_etcd(const store_url& u, clock& on) {
  auto options = store::etcd::read_options(u);
  if (!options) return std::move(options.error());
  options->clock = &on;
  auto port = store::etcd::open_etcd(std::move(*options));
  if (!port) return std::move(port.error());
  return family::over(std::move(*port), on);
}

#endif

#ifdef HOLDFAST_WITH_POSTGRES

opened open_postgres(const store_url& u, clock& on) {
  auto options = store::postgres::read_options(u);
  if (!options) return std::move(options.error());
  options->clock = &on;
  if (options->session_mode) return store::postgres::open_postgres_session(std::move(*options));
  auto port = store::postgres::open_postgres(std::move(*options));
  if (!port) return std::move(port.error());
  return family::over(std::move(*port));
}

#endif

#ifdef HOLDFAST_WITH_MARIADB

opened open_mariadb(const store_url& u, clock& on) {
  auto options = store::mariadb::read_options(u);
  if (!options) return std::move(options.error());
  options->clock = &on;
  if (options->session_mode) return store::mariadb::open_mariadb_session(std::move(*options));
  auto port = store::mariadb::open_mariadb(std::move(*options));
  if (!port) return std::move(port.error());
  return family::over(std::move(*port));
}

#endif

#ifdef HOLDFAST_WITH_MEMCACHED

opened open_memcached(const store_url& u, clock& on) {
  auto options = store::memcached::read_options(u);
  if (!options) return std::move(options.error());
  options->clock = &on;
  auto port = store::memcached::open_memcached(std::move(*options));
  if (!port) return std::move(port.error());
  return family::over(std::move(*port), on);
}

#endif

opened unknown_scheme(const store_url& u) {
  static constexpr std::array<std::string_view, 17> known{
      "memory",     "file",           "sqlite",          "redis",         "rediss",
      "redis+unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster",
      "postgres",   "mariadb",        "mysql",           "zookeeper",     "etcd",
      "memcached",  "etcds"};
  const auto near = base::nearest(u.scheme, known);
  if (near == u.scheme) {
    return failure{errc::unsupported,
                   "this program was built without the store '" + u.scheme + "'"};
  }
  std::string what = "there is no store '" + base::shortened(u.scheme, 80) + ":'";
  if (!near.empty()) {
    what += "; did you mean '" + std::string(near) + ":'?";
  } else {
    what += "; there are memory, sqlite, redis, postgres, mariadb, zookeeper, etcd and memcached";
  }
  return failure{errc::invalid_argument, std::move(what)};
}

opened open_store(const store_url& u, clock& on, [[maybe_unused]] const session_options& options) {
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
result<std::string> url_in_file(const store_url& u) {
  if (!u.options.empty()) return base::unknown_option(u.scheme, u.options.front().first, {});
  const std::string path = u.path.starts_with("///") ? u.path.substr(2) : u.path;
  if (path.empty() || path.starts_with("//"))
    return failure{errc::invalid_argument,
                   "file: needs the path of a file: file:/etc/holdfast/store"};
  auto line = base::first_line(path);
  if (!line) {
    return failure{line.error().code,
                   "cannot read the URL from " + path + ": " + line.error().what};
  }
  if (line->empty()) return failure{errc::invalid_argument, path + " is empty; it needs a URL"};
  if (base::lower(line->substr(0, 5)) == "file:")
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
  auto u = base::parse_url(text);
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
