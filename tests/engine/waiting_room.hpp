#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <holdfast/testing.hpp>
#include <mutex>

namespace engine_test {

/// A clock that stands still, and knows how many threads of the test sleep: to move it on when all
/// have done what there was to do, and not before.
class waiting_room final : public holdfast::clock {
 public:
  holdfast::boot_time now() const noexcept override { return time_.now(); }
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  holdfast::boot_time until) override {
    if (of_test) ++asleep;
    time_.wait_until(lock, cv, until);
    if (of_test) --asleep;
  }
  std::chrono::nanoseconds sleep_for(holdfast::boot_time until) const noexcept override {
    return time_.sleep_for(until);
  }
  int on_advance(std::function<void()> wake) override { return time_.on_advance(std::move(wake)); }
  void forget(int id) noexcept override { time_.forget(id); }
  void advance(std::chrono::nanoseconds by) { time_.advance(by); }

  static inline thread_local bool of_test = false;  ///< each sets it for itself
  std::atomic<int> asleep{0};

 private:
  holdfast::testing::fake_clock time_;
};

}  // namespace engine_test
