#pragma once

#include <chrono>
#include <cstdint>
#include <holdfast/options.hpp>
#include <holdfast/session.hpp>
#include <holdfast/timed.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

/// How tokens come back.
enum class refill {
  greedy,    ///< one by one, as soon as each is due: 10 a second are one every 100 ms
  interval,  ///< all at once, each time `per` has gone by since the first was used
};

/// One token bucket, or one for each value of some parts of the key.
struct rate_rule {
  std::uint64_t tokens = 1;                  ///< this many come back …
  std::chrono::microseconds per{1'000'000};  ///< … in this time, from 1 us to 31 days
  std::uint64_t burst = 0;                   ///< the most that it holds; zero: as many as `tokens`
  std::vector<std::string> by{};             ///< the parts of the key; none: one bucket for all
  refill how = refill::greedy;
  std::string name{};  ///< identifies the rule, also when rules change; empty: its number
};

/// A part of what a request is about: {"client", "acme"}, {"address", "10.1.2.3"}.
struct rate_part {
  std::string_view part;
  /// At most 255 bytes of UTF-8 without control characters. The name of a rule and the values by
  /// which it counts have at most 4,096 bytes together (each `:` and `%` counts as three,
  /// and one byte separates two values).
  std::string_view value;
};
using rate_key = std::vector<rate_part>;

/// The state of one bucket after a decision, for the headers RateLimit and Retry-After.
struct rate_state {
  std::string rule;
  std::uint64_t limit = 0;            ///< what it holds when it is full
  std::uint64_t remaining = 0;        ///< whole tokens
  std::chrono::microseconds wait{};   ///< until it has what was asked for
  std::chrono::microseconds reset{};  ///< until it is full if nobody takes anything
  /// If tokens were taken: when this bucket has them, by the store's clock. For refund().
  std::chrono::microseconds due{};
};

struct rate_decision {
  bool taken = false;
  /// After a refusal: until the tokens might be there. After reserve(): until you may use them.
  /// After take(): how long the call took.
  std::chrono::microseconds wait{};
  std::vector<rate_state> rules{};  ///< in the order of the limiter's rules
  std::uint64_t tokens = 0;         ///< how many were taken

  explicit operator bool() const noexcept { return taken; }
  /// The rule with the longest wait; if none waits, the one with the fewest tokens left. If the
  /// wait ended before the store had answered, `rules` is empty, and this is a state without name
  /// and tokens.
  const rate_state& tightest() const noexcept;
};

struct rate_limiter_options {
  /// The version of the rules. Programs that use a name with different rules state different
  /// versions: see change_rules().
  std::uint32_t version = 0;
  /// If 2 or more: the process takes this many tokens at once for each key, and gives them out
  /// without a round trip, for `local_time` at most; tokens that are left then are lost. So tokens
  /// may be used later than the store counts them: in a time T programs use at most what the rules
  /// allow in T + local_time, and up to `local_tokens` of each process may stay unused. Only
  /// try_take() uses this. If the store does not have that many tokens, a take costs two round
  /// trips.
  std::uint64_t local_tokens = 0;
  std::chrono::milliseconds local_time{100};  ///< from 1 ms to 31 days
};

/// Limits how often something may happen, with token buckets by name. Several buckets are decided
/// on in one atomic step, on the store's clock, in whole numbers.
///
///     a bucket     │ n asked for         │ time                │ n given back
///     ─────────────┼─────────────────────┼─────────────────────┼─────────────────────
///     full         │ taken; n missing    │ –                   │ –
///     k missing    │ all rules have n:   │ fewer missing; when │ n fewer missing
///                  │ taken; else nothing │ none: no record     │
///     in debt      │ refused, or         │ less debt           │ less debt; fewer than
///                  │ reserved behind it  │                     │ n: see refund()
///
/// A full bucket leaves nothing in the store. A take whose reply was lost may be counted twice,
/// never less than once; a refund is counted once. Different rules under the same version are
/// errc::capacity_mismatch. Thread-safe. Errors as mutex. On stores that keep one record for each
/// name (all but Redis), more than 10,000 buckets that are not full are errc::overloaded.
class rate_limiter {
 public:
  /// 1 to 16 rules. Throws errc::invalid_argument for a rate of zero, for a rate that cannot be
  /// counted exactly in 52 bits (use rounder numbers), for a burst that takes ten years to come
  /// back, and for more local_tokens than a rule's burst. No round trip.
  rate_limiter(session s, std::string name, std::vector<rate_rule> rules,
               rate_limiter_options options = {});
  rate_limiter(const rate_limiter&) = delete;
  rate_limiter& operator=(const rate_limiter&) = delete;
  ~rate_limiter();

  /// Takes n from the bucket of every rule, or nothing. The key has all the parts that the rules
  /// name; others are ignored. One round trip. Throws errc::invalid_argument if n is zero or more
  /// than a rule's burst: that could never succeed.
  [[nodiscard]] rate_decision try_take(std::uint64_t n = 1, const rate_key& key = {});

  /// As try_take(), but waits until there are enough tokens, in the order of the requests. A wait
  /// that would exceed the limit is refused at once. If a stop is requested, the reserved tokens
  /// are given back, as refund(decision) does. One round trip.
  rate_decision take(std::uint64_t n = 1, const rate_key& key = {}, std::stop_token stop = {}) {
    return take_within(n, key, no_limit, std::move(stop));
  }
  [[nodiscard]] rate_decision take_for(std::uint64_t n, any_duration timeout,
                                       const rate_key& key = {}, std::stop_token stop = {}) {
    return take_within(n, key, timeout.wait, std::move(stop));
  }
  [[nodiscard]] rate_decision take_until(std::uint64_t n, any_time_point t,
                                         const rate_key& key = {}, std::stop_token stop = {}) {
    return take_within(n, key, t.wait, std::move(stop));
  }

  /// Reserves n tokens that will be there within `longest_wait` (31 days at most, also if it is
  /// longer), and does not wait: you may use them after `wait` of the decision. refund(decision)
  /// gives them back. One round trip.
  [[nodiscard]] rate_decision reserve(std::uint64_t n, std::chrono::microseconds longest_wait,
                                      const rate_key& key = {});

  /// Gives back all tokens that this decision took and nobody used, under the same key. Requests
  /// that took or reserved tokens later keep their times. So some tokens may be lost: those that
  /// the bucket regains between the due times of this request and of the latest one. If no request
  /// came later, all come back (docs/rate_limiter.md). One round trip, repeated if its reply is
  /// lost. Throws errc::invalid_argument if nothing was taken, or if the decision has more tokens
  /// than a limiter can count.
  void refund(const rate_decision& taken, const rate_key& key = {});
  /// The same for n tokens, as if they had been taken just now. If nobody has reserved any, all n
  /// come back. Those that the bucket has regained since the real take then count twice. Throws
  /// errc::invalid_argument if n is zero or more than a rule's burst.
  void refund(std::uint64_t n = 1, const rate_key& key = {});

  /// What the store would answer to try_take() now; takes nothing. Tokens that this process keeps
  /// locally do not count. One round trip. Throws as try_take().
  [[nodiscard]] rate_decision peek(std::uint64_t n = 1, const rate_key& key = {}) const;

  /// Uses these rules from now on, under a version greater than the last. A bucket changes to them
  /// at the next request of a program that has them, and then follows them for every program until
  /// it is full. Whole tokens that were used stay used, up to the new burst, so no program gets a
  /// second burst. Reservations beyond the new burst stay valid, but no longer count as used.
  /// Throws errc::invalid_argument as the constructor does, and for a version that is not greater.
  /// No round trip.
  void change_rules(std::vector<rate_rule> rules, std::uint32_t version);

  const std::string& name() const noexcept;

  /// The implementation; of no use outside.
  struct state;

 private:
  friend struct detail::access;
  rate_decision take_within(std::uint64_t n, const rate_key& key, wait_time wait,
                            std::stop_token stop);
  std::unique_ptr<state> state_;
};

/// take() without a thread (async.hpp). A refusal is a result, not a failure.
pending<rate_decision> async_take(rate_limiter& of, std::uint64_t n, const rate_key& key = {},
                                  wait_limit limit = {}, std::stop_token stop = {});
/// reserve(), refund() and peek() without a thread. One round trip each.
pending<rate_decision> async_reserve(rate_limiter& of, std::uint64_t n,
                                     std::chrono::microseconds longest_wait,
                                     const rate_key& key = {});
pending<done> async_refund(rate_limiter& of, std::uint64_t n = 1, const rate_key& key = {});
pending<done> async_refund(rate_limiter& of, const rate_decision& taken, const rate_key& key = {});
pending<rate_decision> async_peek(const rate_limiter& of, std::uint64_t n = 1,
                                  const rate_key& key = {});

}  // namespace holdfast
