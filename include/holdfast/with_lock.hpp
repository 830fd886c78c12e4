#pragma once

#include <functional>
#include <holdfast/error.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lock_order.hpp>
#include <source_location>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace holdfast {

namespace detail {

/// acquire(), or the campaign() of an election.
template <class Lock>
auto acquire_of(Lock& lock) {
  if constexpr (requires { lock.campaign(); }) {
    return lock.campaign();
  } else {
    static_assert(
        requires { lock.acquire().release(); },
        "with_lock needs a lock whose acquire() gives a lease: a counting_semaphore has "
        "none, use a semaphore");
    return lock.acquire();
  }
}

/// Throws errc::lost if the release returned that.
void require_not_lost(std::error_code released, std::string_view name);

/// Ends work under a lease: releases it, and throws errc::lost if the lock was lost before.
template <class Held>
void finish(Held held) {
  if constexpr (requires { held.resign(); }) {
    require_not_lost(held.resign(), {});
  } else if constexpr (requires { held.name(); }) {
    const std::string name = held.name();
    require_not_lost(held.release(), name);
  } else {
    require_not_lost(held.release(), {});
  }
}

}  // namespace detail

/// Calls `fn` while holding `lock`, returns its result, and releases the lock in every case. The
/// lock is anything whose acquire() returns a lease: mutex, fair_mutex, shared_mutex (exclusively),
/// semaphore (one permit), multi_lock, redlock, both; or an election: `fn` runs while this process
/// leads. `fn` takes the lease (`holdfast::lease&`, multi_lease&, quorum_lease&, both_leases&,
/// leadership&) or no parameter. If the lock was lost before `fn` returned, throws errc::lost
/// instead of returning the result, so that nobody overlooks the loss. Exceptions of `fn` are
/// passed on. `at` is the place in the source for reports of lock order (lock_order.hpp).
template <class Lock, class F>
decltype(auto) with_lock(Lock& lock, F&& fn,
                         std::source_location at = std::source_location::current()) {
  auto held = [&] {
    const called_from here{at};
    return detail::acquire_of(lock);
  }();
  const auto work = [&]() -> decltype(auto) {
    if constexpr (std::is_invocable_v<F, decltype(held)&>) {
      return std::invoke(std::forward<F>(fn), held);
    } else {
      return std::invoke(std::forward<F>(fn));
    }
  };
  using outcome = decltype(work());
  if constexpr (std::is_void_v<outcome>) {
    work();
    detail::finish(std::move(held));
  } else if constexpr (std::is_reference_v<outcome>) {
    outcome found = work();
    detail::finish(std::move(held));
    return static_cast<outcome>(found);
  } else {
    outcome made = work();
    detail::finish(std::move(held));
    return made;
  }
}

}  // namespace holdfast
