#pragma once

#include <functional>
#include <holdfast/error.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/lock_order.hpp>
#include <source_location>
#include <type_traits>
#include <utility>

namespace holdfast {

namespace detail {
/// The end of work under a lease: says so if the lock was lost before the work was over.
void finish(lease held);
}  // namespace detail

/// Does `fn` while holding `lock` (anything with acquire()), passes its result through, and
/// releases whatever happens. `fn` takes the lease (`holdfast::lease&`) or nothing.
/// Throws errc::lost in place of the result if the lock was lost before `fn` returned: by default
/// nobody can overlook that. What `fn` throws goes through as it is.
/// `at` is the place that reports of lock order name (lock_order.hpp).
template <class Lock, class F>
decltype(auto) with_lock(Lock& lock, F&& fn,
                         std::source_location at = std::source_location::current()) {
  lease held = [&] {
    const called_from here{at};
    return lock.acquire();
  }();
  const auto work = [&]() -> decltype(auto) {
    if constexpr (std::is_invocable_v<F, lease&>) {
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
