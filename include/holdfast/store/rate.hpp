#pragma once

#include <algorithm>
#include <cstdint>
#include <holdfast/store/command.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The words of the rate kernel: token buckets, several of them decided on in one step.
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
/// One decision is about so many buckets at most.
inline constexpr std::size_t max_buckets = 16;

enum class rate_verb : std::uint8_t {
  take,     ///< tokens out of all the buckets, or out of none
  refund,   ///< tokens back into all of them
  inspect,  ///< change nothing, report
};

/// One of the buckets that a command is about: none of them twice.
struct bucket_choice {
  std::string_view id;  ///< within the name
  bucket_rule rule{};
};

struct rate_command {
  rate_verb verb = rate_verb::inspect;
  owner_id owner{};           ///< refund: repeating it counts once
  std::int64_t tokens = 1;    ///< from 1
  std::int64_t ahead_us = 0;  ///< take: also what will only have come back after so long
  std::uint32_t version = 0;  ///< of the rules: a bucket in use goes by the greatest it has met
  std::span<const bucket_choice> buckets{};
};

/// A bucket that is not full. A full bucket is not stored.
struct bucket {
  std::string id;
  std::uint32_t version = 0;
  bucket_rule rule{};
  std::int64_t used = 0;  ///< units; more than the capacity if tokens were taken ahead
  std::int64_t at = 0;    ///< when that was
  bool operator==(const bucket&) const = default;
};

constexpr std::int64_t rounded_up(std::int64_t units, std::int64_t of) noexcept {
  return (units + of - 1) / of;
}
/// A clock that was set back, or began anew, counts from where it is now.
inline std::int64_t steps_since(const bucket& b, std::int64_t now_at) noexcept {
  return (now_at - std::min(b.at, now_at)) / b.rule.step_us;
}
inline bool is_full(const bucket& b, std::int64_t now_at) noexcept {
  return steps_since(b, now_at) >= rounded_up(b.used, b.rule.gain);
}
/// The bucket with the tokens that have come back until now.
inline void refill(bucket& b, std::int64_t now_at) noexcept {
  const std::int64_t steps = steps_since(b, now_at);
  b.used -= steps * b.rule.gain;
  b.at = std::min(b.at, now_at) + steps * b.rule.step_us;
}
/// How long until the bucket can do without so many units more.
inline std::int64_t wait_for(const bucket& b, std::int64_t units, std::int64_t now_at) noexcept {
  const std::int64_t over = b.used + units - b.rule.capacity;
  if (over <= 0) return 0;
  return b.at + rounded_up(over, b.rule.gain) * b.rule.step_us - now_at;
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
  std::int64_t remaining = 0;  ///< whole ones
  std::int64_t wait_us = 0;    ///< until this bucket has what was asked for
  std::int64_t full_us = 0;    ///< until it is full if nobody takes anything
  bool operator==(const bucket_state&) const = default;
};

inline bucket_state describe(const bucket& b, std::int64_t wait_us, std::int64_t now_at) noexcept {
  const bucket_rule& rule = b.rule;
  return {rule.capacity / rule.unit, std::max<std::int64_t>(rule.capacity - b.used, 0) / rule.unit,
          wait_us, wait_for(b, rule.capacity, now_at)};
}

/// What a store keeps of a name's buckets, as it was written: some may be full by now.
struct bucket_list {
  std::int64_t now_at = 0;
  std::vector<bucket> buckets{};
};

struct rate_reply {
  rate_outcome outcome = rate_outcome::done;
  std::int64_t now_at = 0;
  std::int64_t wait_us = 0;  ///< the longest of all the buckets'
  std::uint32_t which = 0;
  bool changed = false;                 ///< the record is not what it was: for the family
  std::vector<bucket_state> buckets{};  ///< in the order of the command
  store::kind found_kind = kind::rate_limiter;
};

}  // namespace holdfast::store
