#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <holdfast/clock.hpp>

namespace holdfast::base {

/// Until when the first of so many is tried, of those that share the time until `until`: one that
/// does not answer leaves some of it to those behind it.
inline boot_time share_until(boot_time until, std::size_t left,
                             boot_time now = boot_clock::now()) noexcept {
  const auto all = std::max(until - now, boot_time::duration::zero());
  return now + all / static_cast<std::int64_t>(std::max<std::size_t>(left, 1));
}

}  // namespace holdfast::base
