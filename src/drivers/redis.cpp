#include "store/redis/redis.hpp"

#include <functional>
#include <holdfast/observer.hpp>
#include <string>

#include "drivers/join.hpp"
#include "store/redis/dialect_store.hpp"

namespace holdfast::drivers {

namespace {

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

opened open_redis(const store::opening& how) {
  auto options = options_of<store::redis::read_options>(how);
  if (!options) return std::move(options.error());
  options->warn = warn(options->url, how.observer);
  if (options->dialect == store::redis::dialect::none) {
    return store::redis::open_redis(std::move(*options));
  }
  return over(store::redis::open_dialect(std::move(*options)), how.clock);
}

}  // namespace

const store::driver& redis() noexcept {
  static constexpr store::driver all{"redis", open_redis};
  return all;
}

}  // namespace holdfast::drivers
