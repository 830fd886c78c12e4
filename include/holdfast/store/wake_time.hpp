#pragma once

#include <algorithm>
#include <holdfast/clock.hpp>

namespace holdfast::store {

/// The time until which a thread sleeps while it waits for the first of many due times. The thread
/// keeps its wake-up time even if the entry that was due then has been removed meanwhile. Otherwise
/// every entry that comes and goes quickly would wake the thread, and waking a thread costs as much
/// as a round trip. No round trip, no system call. Guarded by the mutex that the thread waits with.
class wake_time {
 public:
  /// Adds a due time. Returns whether the thread must be woken, because it would sleep longer.
  bool comes_before(boot_time due) noexcept {
    if (due >= until_) return false;
    until_ = due;
    return true;
  }

  /// Until when to sleep now; `next` is the first due time.
  boot_time sleep_until(boot_time next, boot_time now) noexcept {
    if (until_ <= now) until_ = forever;
    return until_ = std::min(until_, next);
  }

 private:
  boot_time until_ = forever;
};

}  // namespace holdfast::store
