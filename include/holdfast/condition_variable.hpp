#pragma once

#include <chrono>
#include <concepts>
#include <condition_variable>
#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/session.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

namespace holdfast {

/// The result of a wait without a thread: the mutex, held again, and whether the wait was in time.
struct woken {
  lease held;
  std::cv_status status = std::cv_status::no_timeout;
};

/// std::condition_variable by name: release a distributed mutex, and wait until any process
/// notifies.
///
///     a waiter        │ notify_one, notify_all      │ its deadline, stop       │ its process dies
///     ────────────────┼─────────────────────────────┼──────────────────────────┼─────────────────
///     queued          │ the first, or all, are woken│ leaves                   │ leaves, in ≤ 4 s
///     woken           │ –                           │ the next is woken        │ the next is woken
///
/// A waiter queues *before* it releases the mutex. So a notification for a change that was made
/// with the mutex held, sent then or later, reaches all waiters that had checked before it. Nothing
/// is remembered when nobody waits. Waits may end without a notification (a process that slept for
/// more than 2 s, a reply that was lost): use the forms with a predicate, or check again.
///
/// All waiters of one name use one mutex. Works with std::unique_lock of a mutex or a fair_mutex.
/// Thread-safe. Errors as mutex. errc::not_owner if the lock is not held, errc::lost if it was
/// lost: in both cases nothing has changed. After any other error the mutex is held again, unless
/// taking it again failed: then owns_lock() of the lock is false. A wait costs the round trips of
/// the mutex, two to queue (one before and one after the mutex is released), and one to be woken.
/// While it lasts, it costs one to four a second (docs/tuning.md; up to 20 where the store does not
/// notify). docs/matrix.md lists the stores that offer it.
class condition_variable {
 public:
  /// The name must differ from that of the mutex. No round trip.
  condition_variable(session s, const std::string& name);
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;
  ~condition_variable();

  /// You may hold the mutex or not. Returns how many waiters were woken. One round trip each.
  std::uint32_t notify_one() { return notify(1); }
  std::uint32_t notify_all();

  template <std::derived_from<mutex> M>
  void wait(std::unique_lock<M>& lock) {
    (void)wait_once(held<M>(lock), forever, {});
  }
  template <std::derived_from<mutex> M, std::predicate P>
  void wait(std::unique_lock<M>& lock, P satisfied) {
    (void)wait_while(lock, forever, {}, satisfied);
  }
  /// Returns the predicate's result once it is true, or once a stop was requested.
  template <std::derived_from<mutex> M, std::predicate P>
  bool wait(std::unique_lock<M>& lock, std::stop_token stop, P satisfied) {
    return wait_while(lock, forever, std::move(stop), satisfied);
  }

  /// The deadline limits the time to be queued and to be woken. Taking the mutex again has no
  /// limit. If the store did not confirm that this waiter is queued, the mutex was never released.
  template <std::derived_from<mutex> M>
  std::cv_status wait_for(std::unique_lock<M>& lock, any_duration timeout) {
    return wait_once(held<M>(lock), deadline(timeout.wait), {});
  }
  template <std::derived_from<mutex> M>
  std::cv_status wait_until(std::unique_lock<M>& lock, any_time_point t) {
    return wait_once(held<M>(lock), deadline(t.wait), {});
  }
  /// Returns the last result of the predicate.
  template <std::derived_from<mutex> M, std::predicate P>
  bool wait_for(std::unique_lock<M>& lock, any_duration timeout, P satisfied) {
    return wait_while(lock, deadline(timeout.wait), {}, satisfied);
  }
  template <std::derived_from<mutex> M, std::predicate P>
  bool wait_for(std::unique_lock<M>& lock, std::stop_token stop, any_duration timeout,
                P satisfied) {
    return wait_while(lock, deadline(timeout.wait), std::move(stop), satisfied);
  }
  template <std::derived_from<mutex> M, std::predicate P>
  bool wait_until(std::unique_lock<M>& lock, any_time_point t, P satisfied) {
    return wait_while(lock, deadline(t.wait), {}, satisfied);
  }
  template <std::derived_from<mutex> M, std::predicate P>
  bool wait_until(std::unique_lock<M>& lock, std::stop_token stop, any_time_point t, P satisfied) {
    return wait_while(lock, deadline(t.wait), std::move(stop), satisfied);
  }

  const std::string& name() const noexcept;

 private:
  friend struct detail::access;
  /// A lock of any mutex, with the operations that a wait needs.
  struct any_lock {
    mutex* of;  ///< null: the lock is not held
    std::function<void()> unlock;
    std::function<void()> lock;
  };
  template <class M>
  static any_lock held(std::unique_lock<M>& lock) {
    return {lock.owns_lock() ? lock.mutex() : nullptr, [&lock] { lock.unlock(); },
            [&lock] { lock.lock(); }};
  }

  template <class M, class P>
  bool wait_while(std::unique_lock<M>& lock, boot_time until, std::stop_token stop, P& satisfied) {
    while (!satisfied()) {
      if (stop.stop_requested()) return false;
      if (wait_once(held<M>(lock), until, stop) == std::cv_status::timeout) return satisfied();
    }
    return true;
  }

  std::uint32_t notify(std::uint32_t most);
  boot_time deadline(wait_time wait) const;
  std::cv_status wait_once(const any_lock& lock, boot_time until, std::stop_token stop);
  struct state;
  std::unique_ptr<state> state_;
};

/// Waiting without a thread (async.hpp), with the lease of a mutex or fair_mutex. The lease is
/// released when the wait is queued, and keeps its session alive until then. Afterwards check the
/// condition, and if necessary wait again with `woken::held`. The limit is for being woken, and
/// passing it is not a failure; taking the mutex again has no limit. After a failure, including
/// errc::cancelled, the mutex is not held, and if this waiter had been woken, the next one is woken
/// instead. Throws errc::not_owner for an empty lease, or a lease of another kind of lock. Costs as
/// wait(), but only one round trip to queue.
pending<woken> async_wait(condition_variable& of, lease held, wait_limit limit = {},
                          std::stop_token stop = {});
/// One round trip each, shared with the other requests of the session.
pending<std::uint32_t> async_notify_one(condition_variable& of);
pending<std::uint32_t> async_notify_all(condition_variable& of);

}  // namespace holdfast
