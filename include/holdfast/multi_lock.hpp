#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
#include <holdfast/timed.hpp>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast {

/// A member of a multi_lock: a mutex or fair_mutex, a shared_mutex in exclusive mode, or one permit
/// of a semaphore; with shared() a shared_mutex in shared mode, with permits() several permits.
/// (Not a recursive_mutex, because its levels belong to a thread.) The lock object may be destroyed
/// before the multi_lock.
class multi_member {
 public:
  multi_member(mutex& m);
  multi_member(shared_mutex& m);
  multi_member(semaphore& s);
  friend multi_member shared(shared_mutex& m);
  /// Throws errc::invalid_argument for a weight of 0 or above the capacity.
  friend multi_member permits(semaphore& s, std::uint32_t weight);

 private:
  friend struct detail::access;
  multi_member(semaphore& s, std::uint32_t weight);
  multi_member(shared_mutex& m, bool exclusive);
  struct state;
  std::shared_ptr<const state> state_;
};

multi_member shared(shared_mutex& m);
multi_member permits(semaphore& s, std::uint32_t weight);

/// The result of a multi_lock: all of its members, with one deadline. It is lost as a whole when
/// any member is lost. Move-only; the destructor releases. Thread-safe as lease is.
class [[nodiscard]] multi_lease {
 public:
  multi_lease() noexcept;  ///< holds nothing
  multi_lease(multi_lease&&) noexcept;
  multi_lease& operator=(multi_lease&&) noexcept;  ///< releases what it held before
  ~multi_lease();
  explicit operator bool() const noexcept { return state_ != nullptr; }

  /// One for each member, in the order in which the multi_lock was given them: pass each to the
  /// resource that the member protects. Empty if it holds nothing. No round trip.
  std::vector<std::uint64_t> fences() const;
  /// Stop is requested when any member is lost; see lease::lost(). No round trip.
  std::stop_token lost() const;
  /// The worst state of any member. No round trip.
  lease_state state() const noexcept;
  /// The shortest remaining time of any member. No round trip.
  std::chrono::nanoseconds remaining() const noexcept;
  /// Throws errc::lost, naming the member, unless all are held; errc::not_owner if it is empty. No
  /// round trip.
  void check() const;
  /// Extends each member, one round trip each; throws for the first member that fails
  /// (lease::extend).
  void extend();
  void extend(std::chrono::milliseconds lease);
  /// Releases all members. Returns no error, or the error of the first member that failed
  /// (lease::release). One round trip for each session if its store can do it in one step. Empty
  /// afterwards in every case.
  std::error_code release() noexcept;

 private:
  friend struct detail::access;
  friend status release_status(multi_lease& held) noexcept;  // as that of a lease
  explicit multi_lease(std::vector<lease> members);
  struct state_of_all;
  std::unique_ptr<state_of_all> state_;
};

/// All of several names, or none: mutexes, shared locks and permits, on one session or several.
///
///     form                       │ the store takes │ waits      │ renewed │ who releases
///     ───────────────────────────┼─────────────────┼────────────┼─────────┼─────────────
///     lock()                     │ again and again │ no limit   │ yes     │ the caller
///     lock(lease)                │ again and again │ no limit   │ no      │ the caller, or its end
///     try_lock()                 │ once            │ never      │ yes     │ the caller
///     try_lock_for(wait)         │ until then      │ wait       │ yes     │ the caller
///     try_lock_for(wait, lease)  │ until then      │ wait       │ no      │ the caller, or its end
///
/// acquire(), try_acquire() and try_acquire_for() are the same with a multi_lease. If one store is
/// unavailable, the call fails, and releases all members, also where no answer came. All members
/// have the same deadline. A `lease` that one of the stores cannot keep is errc::invalid_argument,
/// and nothing is taken; one longer than max_hold is shortened to it.
///
/// Free names of one session are taken in one atomic step (memory, SQLite, PostgreSQL, MariaDB, a
/// Redis server or slot), elsewhere name by name. All programs take names in the same order, by
/// store and name, so no two multi_locks wait for each other. While it waits for one name, it keeps
/// and renews those that it has taken. If it loses one of them meanwhile, it releases all of them
/// and begins anew, behind all present waiters. A try that fails takes nothing. Cost if all names
/// are free: one round trip for each session (PostgreSQL, MariaDB: two), or one for each name where
/// names are taken one by one; and one more for each name that had to be waited for. Releasing
/// costs one for each session (each node of a Redis cluster), or one for each name on ZooKeeper,
/// etcd, memcached and with mode=session.
///
/// Works beside locks of single names, and is itself Lockable and TimedLockable. The std forms
/// belong to the calling thread. Threads of one process queue at the store, not at a local queue.
/// Thread-safe. Throws as the members do; `error::name()` says which.
class multi_lock {
 public:
  /// No round trip. Throws errc::invalid_argument: no members, a name twice, members that differ in
  /// lease, renew or max_hold.
  multi_lock(std::initializer_list<multi_member> members);
  explicit multi_lock(std::vector<multi_member> members);
  multi_lock(const multi_lock&) = delete;
  multi_lock& operator=(const multi_lock&) = delete;
  ~multi_lock();

  // -- Lockable, TimedLockable. As in mutex: a thread that holds it gets errc::deadlock, or false.
  void lock() { (void)lock_within(no_limit, {}, {}); }
  void lock(std::chrono::milliseconds lease) { (void)lock_within(no_limit, lease, {}); }
  [[nodiscard]] bool lock(std::stop_token stop) {
    return lock_within(no_limit, {}, std::move(stop));
  }
  [[nodiscard]] bool try_lock() { return lock_within(one_try, {}, {}); }
  [[nodiscard]] bool try_lock_for(any_duration timeout,
                                  std::optional<std::chrono::milliseconds> lease = {}) {
    return lock_within(timeout.wait, lease, {});
  }
  [[nodiscard]] bool try_lock_until(any_time_point t,
                                    std::optional<std::chrono::milliseconds> lease = {}) {
    return lock_within(t.wait, lease, {});
  }
  /// Never throws. If the calling thread does not hold the lock, it only reports an event.
  void unlock() noexcept;

  // -- the native handle
  multi_lease acquire(std::stop_token stop = {}) { return take({}, std::move(stop)); }
  multi_lease acquire(std::chrono::milliseconds lease, std::stop_token stop = {}) {
    return take(lease, std::move(stop));
  }
  [[nodiscard]] std::optional<multi_lease> try_acquire() { return acquire_within(one_try, {}, {}); }
  [[nodiscard]] std::optional<multi_lease> try_acquire_for(
      any_duration timeout, std::optional<std::chrono::milliseconds> lease = {},
      std::stop_token stop = {}) {
    return acquire_within(timeout.wait, lease, std::move(stop));
  }

  /// As in multi_lease, for this thread's hold. If there is none: no fences, errc::not_owner, and a
  /// token that never stops.
  std::vector<std::uint64_t> fences() const;
  void check() const;
  std::stop_token lost() const;

 private:
  friend clock& clock_of(const multi_lock& m) noexcept;
  using lease_time = std::optional<std::chrono::milliseconds>;
  friend struct detail::access;
  bool lock_within(wait_time wait, lease_time lease, std::stop_token stop);
  std::optional<multi_lease> acquire_within(wait_time wait, lease_time lease, std::stop_token stop);
  multi_lease take(lease_time lease, std::stop_token stop);
  struct state;
  std::unique_ptr<state> state_;
};

/// acquire() and release() without a thread (async.hpp). They run on the session's thread, and
/// delay its other waits by their round trips. Throws errc::not_owner for an empty lease. If the
/// members are on several sessions, the operation keeps these sessions alive until it has ended:
/// stop it before you end them.
pending<multi_lease> async_acquire(multi_lock& all, wait_limit limit = {},
                                   std::stop_token stop = {});
pending<done> async_release(multi_lease held);

/// extend() without a thread: each member on the thread of its own session, one after the other, up
/// to the first that fails. Keeps these sessions alive until it has ended. Throws errc::not_owner
/// for an empty lease.
pending<done> async_extend(const multi_lease& held);
pending<done> async_extend(const multi_lease& held, std::chrono::milliseconds lease);

}  // namespace holdfast
