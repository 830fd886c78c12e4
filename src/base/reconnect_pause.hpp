#pragma once

#include <algorithm>
#include <chrono>
#include <holdfast/clock.hpp>

#include "base/random.hpp"

namespace holdfast::base {

/// When a lost connection may be made again: at once if it was useful, else after a pause that
/// doubles from failure to failure, from 5 ms to a second. A connection that was useless counts as
/// a failure: a server that accepts every client and then hangs up, or is only a replica, would see
/// its clients reconnect without a pause for ever. For one thread at a time.
class reconnect_pause {
 public:
  /// An attempt has failed, or a connection has ended.
  void begin(bool was_of_use, boot_time now) noexcept {
    using namespace std::chrono_literals;
    length_ = was_of_use ? 0ns : std::clamp<std::chrono::nanoseconds>(length_ * 2, 5ms, 1s);
    until_ = now + jittered(length_);
  }
  /// Zero before the first call of begin().
  boot_time until() const noexcept { return until_; }

 private:
  std::chrono::nanoseconds length_{0};
  boot_time until_{};
};

}  // namespace holdfast::base
