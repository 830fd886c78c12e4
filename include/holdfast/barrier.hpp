#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <holdfast/options.hpp>
#include <holdfast/result.hpp>
#include <holdfast/session.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <stop_token>
#include <string>

namespace holdfast {

struct barrier_options {
  /// How long the others wait for a participant whose death the store cannot see; then the barrier
  /// is broken. Zero: the session's.
  std::chrono::milliseconds lease{0};
  /// Called when all have arrived and before anybody goes on, by the last, on its thread (async:
  /// its session's, and must be short there). Must not throw. Give it everywhere, or nowhere.
  std::function<void()> on_completion{};
};

/// std::barrier by name: `count` participants, threads of any processes, wait for each other, again
/// and again.
///
///     from            │ arrive                    │ arrive_and_drop     │ a participant dies
///     ────────────────┼───────────────────────────┼─────────────────────┼───────────────────────
///     no record       │ 1 arrived                 │ 1 arrived for good  │ –
///     n arrived       │ n + 1 arrived             │ n + 1, 1 for good   │ broken: no record, each
///     all but one     │ completion function, then │ the same; one fewer │ of the others gets
///       arrived       │ all go on: 0 arrived      │ in each later phase │ errc::lost once
///
/// A participant is a thread that has arrived and has not dropped: from its first arrival on its
/// session keeps a lease for it, also between two phases. If that ends (the process died, or slept
/// for longer), the phase is broken: each participant that waits, and each that arrives next, gets
/// errc::lost once; then the name begins anew with the whole count. On a store that sees deaths
/// this takes about a second, else a lease and a second. A participant that never arrives is not
/// detected: use a deadline. Destroying an object takes its participants out: others may take their
/// places, and nothing is broken.
///
/// All name the same count (errc::capacity_mismatch, also for one participant too many). A thread
/// that shares the object with others stands for any of its participants, as with std::barrier.
/// Thread-safe. Errors as mutex; unsupported: docs/matrix.md.
class barrier {
 public:
  /// The arrival of one participant in a phase. Move-only. Destroyed without wait(): the arrival
  /// stands, and the next one on the object waits for this phase to end first.
  class [[nodiscard]] arrival;

  /// Count from 1 to 10,000. No round trip.
  barrier(session s, const std::string& name, std::uint32_t count, barrier_options options = {});
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;
  ~barrier();

  static constexpr std::ptrdiff_t max() noexcept { return 10'000; }

  /// Does not wait. One round trip; two, and the completion function, for the last one if there is
  /// such a function. An arrival whose reply was lost is repeated and counts once; errc::lost with
  /// outcome_unknown() if no reply came until its place was gone, so that its phase may have ended.
  arrival arrive();
  /// Until all have arrived. No round trip if that is known; while waiting about one a second, and
  /// one when they have. Once errc::lost was thrown the arrival is over: errc::invalid_argument.
  void wait(arrival&& mine) const { (void)wait_within(mine, no_limit, {}); }
  /// False if asked to stop, or not in time: the arrival stands, and can be waited for again.
  [[nodiscard]] bool wait(arrival& mine, std::stop_token stop) const {
    return wait_within(mine, no_limit, std::move(stop));
  }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(arrival& mine, const std::chrono::duration<Rep, Period>& timeout,
                              std::stop_token stop = {}) const {
    return wait_within(mine, holdfast::wait_for(timeout), std::move(stop));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(arrival& mine, const std::chrono::time_point<Clock, Duration>& t,
                                std::stop_token stop = {}) const {
    return wait_within(mine, holdfast::wait_until(t), std::move(stop));
  }
  void arrive_and_wait();
  /// Arrives, and will not come again: each later phase needs one fewer. (Remembered for a day
  /// without use.)
  void arrive_and_drop();

  std::uint32_t count() const noexcept;
  const std::string& name() const noexcept;

  /// What the class is made of; of no use outside.
  struct state;
  struct round;

 private:
  friend pending<done> async_arrive_and_wait(barrier& b, wait_limit limit, std::stop_token stop);
  friend pending<arrival> async_arrive(barrier& b);
  friend pending<done> async_wait(const barrier& b, arrival mine, wait_limit limit,
                                  std::stop_token stop);
  friend pending<done> async_arrive_and_drop(barrier& b);
  bool wait_within(arrival& mine, wait_time wait, std::stop_token stop) const;
  std::shared_ptr<state> state_;
};

/// arrive_and_wait() without a thread (async.hpp). If it was called off or not in time, the arrival
/// stands. The completion function runs on the session's thread.
pending<done> async_arrive_and_wait(barrier& b, wait_limit limit = {}, std::stop_token stop = {});
/// Its halves, and arrive_and_drop(). A wait that fails is over: the arrival stands.
pending<barrier::arrival> async_arrive(barrier& b);
pending<done> async_wait(const barrier& b, barrier::arrival mine, wait_limit limit = {},
                         std::stop_token stop = {});
pending<done> async_arrive_and_drop(barrier& b);

class barrier::arrival {
 public:
  arrival() noexcept;
  arrival(arrival&&) noexcept;
  arrival& operator=(arrival&&) noexcept;
  ~arrival();

 private:
  friend class barrier;
  friend pending<arrival> async_arrive(barrier& b);
  friend pending<done> async_wait(const barrier& b, arrival mine, wait_limit limit,
                                  std::stop_token stop);
  explicit arrival(std::unique_ptr<round> of) noexcept;
  std::unique_ptr<round> round_;
};

/// `count` participants enter a section together and leave it together. Each calls enter() and
/// leave() in turn: two phases of a barrier, with all that is said there.
class double_barrier {
 public:
  double_barrier(session s, const std::string& name, std::uint32_t count,
                 barrier_options options = {})
      : barrier_(std::move(s), name, count, std::move(options)) {}

  /// Returns when all have called it.
  void enter() { barrier_.arrive_and_wait(); }
  /// Returns when all have called it.
  void leave() { barrier_.arrive_and_wait(); }
  const std::string& name() const noexcept { return barrier_.name(); }

 private:
  friend pending<done> async_enter(double_barrier& b, wait_limit limit, std::stop_token stop);
  friend pending<done> async_leave(double_barrier& b, wait_limit limit, std::stop_token stop);
  barrier barrier_;
};

/// As async_arrive_and_wait().
pending<done> async_enter(double_barrier& b, wait_limit limit = {}, std::stop_token stop = {});
pending<done> async_leave(double_barrier& b, wait_limit limit = {}, std::stop_token stop = {});

}  // namespace holdfast
