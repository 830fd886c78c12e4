#pragma once

#include <concepts>
#include <future>
#include <holdfast/fair_mutex.hpp>
#include <holdfast/latch.hpp>
#include <holdfast/receiver.hpp>
#include <holdfast/recursive_mutex.hpp>
#include <holdfast/result.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

/// Waiting without a thread: coroutines, callbacks and futures. For Asio: holdfast/asio.hpp.
///
///     holdfast::result<holdfast::lease> held = co_await async_acquire(orders, 500ms);
///     async_acquire(orders).start([](holdfast::result<holdfast::lease> held) { … });
///     std::future<holdfast::result<holdfast::lease>> held = async_acquire(orders).future();
namespace holdfast {

/// An operation that has not begun. Begin it once, in one of the ways below; this leaves the object
/// empty. If it is destroyed before that, nothing happens. Move-only; not thread-safe.
///
/// The operation ends with a `result<T>`: the value, or a `failure` whose code is busy (one try
/// that found the lock held), timed_out, cancelled, or what the synchronous form would throw;
/// `.value()` throws it. After a failure nothing is left at the store: the operation leaves the
/// queue, and releases what was granted too late. A pending operation does not keep its session
/// alive: if the session ends first, the operation ends with errc::cancelled, before the destructor
/// of the session returns.
///
/// The result comes on a thread of the session, which serves all its waits. (If a limit passes
/// while that thread is stuck in the store, another one takes over.) It comes on the calling
/// thread if the operation could not begin (errc::forked; errc::unavailable without a thread). If
/// memory runs out, the operation ends with errc::overloaded, or beginning it throws
/// std::bad_alloc and nothing is called. A callback that blocks delays the other waits of the
/// session; if it waits for a lock that another callback has to release, it never returns. A
/// callback must not throw. In a child of fork(), operations that were begun before the fork never
/// end.
template <class T>
class [[nodiscard]] pending {
 public:
  using value_type = T;

  explicit pending(std::shared_ptr<detail::operation<T>> what) noexcept : what_(std::move(what)) {}
  pending(pending&&) noexcept = default;
  pending& operator=(pending&&) noexcept = default;

  /// False if the operation was begun or moved from: then no other member may be called.
  explicit operator bool() const noexcept { return what_ != nullptr; }

  /// Calls `then`, which may be move-only, with the result.
  template <std::invocable<result<T>> F>
  void start(F then) && {
    auto to = std::make_unique<detail::callback<T, F>>(std::move(then));
    const auto begun = std::move(what_);
    begun->start(*to);
    (void)to.release();  // deletes itself after the call
  }

  /// The result as a future. A failure is in the result; it is not thrown.
  std::future<result<T>> future() && {
    std::promise<result<T>> promise;
    auto made = promise.get_future();
    std::move(*this).start([promise = std::move(promise)](result<T> how) mutable {
      promise.set_value(std::move(how));
    });
    return made;
  }

  /// For any coroutine. It is resumed on the thread on which the result comes. Do not destroy a
  /// coroutine that waits: stop it.
  detail::awaiter<T> operator co_await() && noexcept {
    return detail::awaiter<T>(std::move(what_));
  }

  /// With an Asio completion token. Needs holdfast/asio.hpp.
  template <class CompletionToken>
  auto operator()(CompletionToken&& token) &&;

  /// For libraries that build on this: begins the operation, and passes the result to `to`, which
  /// must live until then.
  void start(detail::receiver<T>& to) && {
    const auto begun = std::move(what_);
    begun->start(to);
  }

 private:
  std::shared_ptr<detail::operation<T>> what_;
};

// All of these return at once, without a round trip, and are thread-safe. A limit counts from the
// call; zero is one try. After a request to stop, the operation ends soon with errc::cancelled; if
// the request came before the operation began, it takes nothing. The lock object may be destroyed
// while its operation is under way; if the session ends, the operation is cancelled. Errors as the
// synchronous forms, in the result; only arguments that can never be right throw here
// (errc::invalid_argument). Costs at the store as the synchronous forms; requests of a session at
// the same time share one round trip. The local queue of a mutex can hold a hundred thousand
// operations; with the other primitives, each operation has a queue entry at the store
// (docs/async.md).

pending<lease> async_acquire(mutex& lock, wait_limit limit = {}, std::stop_token stop = {});
pending<lease> async_acquire(shared_mutex& lock, wait_limit limit = {}, std::stop_token stop = {});
pending<lease> async_acquire_shared(shared_mutex& lock, wait_limit limit = {},
                                    std::stop_token stop = {});
pending<lease> async_acquire(semaphore& of, std::uint32_t weight, wait_limit limit = {},
                             std::stop_token stop = {});
inline pending<lease> async_acquire(semaphore& of, wait_limit limit = {},
                                    std::stop_token stop = {}) {
  return async_acquire(of, 1, limit, std::move(stop));
}
pending<permit> async_acquire(expiring_semaphore& of, std::chrono::milliseconds lease,
                              wait_limit limit = {}, std::stop_token stop = {});

/// Waits until the latch is open.
pending<done> async_wait(const latch& l, wait_limit limit = {}, std::stop_token stop = {});
pending<done> async_count_down(latch& l, std::uint32_t n = 1);

/// As lease::release() and extend(), but on the session's thread, so that the caller does not wait.
/// One round trip each. If a release is never begun, the destructor of the pending object releases
/// the lease. Throw errc::not_owner for an empty lease.
pending<done> async_release(lease held);
pending<done> async_extend(const lease& held);
pending<done> async_extend(const lease& held, std::chrono::milliseconds length);

/// These do not compile: the levels of a recursive_mutex belong to a thread, and an asynchronous
/// wait has none.
template <class... Args>
pending<lease> async_acquire(recursive_mutex&, Args&&...) {
  static_assert(sizeof...(Args) > 1000,
                "a recursive_mutex belongs to a thread, and an asynchronous wait has none: use a "
                "mutex and pass its lease on");
  return pending<lease>(nullptr);
}
template <class... Args>
pending<lease> async_acquire(counting_semaphore&, Args&&...) {
  static_assert(sizeof...(Args) > 1000,
                "a counting_semaphore keeps what its threads acquire: use a semaphore, whose "
                "permits are leases");
  return pending<lease>(nullptr);
}

}  // namespace holdfast
