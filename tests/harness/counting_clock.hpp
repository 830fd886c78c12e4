#pragma once

#include <atomic>

#include "harness/eventually.hpp"
#include "harness/still_clock.hpp"

namespace harness {

/// A clock that stands still, and counts how often threads that wait on it were woken.
class counting_clock final : public still_clock {
 public:
  int wakes() const { return wakes_; }
  /// Blocks until this many threads wait on the clock, including those that were notified before.
  void until_asleep(int threads) const {
    int looks = 0;  // a notified thread may still look asleep at the first check
    eventually("all sleep", [&] { return ++looks > 1 && asleep_ == threads; });
  }

  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  holdfast::boot_time until) override {
    ++asleep_;
    time.wait_until(lock, cv, until);
    --asleep_;
    ++wakes_;
  }

 private:
  std::atomic<int> asleep_{0};
  std::atomic<int> wakes_{0};
};

}  // namespace harness
