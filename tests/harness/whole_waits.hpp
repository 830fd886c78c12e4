#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <holdfast/clock.hpp>
#include <mutex>

namespace harness {

/// The machine's time, without early wake-ups: on the real clock a waiting thread wakes each
/// second, here only at the end of its wait. So a waiter that is not notified in time sleeps until
/// the end.
class whole_waits final : public holdfast::clock {
 public:
  holdfast::boot_time now() const noexcept override { return holdfast::boot_clock::now(); }
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  holdfast::boot_time until) override {
    if (until == holdfast::forever) return cv.wait(lock);
    const bool is_long = until - now() > std::chrono::minutes(10);
    if (is_long) asleep = true;
    cv.wait_for(lock, until - now());
    if (is_long) asleep = false;
  }
  std::chrono::nanoseconds sleep_for(holdfast::boot_time until) const noexcept override {
    return holdfast::real_clock().sleep_for(until);
  }
  int on_advance(std::function<void()>) override { return 0; }
  void forget(int) noexcept override {}

  std::atomic<bool> asleep{false};  ///< a thread is, for longer than ten minutes
};

}  // namespace harness
