#include "store/redis/redisson_rate.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/words.hpp"
#include "store/redis/errors.hpp"
#include "store/redis/redisson.hpp"
#include "store/redis/scripts.hpp"

namespace holdfast::store::redis {

namespace {

std::string_view verb_of(rate_verb v) {
  if (v == rate_verb::take) return "take";
  return v == rate_verb::refund ? "refund" : "inspect";
}

/// The time in which the whole capacity of the bucket comes back; 0 if that is not a whole number
/// of milliseconds.
std::int64_t interval_ms(const bucket_rule& r) {
  if (r.capacity % r.gain != 0) return 0;
  const std::int64_t us = r.capacity / r.gain * r.step_us;
  return us % 1'000 == 0 ? us / 1'000 : 0;
}

std::string rate_text(const bucket_rule& r) {
  return std::to_string(r.capacity / r.unit) + " in " + std::to_string(interval_ms(r)) + " ms";
}

}  // namespace

result<std::string> redisson_call(const marked_key& at, const rate_command& c) {
  const bool one = c.buckets.size() == 1 && c.buckets.front().id.find(':') == std::string::npos;
  if (!one) {
    return failure{errc::unsupported,
                   "RRateLimiter has one rule, and one bucket for all: leave out further rules, "
                   "and rate_rule::by"};
  }
  const bucket_rule& rule = c.buckets.front().rule;
  const std::int64_t interval = interval_ms(rule);
  if (interval == 0) {
    return failure{errc::invalid_argument,
                   "RRateLimiter counts whole milliseconds: choose a burst that comes back in such "
                   "a time"};
  }
  std::string bytes;
  const auto due = c.buckets.front().due_at;
  const auto beside = redisson_beside(at.key);
  append_command(
      bytes,
      {"EVALSHA", redisson_rate_script().sha, "5", at.key, beside + "value", beside + "permits",
       beside + "holdfast:" + to_string(c.owner), at.mark, verb_of(c.verb), redisson_id(c.owner),
       std::to_string(c.tokens), std::to_string(rule.capacity / rule.unit),
       std::to_string(interval), std::to_string(c.ahead_us / 1'000),
       due ? std::to_string(*due / 1'000) : std::string()},
      1);
  return bytes;
}

result<rate_reply> read_limiter(std::string_view key, const rate_command& c,
                                const resp_value& answer) {
  if (answer.is_error()) return server_says(answer.text);
  const auto& items = answer.items;
  if (items.size() != 5) return strange_answer("redisson_rate.lua");
  const auto state = items[0].integer;
  const bucket_rule& rule = c.buckets.front().rule;
  if (state == 3) {
    return failure{errc::kind_mismatch, "the key '" + std::string(key) + "' holds " +
                                            items[1].text.substr(0, 80) +
                                            ", which is no limiter that dialect=redisson shares: "
                                            "it was left as it is"};
  }
  if (state == 4) {
    return failure{errc::capacity_mismatch, "the limiter '" + std::string(key) + "' lets through " +
                                                items[1].text + ", and the rule says " +
                                                rate_text(rule) + ": say the same everywhere"};
  }
  const bucket_state b{rule.capacity / rule.unit,
                       base::number_at_start<std::int64_t>(items[1].text, 0),
                       us_of(items[2].integer), us_of(items[3].integer)};
  // A refund of the whole decision finds the request by this time: due_at.
  rate_reply reply{
      .now_at = us_of(items[4].integer) - b.wait_us, .wait_us = b.wait_us, .buckets = {b}};
  if (c.verb == rate_verb::take)
    reply.outcome = state == 0 ? rate_outcome::granted : rate_outcome::refused;
  return reply;
}

}  // namespace holdfast::store::redis
