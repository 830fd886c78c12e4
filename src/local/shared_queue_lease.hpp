#pragma once

#include <atomic>
#include <chrono>
#include <holdfast/clock.hpp>

namespace holdfast::engine {

/// One lease of the queue entries of all waiters of a session for a name. A poll by any of them
/// renews the entries of all (capabilities::shared_queue_leases): so one polls for the others, once
/// a second. A poll finds the queue lost only if the waiter was in it before: so it speaks for
/// those who joined later than this waiter, and for others only if nothing was unknown in between.
/// Thread-safe.
class shared_queue_lease {
 public:
  /// A waiter that joined the queue then was still in it now.
  void seen(boot_time joined, boot_time now) noexcept {
    boot_time until = intact_until_;
    while ((joined <= until || until == boot_time{}) && until < now &&
           !intact_until_.compare_exchange_weak(until, now)) {
    }
  }

  /// It was lost, or the store is away: waiters that do not know that yet have to come again.
  /// Returns what they know then.
  unsigned lost() noexcept { return ++losses_; }
  unsigned losses() const noexcept { return losses_; }

  /// `now` if it is the turn of the waiter that joined then to poll, else when it may be. One that
  /// could not speak for all leaves it to the others for twice as long.
  boot_time put_off(boot_time joined, boot_time now) noexcept {
    boot_time until = intact_until_;
    const boot_time due = until + (joined <= until ? 1 : 2) * poll_every;
    return now >= due && intact_until_.compare_exchange_strong(until, now) ? now : due;
  }

 private:
  static constexpr std::chrono::seconds poll_every{1};

  std::atomic<boot_time> intact_until_{};  ///< as far as a waiter that was in it knows
  std::atomic<unsigned> losses_{0};
};

}  // namespace holdfast::engine
