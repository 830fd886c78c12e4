#pragma once

#include <chrono>
#include <functional>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>
#include <holdfast/session.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast {

/// Mutual exclusion by name, between all programs that open the same store.
///
///     from      │ lock, acquire            │ unlock, release │ the holder dies, or its lease ends
///     ──────────┼──────────────────────────┼─────────────────┼───────────────────────────────────
///     free      │ held by the caller       │ –               │ –
///     held      │ the caller queues        │ the next waiter │ the next waiter, or free
///
/// Meets Lockable and TimedLockable: works with std::lock_guard, unique_lock and scoped_lock. The
/// std forms belong to the calling thread; acquire() returns a lease, which belongs to no thread.
/// Within a process waiters are served in order, but running threads may overtake the first waiter
/// lock_options::max_bypass times while it wakes up. Between processes: the lock stays in one
/// process for lock_options::local_time while its threads want it; then the other processes are
/// served. Use fair_mutex for strict order of arrival between processes, too. Thread-safe. Not
/// recursive: if the holding thread calls lock() again on the same object, it throws
/// errc::deadlock; the try forms return false.
///
/// Every function that takes the lock may throw holdfast::error with errc::unavailable (the store
/// is away for longer than session_options::store_timeout or the deadline), kind_mismatch (the name
/// is in use as something else), overloaded (lock_options::max_waiters, or no memory), forked.
/// Cost: one round trip to take a free lock, one to release it. While it is held: the first waiter
/// polls about four times a second, the second twice, those far behind once a second. On ZooKeeper,
/// on etcd, and on stores that do not notify, waiters poll by other rules (docs/tuning.md). Threads
/// that wait behind another thread of their process do not poll. With lock_options::linger, taking
/// an idle lock again costs no round trip.
class mutex {
 public:
  /// No round trip. Throws errc::invalid_name, errc::invalid_argument (options), unsupported.
  mutex(session s, std::string name, lock_options options = {});
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  /// Releases the std-style holds that are left, of all threads.
  ~mutex();

  // -- Lockable, TimedLockable ---------------------------------------------------------------
  void lock();
  /// Waits only for the store's answer, not for the lock.
  [[nodiscard]] bool try_lock();
  /// A timeout of zero or less is one try. The wait is measured on CLOCK_BOOTTIME.
  [[nodiscard]] bool try_lock_for(any_duration timeout) { return lock_within(timeout.wait, {}); }
  /// The time point is converted once, on entry: later steps of that clock change nothing.
  [[nodiscard]] bool try_lock_until(any_time_point t) { return lock_within(t.wait, {}); }
  /// As lock(), but returns false if a stop is requested, also if that was before the call.
  [[nodiscard]] bool lock(std::stop_token stop) { return lock_within(no_limit, std::move(stop)); }
  /// Releases this thread's hold. Never throws: a failure is reported to the observer, and the
  /// release is repeated until the lease ends. If the calling thread does not hold the lock, it
  /// only reports an event.
  void unlock() noexcept;

  // -- the native handle ----------------------------------------------------------------------
  lease acquire() { return acquire(std::stop_token{}); }
  /// Throws errc::cancelled if a stop is requested. If that was before the call, it throws without
  /// a round trip, even if the lock is free. A lock that is granted at that moment is released.
  lease acquire(std::stop_token stop);
  [[nodiscard]] std::optional<lease> try_acquire() { return acquire_within(one_try, {}); }
  [[nodiscard]] std::optional<lease> try_acquire_for(any_duration timeout,
                                                     std::stop_token stop = {}) {
    return acquire_within(timeout.wait, std::move(stop));
  }
  [[nodiscard]] std::optional<lease> try_acquire_until(any_time_point t,
                                                       std::stop_token stop = {}) {
    return acquire_within(t.wait, std::move(stop));
  }

  // -- this thread's std-style hold -----------------------------------------------------------
  /// 0 if this thread does not hold the lock. No round trip.
  std::uint64_t fence() const noexcept;
  /// Throws errc::not_owner if this thread does not hold the lock, and errc::lost if it has lost
  /// it. No round trip.
  void check() const;
  /// A token at which stop is requested when this thread's hold is lost. If the thread holds
  /// nothing, the token never stops. No round trip.
  std::stop_token lost() const;

  /// The name with the session's prefix.
  const std::string& name() const noexcept;

  /// Returns a function that calls `fn` under this lock, with the same arguments and result.
  template <class F>
  auto wrap(F fn) {
    return [this, fn = std::move(fn)](auto&&... args) mutable -> decltype(auto) {
      const std::lock_guard guard{*this};
      return std::invoke(fn, std::forward<decltype(args)>(args)...);
    };
  }

 protected:
  mutex(session s, std::string name, lock_options options, bool fair);

 private:
  friend clock& clock_of(const mutex& m) noexcept;
  friend struct detail::access;
  bool lock_within(wait_time wait, std::stop_token stop);
  std::optional<lease> acquire_within(wait_time wait, std::stop_token stop);

  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace holdfast
