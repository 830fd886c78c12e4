#pragma once

#include <holdfast/testing.hpp>
#include <utility>

namespace harness {

/// A clock that stands still until `time` is moved, to derive from: a test's clock overrides what
/// the test is about.
class still_clock : public holdfast::clock {
 public:
  holdfast::boot_time now() const noexcept override { return time.now(); }
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  holdfast::boot_time until) override {
    time.wait_until(lock, cv, until);
  }
  std::chrono::nanoseconds sleep_for(holdfast::boot_time until) const noexcept override {
    return time.sleep_for(until);
  }
  int on_advance(std::function<void()> wake) override { return time.on_advance(std::move(wake)); }
  void forget(int id) noexcept override { time.forget(id); }

  holdfast::testing::fake_clock time;
};

}  // namespace harness
