#include "store/etcd/options.hpp"
#include "fuzz/input.hpp"
#include "store/mariadb/options.hpp"
#include "store/memcached/options.hpp"
#include "store/postgres/options.hpp"
#include "store/redis/options.hpp"
#include "store/sqlite/options.hpp"
#include "store/zookeeper/options.hpp"

// Options of a URL as `name=value` lines, to every store.
namespace {

namespace store = holdfast::store;

// Those would read files and the environment.
bool is_read_from_elsewhere(std::string_view name) {
  return name.find("password_") != name.npos || name.find("_file") != name.npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto rest = fuzz::text_of(data, size);
  holdfast::base::store_url u;
  u.has_servers = true;
  u.hosts = "h";
  u.path = "/1";
  while (!rest.empty()) {
    auto value = fuzz::take_until(rest, '\n');
    const auto name = fuzz::take_until(value, '=');
    if (!is_read_from_elsewhere(name)) u.options.emplace_back(name, value);
  }
  (void)store::redis::read_options(u);
  (void)store::sqlite::read_options(u);
  (void)store::postgres::read_options(u);
  (void)store::mariadb::read_options(u);
  (void)store::memcached::read_options(u);
  (void)store::etcd::read_options(u);
  (void)store::zookeeper::read_options(u);
  // One at a time: what is wrong with one does not hide the others.
  const auto all = u.options;
  for (const auto& one : all) {
    u.options = {one};
    (void)store::redis::read_options(u);
    (void)store::sqlite::read_options(u);
    (void)store::postgres::read_options(u);
    (void)store::etcd::read_options(u);
  }
  return 0;
}
