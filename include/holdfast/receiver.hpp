#pragma once

#include <holdfast/cpp20.hpp>

#include <coroutine>
#include <holdfast/result.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

/// The building blocks of async.hpp. Programs do not call anything here.
namespace holdfast {

template <class T>
class pending;  // async.hpp

namespace detail {

/// Receives the result of an operation, once.
template <class T>
class receiver {
 public:
  virtual void receive(result<T> how) noexcept = 0;
  /// A second way to stop the operation, beside the operation's own stop token.
  virtual std::stop_token stop() const noexcept { return {}; }

 protected:
  ~receiver() = default;
};

/// An operation that has not begun.
template <class T>
class operation {
 public:
  virtual ~operation() = default;
  /// Begins the operation. Call it once. `to` must live until it has received the result. If memory
  /// runs out, this throws before anything has begun, and `to` receives nothing.
  virtual void start(receiver<T>& to) = 0;
};

/// An operation that begins others, the first of them with its own beginning, and receives their
/// results. It keeps itself alive until it has passed on its own.
template <class From, class To>
class relay : public operation<To>,
              public receiver<From>,
              public std::enable_shared_from_this<relay<From, To>> {
 public:
  void start(receiver<To>& to) override {
    to_ = &to;
    self_ = this->shared_from_this();
    try {
      std::move(first_).start(*this);
    } catch (...) {
      self_ = nullptr;
      throw;
    }
  }
  std::stop_token stop() const noexcept final { return to_->stop(); }

 protected:
  explicit relay(pending<From> first) noexcept : first_(std::move(first)) {}
  receiver<To>* to_ = nullptr;
  std::shared_ptr<relay> self_;

 private:
  pending<From> first_;
};

/// Begins the operation that `make` returns. If memory runs out, the receiver gets that failure.
template <class Make, class Receiver>
void start_or_fail(Make make, Receiver& to) noexcept {
  try {
    make().start(to);
  } catch (...) {
    to.receive(without_memory(false));
  }
}

/// Keeps a callback until it has been called.
template <class T, class F>
class callback final : public receiver<T> {
 public:
  explicit callback(F f) : f_(std::move(f)) {}
  void receive(result<T> how) noexcept override {
    const std::unique_ptr<callback> self(this);
    f_(std::move(how));
  }

 private:
  F f_;
};

/// An operation that this thread is beginning for a coroutine; they form a list, the innermost
/// first. If the operation cannot begin, its result comes before start() has returned. Such a
/// result must not resume the coroutine: a coroutine that tries again and again would go deeper
/// into the stack each time.
class beginning {
 public:
  explicit beginning(const void* of) noexcept : of_(of), outer_(innermost) { innermost = this; }
  beginning(const beginning&) = delete;
  beginning& operator=(const beginning&) = delete;
  ~beginning() { innermost = outer_; }

  bool told() const noexcept { return told_; }
  /// True if this thread is still in start() for the coroutine `of`: then the coroutine continues
  /// when start() has returned.
  static bool tell(const void* of) noexcept {
    for (beginning* b = innermost; b != nullptr; b = b->outer_) {
      if (b->of_ == of) return b->told_ = true;
    }
    return false;
  }

 private:
  static inline thread_local beginning* innermost = nullptr;
  const void* const of_;
  beginning* const outer_;
  bool told_ = false;
};

/// Lives in the frame of the coroutine that waits.
template <class T>
class awaiter final : public receiver<T> {
 public:
  explicit awaiter(std::shared_ptr<operation<T>> what) noexcept : operation_(std::move(what)) {}
  bool await_ready() const noexcept { return false; }
  /// False if the result is there already: the coroutine continues at once.
  [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> waiting) {
    waiting_ = waiting;
    // This object may be gone when start() returns, unless `here` has the result already.
    const auto begun = std::move(operation_);
    const beginning here(this);
    begun->start(*this);
    return !here.told();
  }
  result<T> await_resume() { return std::move(*how_); }
  void receive(result<T> how) noexcept override {
    how_.emplace(std::move(how));
    if (!beginning::tell(this)) waiting_.resume();
  }

 private:
  std::shared_ptr<operation<T>> operation_;
  std::coroutine_handle<> waiting_;
  std::optional<result<T>> how_;
};

}  // namespace detail

}  // namespace holdfast
