#pragma once

#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>
#include <holdfast/result.hpp>
#include <holdfast/session.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace holdfast {

/// Who goes first when readers and writers wait.
enum class preference {
  fifo,    ///< order of arrival: nobody starves, and a waiting writer holds up later readers
  reader,  ///< readers pass waiting writers: writers may starve
  writer,  ///< writers pass waiting readers: readers may starve
};

struct shared_mutex_options : lock_options {
  /// Applies to the acquisitions of this object. Use the same preference in every program: the
  /// store does not check it.
  holdfast::preference preference = preference::fifo;
};

/// Many readers or one writer, by name.
///
///     held by     │ lock        │ lock_shared           │ downgrade        │ try_upgrade
///     ────────────┼─────────────┼───────────────────────┼──────────────────┼─────────────────────
///     nobody      │ held        │ held                  │ –                │ –
///     one reader  │ queue       │ held, or behind a     │ –                │ writer, if it is the
///     readers     │ queue       │ waiting writer (fifo) │ –                │ only reader; else no
///     a writer    │ queue       │ queue                 │ reader; waiting  │ –
///                 │             │                       │ readers are woken│
///
/// Meets SharedLockable and SharedTimedLockable (std::shared_lock) and what mutex meets. Readers of
/// one session that hold at the same time share one hold at the store, with one fence: the first
/// acquires it, the last releases it, and readers in between cost no round trip. Each reader has a
/// lease of its own, but extend() extends the hold of all of them. When the hold is granted, all
/// waiting readers of the session with the same options share it, except those that came after a
/// waiting writer of the session. When a writer of the same session waits, no further reader joins.
/// When a writer of another session waits, no further reader joins once the store's notification
/// has come; if that is lost, a quarter of a second later. With max_hold, or without renewal, a
/// reader has a hold of its own. Thread-safe. Errors and costs as mutex. At most 2^30 readers.
class shared_mutex {
 public:
  shared_mutex(session s, std::string name, shared_mutex_options options = {});
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;
  ~shared_mutex();

  // -- exclusive: Lockable, TimedLockable
  void lock() { (void)lock_within(exclusive, no_limit, {}); }
  [[nodiscard]] bool try_lock() { return lock_within(exclusive, one_try, {}); }
  [[nodiscard]] bool try_lock_for(any_duration timeout) {
    return lock_within(exclusive, timeout.wait, {});
  }
  [[nodiscard]] bool try_lock_until(any_time_point t) { return lock_within(exclusive, t.wait, {}); }
  [[nodiscard]] bool lock(std::stop_token stop) {
    return lock_within(exclusive, no_limit, std::move(stop));
  }
  void unlock() noexcept;

  // -- shared: SharedLockable, SharedTimedLockable
  void lock_shared() { (void)lock_within(shared, no_limit, {}); }
  [[nodiscard]] bool try_lock_shared() { return lock_within(shared, one_try, {}); }
  [[nodiscard]] bool try_lock_shared_for(any_duration timeout) {
    return lock_within(shared, timeout.wait, {});
  }
  [[nodiscard]] bool try_lock_shared_until(any_time_point t) {
    return lock_within(shared, t.wait, {});
  }
  [[nodiscard]] bool lock_shared(std::stop_token stop) {
    return lock_within(shared, no_limit, std::move(stop));
  }
  void unlock_shared() noexcept;

  /// This thread's exclusive hold becomes a shared one, with no moment in between for another
  /// writer. The fence stays the same. One round trip (ZooKeeper, etcd: two). Throws
  /// errc::not_owner, lost; errc::unavailable if the store is away: then the hold is exclusive as
  /// before. If the store does not say whether the downgrade was carried out, the library asks
  /// again for session_options::store_timeout. After that the hold is lost, because readers may
  /// already hold the lock.
  void downgrade();
  /// This thread's shared hold becomes exclusive if it is the only one. Otherwise returns false at
  /// once, and the hold stays shared, so two readers never wait for each other. On ZooKeeper and
  /// etcd, and on PostgreSQL with mode=session, it also returns false while a writer waits. The
  /// exclusive hold has a new fence. Costs as many round trips as downgrade(), and is repeated like
  /// it. Throws errc::not_owner, lost;
  /// errc::unavailable: then the hold is shared as before.
  [[nodiscard]] bool try_upgrade();

  // -- native handles
  lease acquire(std::stop_token stop = {}) { return take(exclusive, std::move(stop)); }
  [[nodiscard]] std::optional<lease> try_acquire() {
    return acquire_within(exclusive, one_try, {});
  }
  [[nodiscard]] std::optional<lease> try_acquire_for(any_duration timeout,
                                                     std::stop_token stop = {}) {
    return acquire_within(exclusive, timeout.wait, std::move(stop));
  }
  [[nodiscard]] std::optional<lease> try_acquire_until(any_time_point t,
                                                       std::stop_token stop = {}) {
    return acquire_within(exclusive, t.wait, std::move(stop));
  }
  lease acquire_shared(std::stop_token stop = {}) { return take(shared, std::move(stop)); }
  [[nodiscard]] std::optional<lease> try_acquire_shared() {
    return acquire_within(shared, one_try, {});
  }
  [[nodiscard]] std::optional<lease> try_acquire_shared_for(any_duration timeout,
                                                            std::stop_token stop = {}) {
    return acquire_within(shared, timeout.wait, std::move(stop));
  }
  [[nodiscard]] std::optional<lease> try_acquire_shared_until(any_time_point t,
                                                              std::stop_token stop = {}) {
    return acquire_within(shared, t.wait, std::move(stop));
  }
  /// As downgrade() and try_upgrade(), for a lease of this lock. Throw errc::not_owner for any
  /// other.
  void downgrade(lease& held);
  [[nodiscard]] bool try_upgrade(lease& held);

  /// About this thread's hold, shared or exclusive; as in mutex.
  std::uint64_t fence() const noexcept;
  void check() const;
  std::stop_token lost() const;
  const std::string& name() const noexcept;

 private:
  friend clock& clock_of(const shared_mutex& m) noexcept;
  friend struct detail::access;
  enum mode { exclusive, shared };
  bool lock_within(mode m, wait_time wait, std::stop_token stop);
  std::optional<lease> acquire_within(mode m, wait_time wait, std::stop_token stop);
  lease take(mode m, std::stop_token stop);
  struct state;
  std::shared_ptr<state> state_;
};

/// downgrade(held) and try_upgrade(held) without a thread (async.hpp). Keep the lease until the
/// result comes. Throw errc::not_owner for a lease of another lock; if the lease is released
/// meanwhile, the result is errc::not_owner. Costs as downgrade() and try_upgrade(); their first
/// round trip is shared with the other requests of the session.
pending<done> async_downgrade(shared_mutex& lock, const lease& held);
pending<bool> async_upgrade(shared_mutex& lock, const lease& held);

}  // namespace holdfast
