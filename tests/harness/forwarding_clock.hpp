#pragma once

#include <holdfast/clock.hpp>
#include <utility>

namespace harness {

/// Forwards all calls to another clock, which outlives it. A base class: a test's clock overrides
/// what the test is about.
class forwarding_clock : public holdfast::clock {
 public:
  explicit forwarding_clock(holdfast::clock& to = holdfast::real_clock()) : to_(to) {}

  holdfast::boot_time now() const noexcept override { return to_.now(); }
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  holdfast::boot_time until) override {
    to_.wait_until(lock, cv, until);
  }
  std::chrono::nanoseconds sleep_for(holdfast::boot_time until) const noexcept override {
    return to_.sleep_for(until);
  }
  int on_advance(std::function<void()> wake) override { return to_.on_advance(std::move(wake)); }
  void forget(int id) noexcept override { to_.forget(id); }

 private:
  holdfast::clock& to_;
};

}  // namespace harness
