#pragma once

#include <algorithm>
#include <chrono>
#include <holdfast/clock.hpp>

#include "base/random.hpp"

namespace holdfast::base {

/// When a connection that has gone may be made again: at once if it was of use, else after a pause
/// that doubles from failure to failure, 5 ms to a second. A connection that was made for nothing
/// is as bad as none: a server that lets everybody in and then hangs up, or is only a replica,
/// would see its clients come back for ever. For one thread at a time.
class reconnect_pause {
 public:
  /// An attempt failed, or a connection ended.
  void begin(bool was_of_use, boot_time now) noexcept {
    using namespace std::chrono_literals;
    length_ = was_of_use ? 0ns : std::clamp<std::chrono::nanoseconds>(length_ * 2, 5ms, 1s);
    until_ = now + jittered(length_);
  }
  /// 0 before the first.
  boot_time until() const noexcept { return until_; }

 private:
  std::chrono::nanoseconds length_{0};
  boot_time until_{};
};

}  // namespace holdfast::base
