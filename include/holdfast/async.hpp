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

/// An operation that has not begun: begin it in one of the ways below, once; they leave this object
/// empty. Destroyed before that it does nothing. Move-only; not thread-safe.
///
/// However it ends, a `result<T>` says so: the value, or a `failure`, whose code is timed_out,
/// cancelled, or what the synchronous form would throw; `.value()` throws that. Nothing stays
/// behind at the store after a failure: the operation leaves the queue, and releases what it was
/// granted too late. A pending operation does not keep its session alive: if the session goes
/// first, the operation ends with errc::cancelled before the session's destruction returns.
///
/// The result comes on a thread of the session, which serves all its waits. (If a limit passes
/// while it is stuck in the store, another one takes over.) It comes on the calling thread if the
/// operation could not begin (errc::forked; errc::unavailable without a thread).
/// Without memory the operation ends with errc::unavailable, or beginning it throws std::bad_alloc
/// and calls nobody. A callback that blocks holds up the other waits of the session; one that waits
/// there for a lock which another of them has to release never returns. A callback must not throw.
/// In a child of fork() operations that were begun before it never end.
template <class T>
class [[nodiscard]] pending {
 public:
  using value_type = T;

  explicit pending(std::shared_ptr<detail::operation<T>> what) noexcept : what_(std::move(what)) {}
  pending(pending&&) noexcept = default;
  pending& operator=(pending&&) noexcept = default;

  /// False if it was begun or moved from: then none of the others may be called.
  explicit operator bool() const noexcept { return what_ != nullptr; }

  /// Calls `then` with the result. It may be move-only.
  template <std::invocable<result<T>> F>
  void start(F then) && {
    auto to = std::make_unique<detail::callback<T, F>>(std::move(then));
    const auto begun = std::move(what_);
    begun->start(*to);
    (void)to.release();  // it ends itself when it was told
  }

  std::future<result<T>> future() && {
    std::promise<result<T>> promise;
    auto made = promise.get_future();
    std::move(*this).start([promise = std::move(promise)](result<T> how) mutable {
      promise.set_value(std::move(how));
    });
    return made;
  }

  /// In any coroutine, which is resumed where the result comes. It must not be destroyed while it
  /// waits: stop it.
  detail::awaiter<T> operator co_await() && noexcept {
    return detail::awaiter<T>(std::move(what_));
  }

  /// With an Asio completion token. Needs holdfast/asio.hpp.
  template <class CompletionToken>
  auto operator()(CompletionToken&& token) &&;

  /// For what is built on this: begins it, and tells `to`, which has to stay until then.
  void start(detail::receiver<T>& to) && {
    const auto begun = std::move(what_);
    begun->start(to);
  }

 private:
  std::shared_ptr<detail::operation<T>> what_;
};

// All of these return at once, without a round trip, and are thread-safe. A limit counts from the
// call; zero is one try. Stopping it gives errc::cancelled soon. The lock object may go while its
// operation is under way; the session may not. Errors as the synchronous forms, in the result; only
// arguments that can never be right throw here (errc::invalid_argument). Costs at the store as the
// synchronous forms, and what a session asks at the same time is one round trip. At the local queue
// of a mutex a hundred thousand may wait; of the others each has a place at the store
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

/// Until it is open.
pending<done> async_wait(const latch& l, wait_limit limit = {}, std::stop_token stop = {});
pending<done> async_count_down(latch& l, std::uint32_t n = 1);

/// As lease::release() and extend(), on the session's thread, one round trip each: the caller does
/// not wait for it. A release that is never begun is made when it is destroyed. Throw
/// errc::not_owner for an empty lease.
pending<done> async_release(lease held);
pending<done> async_extend(const lease& held);
pending<done> async_extend(const lease& held, std::chrono::milliseconds length);

/// These do not compile. A thread may lock a recursive_mutex again because it is that thread; what
/// waits without one has none.
template <class... Args>
pending<lease> async_acquire(recursive_mutex&, Args&&...) {
  static_assert(sizeof...(Args) > 1000,
                "a recursive_mutex belongs to a thread, and what waits without one has none: use "
                "a mutex and pass its lease on");
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
