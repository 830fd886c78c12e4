#pragma once

#include <atomic>
#include <holdfast/testing.hpp>

#include "harness/eventually.hpp"

namespace harness {

/// Time that stands still, and counts how often threads were woken that wait on it.
class counting_clock final : public holdfast::clock {
 public:
  int wakes() const { return wakes_; }
  /// Until so many threads wait that were told something before, or not.
  void until_asleep(int threads) const {
    int looks = 0;  // a thread that was told may still look asleep at the first
    eventually("all sleep", [&] { return ++looks > 1 && asleep_ == threads; });
  }

  holdfast::boot_time now() const noexcept override { return still_.now(); }
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  holdfast::boot_time until) override {
    ++asleep_;
    still_.wait_until(lock, cv, until);
    --asleep_;
    ++wakes_;
  }
  std::chrono::nanoseconds sleep_for(holdfast::boot_time until) const noexcept override {
    return still_.sleep_for(until);
  }
  int on_advance(std::function<void()> wake) override { return still_.on_advance(wake); }
  void forget(int id) noexcept override { still_.forget(id); }

 private:
  holdfast::testing::fake_clock still_;
  std::atomic<int> asleep_{0};
  std::atomic<int> wakes_{0};
};

}  // namespace harness
