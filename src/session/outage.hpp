#pragma once

#include <algorithm>
#include <atomic>
#include <holdfast/clock.hpp>
#include <mutex>

namespace holdfast::engine {

/// Remembers since when a session's store has not answered. Waiters that are queued in this process
/// ask one after the other; the time for which they keep trying (session_options::store_timeout)
/// counts from the same moment for all of them.
class outage {
 public:
  void answered() noexcept {
    if (since_.load(std::memory_order_relaxed) == forever) return;
    const std::lock_guard guard{mutex_};
    since_.store(forever, std::memory_order_relaxed);
  }
  /// A request that was sent at `sent` has failed; returns since when the store is away. If no
  /// request was made for a while before it, the earlier outage does not count: the store may have
  /// been back.
  boot_time failed(boot_time sent, boot_time now) noexcept {
    const std::lock_guard guard{mutex_};
    const boot_time known = since_.load(std::memory_order_relaxed);
    const bool unknown = known == forever || sent > saturated_add(last_, unknown_after);
    if (unknown) since_.store(now, std::memory_order_relaxed);
    last_ = now;
    return unknown ? now : known;
  }

 private:
  /// Longer than the longest pause between two attempts.
  static constexpr std::chrono::seconds unknown_after{2};

  std::mutex mutex_;
  std::atomic<boot_time> since_{forever};
  boot_time last_{};
};

}  // namespace holdfast::engine
