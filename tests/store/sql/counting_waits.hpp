#pragma once

#include <atomic>

#include "harness/forwarding_clock.hpp"

namespace sql_test {

/// Counts the waits of threads for a connection.
class counting_waits final : public harness::forwarding_clock {
 public:
  using forwarding_clock::forwarding_clock;
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  holdfast::boot_time until) override {
    ++waits;
    forwarding_clock::wait_until(lock, cv, until);
  }
  std::atomic<int> waits{0};
};

}  // namespace sql_test
