#include <algorithm>
#include <array>
#include <string>

#include "base/names.hpp"
#include "base/store_url.hpp"
#include "drivers/drivers.hpp"
#ifdef HOLDFAST_LOADS_DRIVERS
#include "drivers/load.hpp"
#endif

namespace holdfast::drivers {

namespace {

struct known_scheme {
  std::string_view scheme;
  std::string_view driver;
};
constexpr std::array<known_scheme, 17> known_schemes{{{"memory", "memory"},
                                                      {"file", ""},  // open() itself reads it
                                                      {"sqlite", "sqlite"},
                                                      {"redis", "redis"},
                                                      {"rediss", "redis"},
                                                      {"redis+unix", "redis"},
                                                      {"redis+sentinel", "redis"},
                                                      {"rediss+sentinel", "redis"},
                                                      {"redis+cluster", "redis"},
                                                      {"rediss+cluster", "redis"},
                                                      {"postgres", "postgres"},
                                                      {"mariadb", "mariadb"},
                                                      {"mysql", "mariadb"},
                                                      {"zookeeper", "zookeeper"},
                                                      {"etcd", "etcd"},
                                                      {"memcached", "memcached"},
                                                      {"etcds", "etcd"}}};

constexpr std::array linked{
    memory,
#ifdef HOLDFAST_WITH_ETCD
    etcd,
#endif
#ifdef HOLDFAST_WITH_MARIADB
    mariadb,
#endif
#ifdef HOLDFAST_WITH_MEMCACHED
    memcached,
#endif
#ifdef HOLDFAST_WITH_POSTGRES
    postgres,
#endif
#ifdef HOLDFAST_WITH_REDIS
    redis,
#endif
#ifdef HOLDFAST_WITH_SQLITE
    sqlite,
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
    zookeeper,
#endif
};

failure no_such_scheme(std::string_view scheme) {
  std::array<std::string_view, known_schemes.size()> schemes;
  std::transform(known_schemes.begin(), known_schemes.end(), schemes.begin(),
                 [](const known_scheme& k) { return k.scheme; });
  const auto near = base::nearest(scheme, schemes);
  std::string what = "there is no store '" + base::shortened(scheme, 80) + ":'";
  if (!near.empty()) {
    what += "; did you mean '" + std::string(near) + ":'?";
  } else {
    what += "; there are memory, sqlite, redis, postgres, mariadb, zookeeper, etcd and memcached";
  }
  return {errc::invalid_argument, std::move(what)};
}

}  // namespace

result<const store::driver*> find(std::string_view scheme) {
  const auto* const known = std::find_if(known_schemes.begin(), known_schemes.end(),
                                         [&](const known_scheme& k) { return k.scheme == scheme; });
  const bool is_known = known != known_schemes.end();
  const auto name = is_known ? known->driver : scheme;
  for (const auto& each : linked) {
    if (each().name == name) return &each();
  }
#ifdef HOLDFAST_LOADS_DRIVERS
  // The driver of a third party's store has the name of its scheme.
  if (is_known || is_installed(name)) return load(name);
#else
  if (is_known) {
    return failure{errc::unsupported,
                   "this program was built without the store '" + std::string(scheme) + "'"};
  }
#endif
  return no_such_scheme(scheme);
}

}  // namespace holdfast::drivers
