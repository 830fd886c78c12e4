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
#include <holdfast/async.hpp>
#include <memory>
#include <stop_token>
#include <utility>

/// Asio's completion tokens for what async.hpp gives. The only header that needs Asio.
///
///     auto held = co_await async_acquire(orders, 500ms)(asio::use_awaitable);
///     async_acquire(orders)(asio::bind_executor(strand, [](holdfast::result<holdfast::lease> held)
///     { … }));
///
/// The signature is void(result<T>). The handler is called by post to its associated executor,
/// which has work until then; its context has to outlive the operation. An emission of its
/// cancellation slot, of any type, stops the operation as a std::stop_token does: it ends with
/// errc::cancelled, its place in the queue is given up, and what was won meanwhile is released.
/// One that comes when the result is on its way changes nothing: then the lease is in the result.
namespace holdfast {

namespace detail {

template <class T, class Handler>
class asio_receiver final : public receiver<T> {
 public:
  explicit asio_receiver(Handler handler)
      : handler_(std::move(handler)), work_(asio::make_work_guard(handler_)) {
    auto slot = asio::get_associated_cancellation_slot(handler_);
    if (!slot.is_connected()) return;
    stop_ = std::stop_source();
    slot.assign([stop = stop_](asio::cancellation_type type) mutable {
      if (type != asio::cancellation_type::none) stop.request_stop();
    });
  }

  std::stop_token stop() const noexcept override { return stop_.get_token(); }

  void receive(result<T> how) noexcept override {
    // Last to go: else run() could end, and the context be destroyed, while it is used here.
    const auto work = std::move(work_);
    const std::unique_ptr<asio_receiver> self(this);
    asio::post(work.get_executor(),
               [handler = std::move(handler_), how = std::move(how)]() mutable {
                 asio::get_associated_cancellation_slot(handler).clear();
                 std::move(handler)(std::move(how));
               });
  }

 private:
  Handler handler_;
  asio::executor_work_guard<asio::associated_executor_t<Handler>> work_;
  std::stop_source stop_{std::nostopstate};
};

}  // namespace detail

template <class T>
template <class CompletionToken>
auto pending<T>::operator()(CompletionToken&& token) && {
  return asio::async_initiate<CompletionToken, void(result<T>)>(
      [](auto handler, pending what) {
        auto to = std::make_unique<detail::asio_receiver<T, decltype(handler)>>(std::move(handler));
        std::move(what).start(*to.release());
      },
      token, std::move(*this));
}

}  // namespace holdfast
