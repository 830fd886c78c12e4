#include "store/memory/memory.hpp"

#include "base/option.hpp"
#include "drivers/join.hpp"

namespace holdfast::drivers {

namespace {

opened open_memory(const store::opening& how) {
  auto u = base::parse_url(how.url);
  if (!u) return std::move(u.error());
  if (!u->options.empty()) return base::unknown_option(u->scheme, u->options.front().first, {});
  return family::over(store::memory::open_memory(u->path, how.clock));
}

}  // namespace

const store::driver& memory() noexcept {
  static constexpr store::driver all{"memory", open_memory};
  return all;
}

}  // namespace holdfast::drivers
