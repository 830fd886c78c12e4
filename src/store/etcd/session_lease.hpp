#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "store/etcd/channel.hpp"

namespace holdfast::store::etcd {

/// The etcd lease of all keys of a session, kept alive by a thread. The servers delete the keys
/// when they have received nothing for the lease's TTL.
///
/// A server that takes itself for the leader answers a keep-alive; a server that was stopped does
/// so for a moment after it has resumed. So a keep-alive counts only together with a later request
/// that needed a majority, both in the same term: then the leader has answered the keep-alive.
/// Thread-safe.
class session_lease {
 public:
  /// `on_end` is called once, by a thread of this library, when the servers have ended the lease.
  static result<std::shared_ptr<session_lease>> grant(channel& to, std::function<void()> on_end);
  /// Revokes the lease, and with it all its keys, if the servers can be reached.
  ~session_lease();
  session_lease(const session_lease&) = delete;
  session_lease& operator=(const session_lease&) = delete;

  std::int64_t id() const noexcept { return id_; }
  bool over() const noexcept { return over_; }
  /// To be called when the servers no longer know the lease.
  void end();

  /// How far the servers' history goes, according to an answer.
  struct history {
    std::uint64_t term = 0;
    std::int64_t revision = 0;
    bool is_before(const history& h) const noexcept {
      return term < h.term || revision < h.revision;
    }
  };
  /// The longest one so far. To be read before a request is sent.
  history seen() const noexcept;
  /// A majority answered a request, before which `before` had been seen. If their history is
  /// shorter, the servers were restored from a backup. Keys that this session has removed since,
  /// and their lease, may be there again: the lease ends, so that nobody keeps them.
  void goes(const history& now, const history& before);

  /// A majority agreed, in that term, to a request sent at `asked`.
  void agreed(std::uint64_t term, boot_time asked) noexcept;
  /// The servers cannot end the lease before this time: three quarters of the TTL after a
  /// keep-alive.
  boot_time safe_until() const noexcept;
  /// The revision of the session's mark, which etcd.cpp compares; 0: there is none. Only the latest
  /// revision counts, and a session that has ended has none.
  std::int64_t settled_at() const noexcept { return settled_at_; }
  void settled_at(std::int64_t revision) noexcept {
    auto known = settled_at_.load();
    while ((revision == 0 || revision > known) &&
           !settled_at_.compare_exchange_weak(known, revision)) {
    }
  }
  /// How far an agreement extends safe_until(), at least.
  std::chrono::nanoseconds safe_span() const noexcept { return ttl_ * 3 / 4 - ttl_ / 8; }

 private:
  session_lease(channel& to, std::function<void()> on_end) : to_(to), on_end_(std::move(on_end)) {}
  void keep();
  bool keep_alive();
  void ask_how_far(const history& before);

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
  bool unknown_ = false;  ///< in the last answer; used by the thread only
  kept last_;
  boot_time proven_{};
  history seen_;
  std::thread thread_;
};

}  // namespace holdfast::store::etcd
