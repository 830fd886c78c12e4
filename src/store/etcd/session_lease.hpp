#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "store/etcd/channel.hpp"

namespace holdfast::store::etcd {

/// The etcd lease that everything of a session hangs on, kept alive by a thread. The servers delete
/// its keys when they have heard nothing for its TTL.
///
/// A server that takes itself for the leader answers a keep-alive, and one that was asleep does so
/// for a moment after it woke. What is believed is therefore a keep-alive, and after it something
/// that a majority had to agree to, both in the same term: then it was the leader that answered.
/// Thread-safe.
class session_lease {
 public:
  /// `on_end`: called once by a thread of ours, when the servers have ended it.
  static result<std::shared_ptr<session_lease>> grant(channel& to, std::function<void()> on_end);
  /// Gives it back, and with it all its keys, if the servers can be told.
  ~session_lease();
  session_lease(const session_lease&) = delete;
  session_lease& operator=(const session_lease&) = delete;

  std::int64_t id() const noexcept { return id_; }
  bool over() const noexcept { return over_; }
  /// The servers say that they do not know it any more.
  void end();

  /// A majority agreed, in that term, to what was asked then.
  void agreed(std::uint64_t term, boot_time asked) noexcept;
  /// The servers can not end it before. Goes three quarters of the TTL beyond a keep-alive.
  boot_time safe_until() const noexcept;
  /// The revision of the session's mark, which etcd.cpp compares; 0: there is none. Only the latest
  /// counts, and a session that has ended has none.
  std::int64_t settled_at() const noexcept { return settled_at_; }
  void settled_at(std::int64_t revision) noexcept {
    auto known = settled_at_.load();
    while ((revision == 0 || revision > known) &&
           !settled_at_.compare_exchange_weak(known, revision)) {
    }
  }
  /// How far an agreement moves that, at the least.
  std::chrono::nanoseconds safe_span() const noexcept { return ttl_ * 3 / 4 - ttl_ / 8; }

 private:
  session_lease(channel& to, std::function<void()> on_end) : to_(to), on_end_(std::move(on_end)) {}
  void keep();
  bool keep_alive();

  struct kept {
    boot_time sent{};
    boot_time answered{};
    std::uint64_t term = 0;
  };
  channel& to_;
  const std::function<void()> on_end_;
  std::int64_t id_ = 0;
  std::chrono::nanoseconds ttl_{};
  std::atomic<bool> over_{false};
  std::atomic<std::int64_t> settled_at_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  kept last_;
  boot_time proven_{};
  std::thread thread_;
};

}  // namespace holdfast::store::etcd
