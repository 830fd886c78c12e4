#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/clock.hpp>

/// Conversion of times to the microseconds of commands, replies and records.
namespace holdfast::store {

constexpr std::int64_t micros(std::chrono::nanoseconds d) noexcept {
  return std::chrono::duration_cast<std::chrono::microseconds>(d).count();
}
/// Since the clock began.
constexpr std::int64_t micros(boot_time t) noexcept { return micros(t.time_since_epoch()); }

inline boot_time after(boot_time now, std::int64_t us) noexcept {
  return saturated_add(now, std::chrono::microseconds(us));
}

}  // namespace holdfast::store
