#pragma once

#include <condition_variable>
#include <cstdint>
#include <holdfast/async.hpp>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>

#include "c/edge.hpp"

namespace holdfast::c_abi {

using stop_handle = handle_of<std::stop_source>;

/// An event, and the objects that the caller gets with it.
struct event_of {
  int kind = HOLDFAST_DONE;
  std::uint64_t tag = 0;
  status how = done{};
  std::shared_ptr<handle> granted{};  ///< becomes a handle when the caller reads the event
  void* known = nullptr;              ///< a handle that the caller has already
  std::uint64_t number = 0;
  std::int64_t wait_us = 0;
  std::shared_ptr<const holdfast_decision> decided{};  ///< by a limiter
};
/// A list with one event, made in advance, so that sending it needs no memory.
using prepared = std::list<event_of>;

class queue final : public handle {
 public:
  queue();
  ~queue() override;
  void on_close() noexcept override;
  /// So that no program takes out a lease that nobody closes.
  bool closes_first() const noexcept override { return true; }
  int fd() const noexcept { return fd_; }

  /// If the queue is closed, the event and its objects are dropped.
  void push(prepared one) noexcept;
  /// Puts back an event that could not be passed to the caller; it is the next event again.
  void put_back(prepared one) noexcept;
  /// Empty if no event arrives in time. Throws errc::cancelled if the queue is closed meanwhile.
  prepared pop(std::chrono::nanoseconds wait);

 private:
  void add(prepared one, bool first) noexcept;

  int fd_;  ///< -1 if closed
  std::mutex mutex_;
  std::condition_variable came_;
  std::list<event_of> events_;
  bool closed_ = false;
};

/// A stop token that is requested to stop as soon as one of two other tokens is.
class either_stops {
 public:
  either_stops(std::stop_token one, std::stop_token other)
      : on_one_(std::move(one), passes_on{source_}),
        on_other_(std::move(other), passes_on{source_}) {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  struct passes_on {
    std::stop_source to;
    void operator()() noexcept { to.request_stop(); }
  };
  std::stop_source source_;
  std::stop_callback<passes_on> on_one_, on_other_;
};

/// What an error is about.
struct about {
  std::string name{};
  std::string store{};
};

/// A handle whose errors say what they are about.
struct named_handle : handle {
  virtual about what() const { return {}; }
};

/// How a call waits.
struct waiting {
  wait_time limit = no_limit;
  std::stop_token stop{};
  std::shared_ptr<queue> to{};  ///< null: the call blocks
  std::uint64_t tag = 0;
  std::shared_ptr<const call_under_way> under_way{};
  std::shared_ptr<const either_stops> either{}, or_closed{};  ///< which `stop` is made of

  bool is_try() const noexcept { return limit == one_try; }
  /// The failure of a wait that ended without a result.
  failure in_vain(const char* operation, about what) const;
};

/// The waits with a queue of a handle. They keep its sessions, so they end when it is closed.
class ends_its_waits {
 public:
  void end() noexcept { closed_.request_stop(); }
  /// A wait without a queue goes on: its caller has the handle until the call returns.
  void also_end(waiting& w) const {
    if (!w.to) return;
    w.or_closed = std::make_shared<either_stops>(w.stop, closed_.get_token());
    w.stop = w.or_closed->token();
  }

 private:
  std::stop_source closed_;
};

wait_time time_of(std::int64_t timeout_ns);
waiting read(const holdfast_wait* how);
/// The same for a call that waits for no other program: takes no memory.
waiting as_given(const holdfast_wait* how);

/// The event of a call that later cannot be started for lack of memory.
inline std::shared_ptr<prepared> prepared_failure(const waiting& w) {
  auto one = std::make_shared<prepared>(1);
  one->front().tag = w.tag;
  one->front().how = failure{errc::overloaded, ""};
  return one;
}

/// The end of an operation. Its members are destroyed in reverse order: the call is under way until
/// nothing of it is left.
template <class T, class Tell, class Failed>
struct outcome {
  waiting w;
  prepared one;
  Tell tell;
  Failed failed;

  void operator()(result<T> how) {
    event_of& e = one.front();
    try {
      if (how) {
        tell(std::move(*how), e);
      } else {
        failed();
        e.how = std::move(how.error());
      }
    } catch (...) {
      failed();
      e.how = failure{errc::overloaded, ""};
    }
    w.to->push(std::move(one));
  }
};

/// Starts the operation. At its end `tell` puts the value into the event; `failed` is called if
/// there is no value.
template <class T, class Tell, class Failed>
void begin(pending<T> what, const waiting& w, Tell tell, Failed failed) {
  prepared one(1);
  one.front().tag = w.tag;
  std::move(what).start(
      outcome<T, Tell, Failed>{w, std::move(one), std::move(tell), std::move(failed)});
}
template <class T, class Tell>
void begin(pending<T> what, const waiting& w, Tell tell) {
  begin(std::move(what), w, std::move(tell), [] {});
}
template <class T>
void begin(pending<T> what, const waiting& w) {
  begin(std::move(what), w, [](T&&, event_of&) {});
}

}  // namespace holdfast::c_abi
