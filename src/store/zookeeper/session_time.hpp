#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <holdfast/clock.hpp>
#include <mutex>

namespace holdfast::store::zookeeper {

/// Until when the servers surely keep a session. They count from what they heard of the client
/// last, as far as the leader was told of it. What counts as heard is what we asked ourselves, and
/// was answered: the client's own pings come late, and nobody tells us, when the process stands
/// still, or while a request or a ping has no answer. So something is asked often enough, for
/// nothing else. Thread-safe.
class session_time {
 public:
  using span = std::chrono::nanoseconds;

  /// Before the session is opened.
  session_time(const clock& on, span session);

  /// How long a session is, as the servers say.
  void agreed(span session) noexcept;

  /// Something is sent now. Returns from when the session may be counted if the leader answers.
  boot_time sent(boot_time now) noexcept;
  /// A server has answered what was sent then.
  void answered(boot_time sent) noexcept;
  /// The leader has answered what counts from then.
  void proved(boot_time counts_from) noexcept;

  boot_time safe_until() const noexcept;
  span safe_span() const noexcept;
  /// When something has to be sent, if nothing is before.
  boot_time speaks_at() const noexcept;

  /// Answers that come now count for nothing: the clock may be gone.
  void end() noexcept;

 private:
  struct word {
    boot_time said;
    boot_time known_at;  ///< to the leader
  };
  static constexpr std::size_t most_pending = 16;

  mutable std::mutex mutex_;
  const clock* clock_;
  span session_;
  boot_time last_said_;
  boot_time known_;  ///< the leader has been told of what was said then
  boot_time proven_{};
  std::array<word, most_pending> pending_{};  ///< a ring, in their order
  std::size_t first_ = 0;
  std::size_t end_ = 0;
};

}  // namespace holdfast::store::zookeeper
