#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <holdfast/clock.hpp>
#include <mutex>

namespace holdfast::store::zookeeper {

/// The time until which the servers certainly keep a session. They count from the last message of
/// the client, as far as the leader was told of it. Only answered requests of holdfast count here:
/// the client's own pings are late, without any report, when the process is stopped, or while a
/// request or a ping has no answer. So a request is sent often enough just for this purpose.
/// Thread-safe.
class session_time {
 public:
  using span = std::chrono::nanoseconds;

  /// To be created before the session is opened.
  session_time(const clock& on, span session);

  /// Sets the length of the session as the servers have agreed.
  void agreed(span session) noexcept;
  span session() const noexcept;

  /// Notes a request sent now. Returns the time from which the session counts if the leader
  /// answers.
  boot_time sent(boot_time now) noexcept;
  /// A server has answered the request sent at that time.
  void answered(boot_time sent) noexcept;
  /// The leader has answered a request that counts from that time.
  void proved(boot_time counts_from) noexcept;

  boot_time safe_until() const noexcept;
  span safe_span() const noexcept;
  /// When a request has to be sent at the latest.
  boot_time speaks_at() const noexcept;

  /// Later answers count for nothing: the clock may be gone.
  void end() noexcept;

 private:
  struct word {
    boot_time said;
    boot_time known_at;  ///< when the leader knows it
  };
  static constexpr std::size_t most_pending = 16;

  mutable std::mutex mutex_;
  const clock* clock_;
  span session_;
  boot_time last_said_;
  boot_time known_;  ///< the leader knows of the requests sent until then
  boot_time proven_{};
  std::array<word, most_pending> pending_{};  ///< a ring, in order of sending
  std::size_t first_ = 0;
  std::size_t end_ = 0;
};

}  // namespace holdfast::store::zookeeper
