#include "base/store_url.hpp"

#include <holdfast/session.hpp>
#include <string>

#include "fuzz/input.hpp"
#include "store/etcd/options.hpp"
#include "store/mariadb/options.hpp"
#include "store/memcached/options.hpp"
#include "store/postgres/options.hpp"
#include "store/redis/options.hpp"
#include "store/sqlite/options.hpp"
#include "store/zookeeper/options.hpp"

// A URL that a user wrote, for each scheme: no message contains the text before the @.
namespace {

namespace store = holdfast::store;
using holdfast::base::store_url;
constexpr std::string_view secret = "hUnTeR2";

/// `secret` occurs nowhere else in the parsed text.
bool is_hidden = false;

template <class Result>
void check(const Result& parsed) {
  if (parsed || !is_hidden) return;
  fuzz::require(parsed.error().what.find(secret) == std::string::npos);
}

// The environment and files are not for a fuzzer.
holdfast::result<store_url> without_options(std::string_view text) {
  auto u = holdfast::base::parse_url(text);
  if (u) u->options.clear();
  return u;
}

void parse(const std::string& rest) {
  for (const std::string scheme :
       {"redis", "rediss", "redis+unix", "redis+sentinel", "redis+cluster", "postgres", "mariadb",
        "memcached", "etcd", "zookeeper", "sqlite"}) {
    const auto u = without_options(scheme + ":" + rest);
    check(u);
    if (!u) continue;
    if (scheme.starts_with("redis")) check(store::redis::read_options(*u));
    if (scheme == "postgres") check(store::postgres::read_options(*u));
    if (scheme == "mariadb") check(store::mariadb::read_options(*u));
    if (scheme == "memcached") check(store::memcached::read_options(*u));
    if (scheme == "etcd") check(store::etcd::read_options(*u));
    if (scheme == "zookeeper") check(store::zookeeper::read_options(*u));
    if (scheme == "sqlite") check(store::sqlite::read_options(*u));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  (void)holdfast::without_secrets(text);
  is_hidden = false;
  (void)holdfast::base::parse_url(text);
  parse(text.substr(std::min(text.find("//"), text.size())));
  parse(text);
  is_hidden = text.find(secret) == text.npos;
  parse("//user:" + std::string(secret) + "@" + text.substr(0, text.find('@')));
  return 0;
}
