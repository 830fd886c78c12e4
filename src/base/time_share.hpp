#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <holdfast/clock.hpp>

namespace holdfast::base {

/// `left` attempts share the time until `until`; returns the time limit of the first. An attempt
/// without an answer leaves time for the others.
inline boot_time share_until(boot_time until, std::size_t left,
                             boot_time now = boot_clock::now()) noexcept {
  const auto all = std::max(until - now, boot_time::duration::zero());
  return now + all / static_cast<std::int64_t>(std::max<std::size_t>(left, 1));
}

}  // namespace holdfast::base
