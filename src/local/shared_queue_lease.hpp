#pragma once

#include <atomic>
#include <chrono>
#include <holdfast/clock.hpp>

namespace holdfast::engine {

/// Where all of a session who wait for a name stand in its queue. Whoever of them looks keeps the
/// places of all (capabilities::shared_queue_leases): so one looks for the others, once a second.
/// Thread-safe.
class shared_queue_lease {
 public:
  /// Somebody looked.
  void seen(boot_time when) noexcept { seen_at_ = when; }

  /// It was lost, or the store is away: who does not know that yet has to come again. Returns what
  /// they know then.
  unsigned lost() noexcept { return ++losses_; }
  unsigned losses() const noexcept { return losses_; }

  /// `now` if it is the caller's turn to look, else when it may be.
  boot_time put_off(boot_time now) noexcept {
    boot_time seen = seen_at_;
    if (now - seen >= look_every && seen_at_.compare_exchange_strong(seen, now)) return now;
    return seen + look_every;
  }

 private:
  static constexpr std::chrono::seconds look_every{1};

  std::atomic<boot_time> seen_at_{};
  std::atomic<unsigned> losses_{0};
};

}  // namespace holdfast::engine
