#include "base/random.hpp"

#include <sys/random.h>

#include <cerrno>

#include "base/hex.hpp"

namespace holdfast::base {

std::uint64_t random_bits() noexcept {
  std::uint64_t bits = 0;
  while (::getrandom(&bits, sizeof bits, 0) != sizeof bits && errno == EINTR) {
  }
  return bits;
}

std::string random_id() { return in_hex(random_bits()); }

std::chrono::nanoseconds jittered(std::chrono::nanoseconds d) noexcept {
  const auto half = static_cast<std::uint64_t>(d.count() / 2);
  return d - std::chrono::nanoseconds(half == 0 ? 0 : random_bits() % half);
}

}  // namespace holdfast::base
