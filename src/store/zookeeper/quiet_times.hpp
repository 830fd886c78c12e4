#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <holdfast/clock.hpp>
#include <mutex>

namespace holdfast::store::zookeeper {

/// When the client said nothing to the servers. It says something after a third of its session, but
/// not while a request has no answer. Thread-safe.
class quiet_times {
 public:
  using span = std::chrono::nanoseconds;

  /// So many requests go out, of a session of that length. Returns from when the session may be
  /// counted when the leader has answered them: what the client said in the last quarter of it, the
  /// leader may not have been told.
  boot_time sent(boot_time now, std::size_t requests, span session) noexcept {
    const std::lock_guard guard{mutex_};
    if (unanswered_ > 0) note_quiet_until(now, session);
    last_said_ = std::max(last_said_, now);
    unanswered_ += requests;
    if (until_ == boot_time{} || now >= until_ + session / 4) return now;
    return std::min(now, from_ + session / 4 + session / 3);
  }
  /// One of them has its answer, or will have none. The client speaks at once, if it is time.
  void answered(boot_time now, span session) noexcept {
    const std::lock_guard guard{mutex_};
    if (--unanswered_ == 0) note_quiet_until(now, session);
  }
  /// The leader itself was told of the session.
  void connected(boot_time now) noexcept {
    const std::lock_guard guard{mutex_};
    from_ = until_ = boot_time{};
    last_said_ = std::max(last_said_, now);
  }

 private:
  void note_quiet_until(boot_time now, span session) noexcept {
    if (now - last_said_ <= session / 3) return;
    from_ = last_said_;
    until_ = now;
  }

  mutable std::mutex mutex_;
  std::size_t unanswered_ = 0;
  boot_time last_said_{};
  boot_time from_{};  ///< the last time that was longer than a third; none: all are zero
  boot_time until_{};
};

}  // namespace holdfast::store::zookeeper
