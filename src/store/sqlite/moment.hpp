#pragma once

#include <time.h>

#include <holdfast/store/command.hpp>

namespace holdfast::store::sqlite {

inline std::int64_t read_clock_us(clockid_t which) noexcept {
  timespec t{};
  ::clock_gettime(which, &t);
  return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1'000;
}

/// Store time: the clocks of the machine, which are the same for all its processes.
inline moment read_moment() noexcept {
  return {read_clock_us(CLOCK_BOOTTIME), read_clock_us(CLOCK_REALTIME)};
}

}  // namespace holdfast::store::sqlite
