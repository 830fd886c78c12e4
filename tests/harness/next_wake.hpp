#pragma once

#include <algorithm>
#include <chrono>
#include <holdfast/testing.hpp>

#include "harness/threads_at_rest.hpp"

namespace harness {

/// Advances the clock as soon as all threads sleep. So no time passes for a thread that has work to
/// do, however slow the machine is.
inline void pass(holdfast::testing::fake_clock& clock, std::chrono::nanoseconds time) {
  until_threads_rest();
  clock.advance(time);
}

/// The same, to the next time at which a thread wakes, if that is within `most`.
inline void to_next_wake(holdfast::testing::fake_clock& clock, std::chrono::nanoseconds most) {
  until_threads_rest();
  const std::chrono::nanoseconds wait = clock.next_wake() - clock.now();
  if (wait <= most) clock.advance(std::max(wait, std::chrono::nanoseconds::zero()));
}

}  // namespace harness
