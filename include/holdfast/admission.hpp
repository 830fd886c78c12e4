#pragma once

#include <cstdint>
#include <holdfast/lease.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/rate_limiter.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <stop_token>

namespace holdfast {

/// What was missing. A web server answers 503 for permits and 429 for tokens.
enum class refused_by { nothing, permits, tokens };

/// The answer to a request.
struct [[nodiscard]] admitted {
  lease permit{};  ///< for as long as the work lasts; empty if it was refused
  refused_by why = refused_by::nothing;
  /// What the buckets have now. If they refused, `rate.wait` says when the tokens may be there, for
  /// Retry-After. If the permits refused, it is empty, because the buckets were not asked.
  rate_decision rate{};

  explicit operator bool() const noexcept { return why == refused_by::nothing; }
};

/// Limits how many requests run at the same time and how many begin in a second, in one decision:
/// it takes a permit of a semaphore and tokens of a rate_limiter, or neither.
///
///     permits │ tokens │ try_admit            │ admit, admit_for, admit_until
///     ────────┼────────┼──────────────────────┼────────────────────────────────────────
///     free    │ there  │ both are taken       │ both are taken
///     free    │ missing│ refused_by::tokens   │ waits, without a permit, until there are
///     taken   │ –      │ refused_by::permits  │ waits in the queue of the permits
///
/// One atomic step, except on a Redis cluster whose slots differ: there a refused request may
/// briefly hold a permit. If there are no tokens when the turn of a waiter comes, the waiter passes
/// the permit on, waits until tokens are due, and queues again; this costs the store nothing
/// meanwhile. The permit is a lease like any other; its release gives back no tokens. After a lost
/// reply the request is repeated: tokens are spent at most once for each attempt, a permit is held
/// once. Each decision is the store's: rate_limiter_options::local_tokens are not used.
/// Thread-safe. Errors as mutex and rate_limiter.
class admission {
 public:
  /// Throws errc::invalid_argument unless both are of one session and have different names. The
  /// limiter must outlive this object; the lock object need not. No round trip.
  ///
  ///     admission door{limiter, slots};              // a permit of a semaphore
  ///     admission door{limiter, permits(slots, 3)};  // three
  admission(rate_limiter& tokens, const multi_member& permits);
  admission(const admission&) = delete;
  admission& operator=(const admission&) = delete;
  ~admission();

  /// One round trip; PostgreSQL and MariaDB: two. Throws as rate_limiter::try_take().
  admitted try_admit(std::uint64_t n = 1, const rate_key& key = {}) {
    return admit_within(n, key, one_try, {});
  }
  /// Waits until both are taken. If a stop is requested, the result is a refusal, and `why` names
  /// what the call was waiting for. As many round trips as try_admit() if both are free, and as
  /// many for each time that it asks again.
  admitted admit(std::uint64_t n = 1, const rate_key& key = {}, std::stop_token stop = {}) {
    return admit_within(n, key, no_limit, std::move(stop));
  }
  /// As admit(), until that time at most. Refuses at once if the tokens will not be there by then.
  admitted admit_for(any_duration timeout, std::uint64_t n = 1, const rate_key& key = {},
                     std::stop_token stop = {}) {
    return admit_within(n, key, timeout.wait, std::move(stop));
  }
  admitted admit_until(any_time_point t, std::uint64_t n = 1, const rate_key& key = {},
                       std::stop_token stop = {}) {
    return admit_within(n, key, t.wait, std::move(stop));
  }

 private:
  friend struct detail::access;
  admitted admit_within(std::uint64_t n, const rate_key& key, wait_time wait, std::stop_token stop);
  struct state;
  std::unique_ptr<state> state_;
};

/// admit() without a thread (async.hpp). A refusal is a result and not a failure, even if the time
/// is over. A call that is stopped fails with errc::cancelled.
pending<admitted> async_admit(admission& door, std::uint64_t n = 1, const rate_key& key = {},
                              wait_limit limit = {}, std::stop_token stop = {});

}  // namespace holdfast
