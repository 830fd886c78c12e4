#pragma once

#include <atomic>
#include <chrono>
#include <holdfast/clock.hpp>

namespace holdfast::engine {

/// One lease for the queue entries of all waiters of a session for a name. A poll by any waiter
/// renews the entries of all (capabilities::shared_queue_leases), so one waiter polls for the
/// others, once a second. A poll only detects a lost queue if its waiter was in the queue before
/// the loss. So it vouches for the waiters that joined later than this one; for the others only if
/// earlier polls cover the time until this waiter joined. Thread-safe.
class shared_queue_lease {
 public:
  /// A waiter that joined the queue at `joined` was still in it at `now`.
  void seen(boot_time joined, boot_time now) noexcept {
    boot_time until = intact_until_;
    while ((joined <= until || until == boot_time{}) && until < now &&
           !intact_until_.compare_exchange_weak(until, now)) {
    }
  }

  /// The queue was lost, or the store is away: waiters that have not noticed that have to poll
  /// again. Returns the new number of losses.
  unsigned lost() noexcept { return ++losses_; }
  unsigned losses() const noexcept { return losses_; }

  /// Returns `now` if the waiter that joined at `joined` has to poll now, else when it may have to.
  /// A waiter that cannot vouch for all leaves the poll to the others for twice as long.
  boot_time put_off(boot_time joined, boot_time now) noexcept {
    boot_time until = intact_until_;
    const boot_time due = until + (joined <= until ? 1 : 2) * poll_every;
    return now >= due && intact_until_.compare_exchange_strong(until, now) ? now : due;
  }

 private:
  static constexpr std::chrono::seconds poll_every{1};

  /// The last time for which a poll has confirmed the queue.
  std::atomic<boot_time> intact_until_{};
  std::atomic<unsigned> losses_{0};
};

}  // namespace holdfast::engine
