#pragma once

#include <algorithm>
#include <holdfast/clock.hpp>

namespace holdfast::store {

/// Until when a thread sleeps that waits for the first of many times. It keeps to the first time
/// that it was woken for, also if what was due then is gone when it looks: else each thing that
/// comes and goes quickly would wake it, and to wake a thread costs as much as a round trip. No
/// round trip, no system call. Guarded by the mutex that the thread waits with.
class wake_time {
 public:
  /// Something is due at that time: whether the thread has to be woken, as it would sleep longer.
  bool comes_before(boot_time due) noexcept {
    if (due >= until_) return false;
    until_ = due;
    return true;
  }

  /// How long to sleep now, if `next` is what is due first.
  boot_time sleep_until(boot_time next, boot_time now) noexcept {
    if (until_ <= now) until_ = forever;
    return until_ = std::min(until_, next);
  }

 private:
  boot_time until_ = forever;
};

}  // namespace holdfast::store
