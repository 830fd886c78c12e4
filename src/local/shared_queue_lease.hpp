#pragma once

#include <atomic>
#include <chrono>
#include <holdfast/clock.hpp>

namespace holdfast::engine {

/// One lease of the queue entries of all waiters of a session for a name. A poll by any of them
/// renews the entries of all (capabilities::shared_queue_leases): so one polls for the others, once
/// a second. Thread-safe.
class shared_queue_lease {
 public:
  /// A waiter polled.
  void seen(boot_time when) noexcept { seen_at_ = when; }

  /// It was lost, or the store is away: waiters that do not know that yet have to come again.
  /// Returns what they know then.
  unsigned lost() noexcept { return ++losses_; }
  unsigned losses() const noexcept { return losses_; }

  /// `now` if it is the caller's turn to poll, else when it may be.
  boot_time put_off(boot_time now) noexcept {
    boot_time seen = seen_at_;
    if (now - seen >= poll_every && seen_at_.compare_exchange_strong(seen, now)) return now;
    return seen + poll_every;
  }

 private:
  static constexpr std::chrono::seconds poll_every{1};

  std::atomic<boot_time> seen_at_{};
  std::atomic<unsigned> losses_{0};
};

}  // namespace holdfast::engine
