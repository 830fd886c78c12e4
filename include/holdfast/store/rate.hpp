#pragma once

#include <algorithm>
#include <cstdint>
#include <holdfast/store/command.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The commands and records of the rate kernel: token buckets, several of them decided in one step.
namespace holdfast::store {

/// How one bucket fills, in whole numbers, so that nothing is lost by rounding: a token is `unit`
/// units, and every `step_us` microseconds `gain` units come back, up to `capacity`.
struct bucket_rule {
  std::int64_t unit = 1;
  std::int64_t gain = 1;
  std::int64_t step_us = 1;
  std::int64_t capacity = 1;
  bool operator==(const bucket_rule&) const = default;
};

/// No count of units is greater: scripts compute with doubles, which hold whole numbers up to 2^53.
inline constexpr std::int64_t most_units = std::int64_t{1} << 52;
/// The most buckets that one decision may be about.
inline constexpr std::size_t max_buckets = 16;
/// The longest id of a bucket: no store has to read more.
inline constexpr std::size_t max_bucket_id = 4'096;

enum class rate_verb : std::uint8_t {
  take,     ///< tokens out of all the buckets, or out of none
  refund,   ///< tokens back into all of them
  inspect,  ///< change nothing, report
};

/// One of the buckets that a command is about. No bucket may occur twice in a command.
struct bucket_choice {
  std::string_view id;  ///< within the name
  bucket_rule rule{};
  /// Refund of a whole take: when this bucket had those tokens. If empty, they count as taken now.
  std::optional<std::int64_t> due_at{};
};

struct rate_command {
  rate_verb verb = rate_verb::inspect;
  owner_id owner{};           ///< refund: repeating it counts once
  std::int64_t tokens = 1;    ///< from 1
  std::int64_t ahead_us = 0;  ///< take: also tokens that come back within this time
  std::uint32_t version = 0;  ///< of the rules: a bucket in use follows the greatest it has met
  std::span<const bucket_choice> buckets{};
};

/// A bucket that is not full. A full bucket is not stored.
struct bucket {
  std::string id;
  std::uint32_t version = 0;
  bucket_rule rule{};
  std::int64_t used = 0;  ///< units; more than the capacity if tokens were taken ahead
  std::int64_t at = 0;    ///< the time of `used`
  /// When the last reservation is due, if that is later than the end of the debt (because tokens of
  /// other reservations were given back). Zero: it is not later.
  std::int64_t reserved_until = 0;
  bool damaged = false;  ///< only the id could be read
  bool operator==(const bucket&) const = default;
};

constexpr std::int64_t rounded_up(std::int64_t units, std::int64_t of) noexcept {
  return (units + of - 1) / of;
}
/// If the clock was set back, or began anew, time counts from its present value.
inline std::int64_t steps_since(const bucket& b, std::int64_t now_at) noexcept {
  return (now_at - std::min(b.at, now_at)) / b.rule.step_us;
}
inline bool is_full(const bucket& b, std::int64_t now_at) noexcept {
  return steps_since(b, now_at) >= rounded_up(b.used, b.rule.gain);
}
/// If the clock was set back, all times of the bucket are moved back with it.
inline void set_back(bucket& b, std::int64_t now_at) noexcept {
  if (b.at <= now_at) return;
  b.reserved_until = std::max<std::int64_t>(b.reserved_until - (b.at - now_at), 0);
  b.at = now_at;
}
/// How many units are still missing from the full bucket.
inline std::int64_t missing(const bucket& b, std::int64_t now_at) noexcept {
  return is_full(b, now_at) ? 0 : b.used - steps_since(b, now_at) * b.rule.gain;
}
/// Adds the tokens that have come back until now. Not for a full bucket.
inline void refill(bucket& b, std::int64_t now_at) noexcept {
  set_back(b, now_at);
  const std::int64_t steps = steps_since(b, now_at);
  b.used -= steps * b.rule.gain;
  b.at += steps * b.rule.step_us;
  if (b.reserved_until <= b.at) b.reserved_until = 0;
}
/// How long until `units` more can be taken from the bucket.
inline std::int64_t wait_for(const bucket& b, std::int64_t units, std::int64_t now_at) noexcept {
  const std::int64_t over = b.used + units - b.rule.capacity;
  if (over <= 0) return 0;
  const std::int64_t at = std::min(b.at, now_at) + rounded_up(over, b.rule.gain) * b.rule.step_us;
  return std::max<std::int64_t>(at - now_at, 0);
}
/// The time by which all tokens that were taken are due (it may be estimated too late).
inline std::int64_t last_due(const bucket& b) noexcept {
  const std::int64_t debt = std::max<std::int64_t>(b.used - b.rule.capacity, 0);
  return std::max(b.at + rounded_up(debt, b.rule.gain) * b.rule.step_us, b.reserved_until);
}

struct rate_record {
  std::vector<bucket> buckets;
  std::vector<arrival> refunds;  ///< the recent ones, so that a repeated refund counts once
  bool operator==(const rate_record&) const = default;
};

enum class rate_outcome : std::uint8_t {
  granted,   ///< taken, to be used after `wait_us`
  refused,   ///< nothing was taken: there would be enough after `wait_us`
  too_many,  ///< more than bucket `which` ever holds
  done,      ///< refunded, inspected
  kind_mismatch,
  capacity_mismatch,  ///< bucket `which` is in use with another rule of the same version
};

/// A bucket after the command, in tokens.
struct bucket_state {
  std::int64_t limit = 0;      ///< what it holds when it is full
  std::int64_t remaining = 0;  ///< whole tokens
  std::int64_t wait_us = 0;    ///< until this bucket has what was asked for
  std::int64_t full_us = 0;    ///< until it is full if nobody takes anything
  bool operator==(const bucket_state&) const = default;
};

inline bucket_state describe(const bucket& b, std::int64_t wait_us, std::int64_t now_at) noexcept {
  const bucket_rule& rule = b.rule;
  const std::int64_t left = std::max<std::int64_t>(rule.capacity - missing(b, now_at), 0);
  return {rule.capacity / rule.unit, left / rule.unit, wait_us, wait_for(b, rule.capacity, now_at)};
}

/// A name's buckets as they are stored: some may be full by now.
struct bucket_list {
  std::int64_t now_at = 0;
  std::vector<bucket> buckets{};
};

struct rate_reply {
  rate_outcome outcome = rate_outcome::done;
  std::int64_t now_at = 0;
  std::int64_t wait_us = 0;  ///< the longest of all the buckets'
  std::uint32_t which = 0;
  bool changed = false;                 ///< the family has to write the record
  std::vector<bucket_state> buckets{};  ///< in the order of the command
  store::kind found_kind = kind::rate_limiter;
};

/// When each bucket had what it was asked for, by the store's clock.
inline std::int64_t due_at(const rate_reply& granted, std::size_t bucket) noexcept {
  return granted.now_at + granted.buckets[bucket].wait_us;
}
/// Notes in the choices when the tokens were due, for a refund of the whole take.
inline void keep_due(std::span<bucket_choice> choices, const rate_reply& granted) noexcept {
  const std::size_t count = std::min(choices.size(), granted.buckets.size());
  for (std::size_t i = 0; i < count; ++i) choices[i].due_at = due_at(granted, i);
}

}  // namespace holdfast::store
