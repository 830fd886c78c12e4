#pragma once

#include <atomic>

#include "harness/still_clock.hpp"

namespace engine_test {

/// A clock that stands still, and counts the sleeping threads of the test, so that it is advanced
/// when all have done their work, and not before.
class waiting_room final : public harness::still_clock {
 public:
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  holdfast::boot_time until) override {
    if (of_test) ++asleep;
    time.wait_until(lock, cv, until);
    if (of_test) --asleep;
  }
  void advance(std::chrono::nanoseconds by) { time.advance(by); }

  static inline thread_local bool of_test = false;  ///< each thread sets it for itself
  std::atomic<int> asleep{0};
};

}  // namespace engine_test
