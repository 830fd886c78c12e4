#pragma once

#include <algorithm>
#include <chrono>
#include <holdfast/testing.hpp>

namespace harness {

/// Moves the clock on to the next time at which a thread wakes, if that is within `most`. No time
/// passes for threads that are busy, however slow the machine is.
inline void to_next_wake(holdfast::testing::fake_clock& clock, std::chrono::nanoseconds most) {
  const std::chrono::nanoseconds wait = clock.next_wake() - clock.now();
  if (wait <= most) clock.advance(std::max(wait, std::chrono::nanoseconds::zero()));
}

}  // namespace harness
