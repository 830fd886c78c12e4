#include "store/etcd/options.hpp"
#include "fuzz/input.hpp"
#include "store/mariadb/options.hpp"
#include "store/memcached/options.hpp"
#include "store/postgres/options.hpp"
#include "store/redis/options.hpp"
#include "store/zookeeper/options.hpp"

// Options of a URL as `name=value` lines, to every store.
namespace {

namespace store = holdfast::store;

// Those would read files and the environment.
bool is_read_from_elsewhere(std::string_view name) {
  return name.starts_with("password_") || name.find("_file") != name.npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto rest = fuzz::text_of(data, size);
  store::redis::redis_options redis;
  store::postgres::postgres_options postgres;
  store::mariadb::mariadb_options mariadb;
  store::memcached::memcached_options memcached;
  store::etcd::etcd_options etcd;
  store::zookeeper::zookeeper_options zookeeper;
  while (!rest.empty()) {
    auto value = fuzz::take_until(rest, '\n');
    const auto name = fuzz::take_until(value, '=');
    if (is_read_from_elsewhere(name)) continue;
    const std::string text(value);
    (void)store::redis::set_option(redis, name, text);
    (void)store::postgres::set_option(postgres, name, text);
    (void)store::mariadb::set_option(mariadb, name, text);
    if (name == "prefix") (void)store::memcached::set_prefix(memcached, text);
    (void)store::etcd::set_option(etcd, name, text);
    (void)store::zookeeper::set_option(zookeeper, name, text);
  }
  (void)store::redis::check_options(redis);
  (void)store::etcd::check_options(etcd);
  (void)store::zookeeper::check_options(zookeeper);
  return 0;
}
