#pragma once

#if !__has_include(<asio.hpp>)
#error "holdfast/asio.hpp needs standalone Asio 1.22 or later (Debian: libasio-dev)"
#endif

#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <holdfast/async.hpp>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <utility>

/// Asio's completion tokens for what async.hpp gives. The only header that needs Asio.
///
///     auto held = co_await async_acquire(orders, 500ms)(asio::use_awaitable);
///     async_acquire(orders)(asio::bind_executor(strand, [](auto held) { … }));
///
/// The signature is void(result<T>). The handler is posted to its associated executor, which does
/// not run out of work until then; the executor's context must outlive the operation. A signal of
/// any type at the handler's cancellation slot stops the operation as a std::stop_token does: it
/// ends with errc::cancelled, leaves the queue, and releases a lock that was granted meanwhile. A
/// signal that comes after the operation has succeeded has no effect: the lease is in the result.
/// If there is no memory to post the handler with, the session's thread tries again until there is.
namespace holdfast {

namespace detail {

/// Retries until there is memory to post the call: the handler gets its result in no other way.
template <class Executor, class Call>
void post_until_there_is_memory(const Executor& to, const Call& call) {
  constexpr std::chrono::milliseconds memory_retry{10};
  while (true) {
    try {
      return asio::post(to, call);
    } catch (const std::bad_alloc&) {
      std::mutex nobodys;
      std::unique_lock lock{nobodys};
      std::condition_variable().wait_for(lock, memory_retry);
    }
  }
}

/// Allocates everything it needs in its constructor, so that it can always pass the result on.
template <class T, class Handler>
class asio_receiver final : public receiver<T> {
 public:
  explicit asio_receiver(Handler handler) : end_(std::make_shared<ending>(std::move(handler))) {
    auto slot = asio::get_associated_cancellation_slot(end_->handler);
    if (!slot.is_connected()) return;
    stop_ = std::stop_source();
    slot.assign([stop = stop_](asio::cancellation_type type) mutable {
      if (type != asio::cancellation_type::none) stop.request_stop();
    });
  }

  std::stop_token stop() const noexcept override { return stop_.get_token(); }

  void receive(result<T> how) noexcept override {
    // The handler waits until this thread has released the executor. When the handler ends, run()
    // may end, and the context may be destroyed. After that, not even a copy of a strand may be
    // destroyed here.
    const auto let_go = let_go_;
    {
      const std::unique_ptr<asio_receiver> self(this);
      end_->how.emplace(std::move(how));
      const auto executor = end_->work.get_executor();
      post_until_there_is_memory(executor, [let_go, end = std::move(end_)] {
        let_go->wait(false);
        asio::get_associated_cancellation_slot(end->handler).clear();
        std::move(end->handler)(std::move(*end->how));
      });
    }
    let_go->store(true);
    let_go->notify_one();
  }

 private:
  struct ending {
    explicit ending(Handler h) : handler(std::move(h)), work(asio::make_work_guard(handler)) {}
    Handler handler;
    asio::executor_work_guard<asio::associated_executor_t<Handler>> work;
    std::optional<result<T>> how;
  };
  std::shared_ptr<ending> end_;
  std::shared_ptr<std::atomic<bool>> let_go_ = std::make_shared<std::atomic<bool>>(false);
  std::stop_source stop_{std::nostopstate};
};

}  // namespace detail

template <class T>
template <class CompletionToken>
auto pending<T>::operator()(CompletionToken&& token) && {
  return asio::async_initiate<CompletionToken, void(result<T>)>(
      [](auto handler, pending what) {
        auto to = std::make_unique<detail::asio_receiver<T, decltype(handler)>>(std::move(handler));
        std::move(what).start(*to);
        (void)to.release();
      },
      token, std::move(*this));
}

}  // namespace holdfast
