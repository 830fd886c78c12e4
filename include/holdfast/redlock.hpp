#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/lease.hpp>
#include <holdfast/result.hpp>
#include <holdfast/session.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast {

namespace engine {
class quorum_hold;
}

/// For one redlock.
struct redlock_options {
  /// As lock_options::lease; zero: that of the first session.
  std::chrono::milliseconds lease{0};
  /// How long a node may take to answer before it counts as silent.
  std::chrono::milliseconds node_timeout{200};
  /// For this long after its start, a flush, a failover to it, or its first use with this option,
  /// the vote of a node does not count, because it may have forgotten a hold. Choose at least the
  /// longest lease that any program takes, plus the difference of the clocks. Only for stores that
  /// report such events (Redis). Costs one more round trip for each acquisition. Zero: off.
  std::chrono::milliseconds trust_after{0};
  /// As lock_options::reason.
  std::string reason{};
};

/// The answer of one node.
enum class vote {
  granted,
  refused,    ///< another client holds the lock there, or the name is in use as another kind
  failed,     ///< an error, for example because the store is away
  silent,     ///< no answer within redlock_options::node_timeout, or not yet
  skipped,    ///< not asked, because it failed a moment ago
  untrusted,  ///< it may have forgotten a hold (redlock_options::trust_after)
};
std::string_view to_string(vote v) noexcept;

/// The result of a redlock. Like a lease it is move-only, and the destructor releases.
class [[nodiscard]] quorum_lease {
 public:
  quorum_lease() noexcept = default;  ///< holds nothing
  quorum_lease(quorum_lease&&) noexcept;
  quorum_lease& operator=(quorum_lease&&) noexcept;
  ~quorum_lease();
  explicit operator bool() const noexcept { return hold_ != nullptr; }

  /// Greater than that of every earlier holder, whatever nodes were in its majority. It protects
  /// the resource even if a majority of nodes has forgotten the lock. 0 if empty. No round trip.
  std::uint64_t fence() const noexcept;
  /// Stops when the lease is lost; see lease::lost(). No round trip.
  std::stop_token lost() const;
  lease_state state() const noexcept;
  std::chrono::nanoseconds remaining() const noexcept;
  /// Throws errc::lost unless it is held, and errc::not_owner if it is empty.
  void check() const;
  /// The latest answer of each node, in the order of the sessions. No round trip.
  std::vector<vote> votes() const;
  /// Releases it on all nodes at the same time, and waits until those that had granted it have
  /// answered, at most node_timeout. errc::lost if it had ended; errc::unavailable if no majority
  /// answered.
  std::error_code release() noexcept;

 private:
  friend struct detail::access;
  friend pending<done> async_release(quorum_lease held);
  friend status release_status(quorum_lease& held) noexcept;  // as that of a lease
  explicit quorum_lease(std::shared_ptr<engine::quorum_hold> hold) noexcept;
  std::shared_ptr<engine::quorum_hold> hold_;
};

/// Mutual exclusion by a majority of N independent stores, of any kind that can store a fence that
/// it is sent (capabilities::learns_fences). It works while a minority of the stores is away. Nodes
/// without fences (?dialect=redlock) can be combined only with each other; then fence() is 0.
///
///     form                       │ votes again │ each node has      │ renewed │ who releases
///     ───────────────────────────┼─────────────┼────────────────────┼─────────┼─────────────
///     lock()                     │ no limit    │ node_timeout       │ yes     │ the caller
///     lock(lease)                │ no limit    │ node_timeout       │ no      │ or its end
///     try_lock()                 │ never       │ node_timeout       │ yes     │ the caller
///     try_lock_for(wait)         │ until then  │ at most wait / N   │ yes     │ the caller
///     try_lock_for(wait, lease)  │ until then  │ at most wait / N   │ no      │ or its end
///
/// acquire(), try_acquire() and try_acquire_for() are the same with a quorum_lease. In each form up
/// to N − (N/2 + 1) nodes may fail: 2 of 5, 1 of 4 or 3, none of 2 or 1. An error of a node counts
/// as its vote.
///
/// All nodes are asked at the same time. The lock is held if a majority granted it, and the lease
/// has not ended yet, counted from before the first request, less 2 ms and 1 %, because clocks run
/// at different rates. Otherwise the lock is released on all nodes, including those without an
/// answer, and the client votes again after a random pause. A renewal asks all nodes, except those
/// that still owe the answer to an earlier renewal, and takes the lock again on nodes that have
/// forgotten it. Cost: N commands and one round trip, two if the nodes do not agree on the fence;
/// the same to release. There is no queue, so it is not fair, and a waiter votes again after pauses
/// that grow to a quarter of a second.
///
/// Exclusive only: a majority cannot count permits, as each node may have given its share to
/// others, and overlapping reader majorities can block writers indefinitely. docs/redlock.md says
/// what a majority of nodes cannot promise, and why the fence can. Thread-safe. Threads of a
/// process compete as processes do.
class redlock {
 public:
  /// No round trip. Throws errc::invalid_name; errc::unsupported for a store that cannot store a
  /// fence, and if only some of the stores have no fences. Throws errc::invalid_argument for no
  /// sessions, a session twice, a lease that the store does not offer, a node_timeout that is not
  /// positive, a negative trust_after, and a reason that is too long or has control characters. If
  /// two sessions are of one store, even under different URLs, the first acquisition throws
  /// errc::invalid_argument; docs/redlock.md says how the store is recognized.
  redlock(std::vector<session> nodes, std::string name, redlock_options options = {});
  redlock(const redlock&) = delete;
  redlock& operator=(const redlock&) = delete;
  ~redlock();

  // -- Lockable, TimedLockable: this thread's
  void lock() { (void)lock_within(no_limit, {}, {}); }
  void lock(std::chrono::milliseconds lease) { (void)lock_within(no_limit, lease, {}); }
  [[nodiscard]] bool try_lock() { return lock_within(one_try, {}, {}); }
  [[nodiscard]] bool try_lock_for(any_duration timeout,
                                  std::optional<std::chrono::milliseconds> lease = {}) {
    return lock_within(timeout.wait, lease, {});
  }
  [[nodiscard]] bool try_lock_until(any_time_point t) { return lock_within(t.wait, {}, {}); }
  void unlock() noexcept;

  // -- the native handle. Throw errc::unavailable if too few nodes answer (without a limit: for
  // session_options::store_timeout of the first), errc::kind_mismatch, cancelled. After a request
  // to stop, the lock is first released on the nodes that have granted it, within 0.2 s.
  quorum_lease acquire(std::stop_token stop = {}) { return take({}, std::move(stop)); }
  quorum_lease acquire(std::chrono::milliseconds lease, std::stop_token stop = {}) {
    return take(lease, std::move(stop));
  }
  [[nodiscard]] std::optional<quorum_lease> try_acquire() {
    return acquire_within(one_try, {}, {});
  }
  [[nodiscard]] std::optional<quorum_lease> try_acquire_for(
      any_duration timeout, std::optional<std::chrono::milliseconds> lease = {},
      std::stop_token stop = {}) {
    return acquire_within(timeout.wait, lease, std::move(stop));
  }

  /// The nodes' answers to this object's latest attempt, by any thread. No round trip.
  std::vector<vote> last_votes() const;
  /// How many attempts this object has made. No round trip.
  std::uint64_t attempts() const noexcept;
  /// This thread's hold; as in mutex.
  std::uint64_t fence() const;
  void check() const;
  std::stop_token lost() const;

 private:
  friend clock& clock_of(const redlock& m) noexcept;
  friend struct detail::access;
  using lease_time = std::optional<std::chrono::milliseconds>;
  bool lock_within(wait_time wait, lease_time lease, std::stop_token stop);
  std::optional<quorum_lease> acquire_within(wait_time wait, lease_time lease,
                                             std::stop_token stop);
  quorum_lease take(lease_time lease, std::stop_token stop);
  struct state;
  std::unique_ptr<state> state_;
};

/// acquire() and release() without a thread (async.hpp). The results come on a thread of the first
/// session that does nothing else, so they delay no other wait, and a node that hangs delays them
/// by no more than node_timeout. Throws errc::not_owner for an empty lease. An operation keeps the
/// sessions of all nodes alive until it has ended: stop it before you end them. After a request to
/// stop, the lock is first released on the nodes that have granted it, within 0.2 s.
pending<quorum_lease> async_acquire(redlock& lock, wait_limit limit = {},
                                    std::stop_token stop = {});
pending<done> async_release(quorum_lease held);

}  // namespace holdfast
