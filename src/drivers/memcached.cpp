#include "store/memcached/memcached.hpp"

#include "drivers/join.hpp"

namespace holdfast::drivers {

const store::driver& memcached() noexcept {
  using namespace store::memcached;
  static constexpr store::driver all{"memcached", open_over_family<read_options, open_memcached>};
  return all;
}

}  // namespace holdfast::drivers
