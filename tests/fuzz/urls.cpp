#include <string>
#include <holdfast/session.hpp>

#include "engine/url.hpp"
#include "fuzz/input.hpp"
#include "store/etcd/options.hpp"
#include "store/mariadb/options.hpp"
#include "store/memcached/options.hpp"
#include "store/postgres/options.hpp"
#include "store/redis/options.hpp"
#include "store/zookeeper/options.hpp"

// A URL that a user wrote, for each scheme: no message has what stands before the @ in it.
namespace {

namespace store = holdfast::store;
constexpr std::string_view secret = "hUnTeR2";

/// `secret` stands nowhere else in what is parsed.
bool is_hidden = false;

template <class Result>
void check(const Result& parsed) {
  if (parsed || !is_hidden) return;
  fuzz::require(parsed.error().what.find(secret) == std::string::npos);
}

void parse(std::string_view rest) {
  for (const char* const scheme :
       {"redis", "rediss", "redis+unix", "redis+sentinel", "redis+cluster"}) {
    check(store::redis::parse_address(scheme, rest));
  }
  check(store::postgres::parse_address(rest));
  check(store::mariadb::parse_address("mariadb", rest));
  check(store::memcached::parse_address(rest));
  check(store::etcd::parse_address("etcd", rest));
  check(store::zookeeper::parse_address(rest));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  (void)holdfast::without_secrets(text);
  const auto url = holdfast::engine::parse_url(text);
  is_hidden = false;
  if (url) parse(url->rest);
  parse(text);
  is_hidden = text.find(secret) == text.npos;
  parse("//user:" + std::string(secret) + "@" + std::string(text.substr(0, text.find('@'))));
  return 0;
}
