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
  /// Called by the last participant when all have arrived, before any of them continues. It runs on
  /// the thread of that participant (async: on its session's thread, where it must be short). It
  /// must not throw. Set it in all programs, or in none.
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
/// A participant is a thread that has arrived and has not dropped out. From its first arrival on,
/// its session keeps a lease for it, also between two phases. If that lease ends (the process died,
/// or was paused for longer), the phase is broken: each waiting participant, and each that arrives
/// next, gets errc::lost once. Then the name begins anew with the whole count. The others learn of
/// a death within about a second on a store that sees deaths, else within the lease and a second. A
/// participant that never arrives is not detected: use a deadline. When a barrier object is
/// destroyed, its participants leave: others may take their places, and nothing is broken.
///
/// All programs state the same count (errc::capacity_mismatch, also for one participant too many).
/// Threads may share a barrier object: docs/barrier.md says for which participant an arrival then
/// counts. Coroutines of one thread are taken for one participant, so give each an object of its
/// own. Thread-safe. Errors as mutex; errc::unsupported on a store that offers no barrier
/// (docs/matrix.md).
class barrier {
 public:
  /// The arrival of one participant in a phase. Move-only. If it is destroyed without wait(), it
  /// still counts, and its thread's next arrival on the barrier object first waits for the end of
  /// this phase.
  class [[nodiscard]] arrival;

  /// Count from 1 to 10,000. No round trip.
  barrier(session s, const std::string& name, std::uint32_t count, barrier_options options = {});
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;
  ~barrier();

  static constexpr std::ptrdiff_t max() noexcept { return 10'000; }

  /// Does not wait for the others. (If nobody waited for this thread's last arrival, it first waits
  /// for the end of that phase.) One round trip. For the last participant, if there is a completion
  /// function: two round trips and the call of that function. If the reply is lost, the request is
  /// repeated, and counts once (exceptions: docs/barrier.md). If no reply comes before the lease of
  /// the participant has ended, the arrival may have counted: this call and the next one throw
  /// errc::lost with outcome_unknown(). One more round trip if this thread's first arrival was not
  /// answered, and the thread arrives again.
  arrival arrive();
  /// Waits until all have arrived. No round trip if that is already known; else one to four a
  /// second (up to 20 where the store does not notify), and one at the end. After it has thrown
  /// errc::lost, the arrival cannot be waited for again: errc::invalid_argument.
  void wait(arrival&& mine) const { (void)wait_within(mine, no_limit, {}); }
  /// False if a stop was requested, or the time ran out, before the end of the phase was known: the
  /// arrival still counts, and can be waited for again.
  [[nodiscard]] bool wait(arrival& mine, std::stop_token stop) const {
    return wait_within(mine, no_limit, std::move(stop));
  }
  [[nodiscard]] bool wait_for(arrival& mine, any_duration timeout,
                              std::stop_token stop = {}) const {
    return wait_within(mine, timeout.wait, std::move(stop));
  }
  [[nodiscard]] bool wait_until(arrival& mine, any_time_point t, std::stop_token stop = {}) const {
    return wait_within(mine, t.wait, std::move(stop));
  }
  /// arrive(), then wait().
  void arrive_and_wait();
  /// Arrives, and drops out: each later phase needs one participant fewer. (The store remembers
  /// this for a day without use.)
  void arrive_and_drop();

  std::uint32_t count() const noexcept;
  const std::string& name() const noexcept;

  /// The implementation; of no use outside.
  struct state;
  struct round;

 private:
  friend struct detail::access;
  bool wait_within(arrival& mine, wait_time wait, std::stop_token stop) const;
  std::shared_ptr<state> state_;
};

/// arrive_and_wait() without a thread (async.hpp). If the wait was stopped or the time is over, the
/// arrival still counts. If the store has not answered the arrival by then, arrive again before the
/// participant's lease ends. Nobody renews that lease, and the barrier breaks when it ends. The
/// completion function runs on the session's thread.
pending<done> async_arrive_and_wait(barrier& b, wait_limit limit = {}, std::stop_token stop = {});
/// arrive(), wait() and arrive_and_drop() without a thread. If the wait fails, the arrival still
/// counts. An arrival that ends by its limit or its stop may count as well, as with the above.
pending<barrier::arrival> async_arrive(barrier& b, wait_limit limit = {},
                                       std::stop_token stop = {});
pending<done> async_wait(const barrier& b, barrier::arrival mine, wait_limit limit = {},
                         std::stop_token stop = {});
/// The same, but if the time is over or the wait was stopped, `mine` can be waited for again. It
/// must not be used meanwhile.
pending<done> async_wait(const barrier& b, std::shared_ptr<barrier::arrival> mine,
                         wait_limit limit = {}, std::stop_token stop = {});
pending<done> async_arrive_and_drop(barrier& b, wait_limit limit = {}, std::stop_token stop = {});

class barrier::arrival {
 public:
  arrival() noexcept;
  arrival(arrival&&) noexcept;
  arrival& operator=(arrival&&) noexcept;
  ~arrival();

 private:
  friend struct detail::access;
  explicit arrival(std::unique_ptr<round> of) noexcept;
  std::unique_ptr<round> state_;
};

/// `count` participants enter a section together and leave it together. Each calls enter() and
/// leave() in turn. The two calls are two phases of a barrier, and have its errors and costs.
class double_barrier {
 public:
  double_barrier(session s, const std::string& name, std::uint32_t count,
                 barrier_options options = {})
      : state_(std::move(s), name, count, std::move(options)) {}

  /// Returns when all have called it.
  void enter() { state_.arrive_and_wait(); }
  /// Returns when all have called it.
  void leave() { state_.arrive_and_wait(); }
  const std::string& name() const noexcept { return state_.name(); }

 private:
  friend struct detail::access;
  barrier state_;
};

/// As async_arrive_and_wait().
pending<done> async_enter(double_barrier& b, wait_limit limit = {}, std::stop_token stop = {});
pending<done> async_leave(double_barrier& b, wait_limit limit = {}, std::stop_token stop = {});

}  // namespace holdfast
