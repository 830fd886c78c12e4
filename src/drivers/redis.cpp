#include "store/redis/redis.hpp"

#include <string_view>

#include "base/warning.hpp"
#include "drivers/join.hpp"
#include "store/redis/dialect_store.hpp"

namespace holdfast::drivers {

namespace {

opened open_redis(const store::opening& how) {
  auto options = options_of<store::redis::read_options>(how);
  if (!options) return std::move(options.error());
  const bool shared = options->dialect != store::redis::dialect::none;
  const std::string url = options->url;
  options->warn = [url, to = how.observer](std::string_view what) {
    base::warn(to.get(), url, what);
  };
  if (shared) return named(url, over(store::redis::open_dialect(std::move(*options)), how.clock));
  return named(url, store::redis::open_redis(std::move(*options)));
}

}  // namespace

const store::driver& redis() noexcept {
  static constexpr store::driver all{"redis", open_redis};
  return all;
}

}  // namespace holdfast::drivers
