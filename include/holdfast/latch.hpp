#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/options.hpp>
#include <holdfast/result.hpp>
#include <holdfast/session.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <stop_token>
#include <string>

namespace holdfast {

struct latch_options {
  /// How long the latch outlives its last use: an open latch stays open for that long, and an
  /// unused closed one is forgotten after it. From 1 s to 31 days.
  std::chrono::seconds keep{std::chrono::hours{24}};
};

/// std::latch by name: waiters continue when the count has reached zero.
///
///     from        │ count_down(n)               │ wait      │ not used for `keep`
///     ────────────┼─────────────────────────────┼───────────┼────────────────────
///     no record   │ created, then n less        │ waits     │ –
///     count > n   │ n less                      │ waits     │ no record
///     count = n   │ open: all waiters are woken │ waits     │ no record
///     open        │ errc::invalid_argument      │ returns   │ no record
///
/// A latch can be used once; remove() frees the name for a new one. The first program that uses the
/// name creates the latch, and all programs state the same count (errc::capacity_mismatch). If the
/// reply to a count_down is lost, the request is repeated, and counts once. If the process was
/// paused for longer than the store remembers the request, it is not repeated: errc::unavailable,
/// error::outcome_unknown(). Thread-safe. Errors as mutex.
class latch {
 public:
  /// Count from 1 to 1,000,000. No round trip.
  latch(session s, std::string name, std::uint32_t count, latch_options options = {});
  latch(const latch&) = delete;
  latch& operator=(const latch&) = delete;
  ~latch();

  /// One round trip; on ZooKeeper and etcd two or more, as it reads the latch and then replaces it.
  /// Throws errc::invalid_argument for 0, and for more than remains; then nothing has changed.
  void count_down(std::uint32_t n = 1);
  /// Whether the latch is open. One round trip, never repeated: errc::unavailable if no answer
  /// comes.
  [[nodiscard]] bool try_wait() const;
  /// One round trip if it is open; else about one a second, and one at the end. On ZooKeeper, on
  /// etcd, and on stores that do not notify, it polls by other rules (docs/tuning.md).
  void wait() const { (void)wait_within(no_limit, {}); }
  /// False if a stop was requested before the latch was seen open; no round trip if that was before
  /// the call.
  [[nodiscard]] bool wait(std::stop_token stop) const {
    return wait_within(no_limit, std::move(stop));
  }
  [[nodiscard]] bool wait_for(any_duration timeout, std::stop_token stop = {}) const {
    return wait_within(timeout.wait, std::move(stop));
  }
  [[nodiscard]] bool wait_until(any_time_point t, std::stop_token stop = {}) const {
    return wait_within(t.wait, std::move(stop));
  }
  /// count_down(n), then wait().
  void arrive_and_wait(std::uint32_t n = 1) {
    count_down(n);
    wait();
  }

  /// How much is left to count; the full count if the latch has not been used. errc::kind_mismatch
  /// if the name is in use as something else. One round trip; on etcd and ZooKeeper two if there is
  /// no latch.
  std::uint32_t remaining() const;
  /// Removes the latch, even if there are waiters; they start over with a new latch. Errors and
  /// cost as remaining().
  void remove();
  const std::string& name() const noexcept;

 private:
  friend struct detail::access;
  bool wait_within(wait_time wait, std::stop_token stop) const;
  struct state;
  std::unique_ptr<state> state_;
};

/// remaining() and remove() without a thread (async.hpp). Errors and costs are the same.
pending<std::uint32_t> async_remaining(const latch& l);
pending<done> async_remove(latch& l);

}  // namespace holdfast
