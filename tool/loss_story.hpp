#pragma once

#include <chrono>
#include <condition_variable>
#include <holdfast/clock.hpp>
#include <holdfast/observer.hpp>
#include <mutex>
#include <optional>
#include <string>

namespace holdfast::tool {

/// Collects the session's events about one lock, to explain its loss. Thread-safe.
class loss_story final : public observer {
 public:
  void on_event(const event& e) override;

  /// Waits until the library has reported the loss, which it does as soon as one of its threads
  /// runs. After `patience` the story goes without it.
  void wait_for_loss(std::chrono::milliseconds patience);

  /// Half a sentence: "the store did not answer until the lease ended: no renewal succeeded since
  /// 2026-01-31T02:00:12.432Z (9.5s), the last one failed: connection refused". `paused`: how long
  /// this process was due to run and did not.
  std::string why(std::chrono::nanoseconds paused) const;

 private:
  std::string trouble() const;

  mutable std::mutex mutex_;
  std::condition_variable told_;
  bool lost_ = false;
  std::string detail_;
  bool in_trouble_ = false;  ///< renewals fail, or do not return
  std::string last_failure_;
  boot_time renewed_at_ = boot_clock::now();
  std::chrono::system_clock::time_point renewed_on_ = std::chrono::system_clock::now();
};

}  // namespace holdfast::tool
