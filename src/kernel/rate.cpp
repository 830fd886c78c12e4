#include "kernel/rate.hpp"

#include <algorithm>

#include "kernel/countdown.hpp"

namespace holdfast::kernel {

using namespace store;

namespace {

// Step 2. What was used stays used, in whole tokens. A debt that is cut off is not refunded.
void go_over_to(bucket& b, const rate_command& c, const bucket_rule& rule, const moment& now) {
  const std::int64_t last = store::last_due(b);
  const std::int64_t used = store::rounded_up(store::missing(b, now.now_at), b.rule.unit);
  const std::int64_t tokens = std::min(used, rule.capacity / rule.unit);
  b.reserved_until = last > now.now_at ? last : 0;
  if (tokens < used)
    b.reserved_until = last + store::rounded_up(rule.capacity, rule.gain) * rule.step_us;
  b.version = c.version;
  b.rule = rule;
  b.used = tokens * rule.unit;
  b.at = now.now_at;
}

// Steps 1 and 2 for one bucket. Returns false if another rule of the same version is in force.
bool look_up(const rate_record& r, const rate_command& c, const store::bucket_choice& choice,
             const moment& now, bucket& b, bool& went_over) {
  const auto found = std::find_if(r.buckets.begin(), r.buckets.end(),
                                  [&](const bucket& one) { return one.id == choice.id; });
  if (found == r.buckets.end() || is_full(*found, now.now_at)) {
    b = {std::string(choice.id), c.version, choice.rule, 0, now.now_at};
    return true;
  }
  b = *found;
  store::set_back(b, now.now_at);
  if (b.version == c.version) return b.rule == choice.rule;
  if (b.version < c.version) {
    go_over_to(b, c, choice.rule, now);
    went_over = true;
  }
  return true;
}

// A refund may be of more tokens than the bucket's present capacity.
std::int64_t units_of(const rate_command& c, const bucket& b) {
  return std::min(c.tokens, b.rule.capacity / b.rule.unit) * b.rule.unit;
}

// The comment in rate.hpp proves this amount.
void give_back(bucket& b, std::int64_t units, std::int64_t due_at) {
  const std::int64_t last = store::last_due(b);
  if (due_at < last) {
    const std::int64_t steps = store::rounded_up(last - due_at, b.rule.step_us);
    if (steps >= store::rounded_up(units, b.rule.gain)) return;
    units -= steps * b.rule.gain;
    if (last > b.at) b.reserved_until = last;
  }
  b.used -= std::min(b.used, units);
}

void put_back(rate_record& r, const rate_command& c, std::vector<bucket>& buckets,
              const moment& now) {
  std::erase_if(r.refunds, [&](const auto& one) { return one.forget_at <= now.now_at; });
  if (std::any_of(r.refunds.begin(), r.refunds.end(),
                  [&](const auto& one) { return one.owner == c.owner; })) {
    return;
  }
  r.refunds.push_back({c.owner, now.now_at + remember_us});
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    give_back(buckets[i], units_of(c, buckets[i]), c.buckets[i].due_at.value_or(now.now_at));
  }
}

void take_from(bucket& b, std::int64_t units, const moment& now) {
  store::refill(b, now.now_at);
  b.used += units;
}

void store_into(rate_record& r, std::vector<bucket>& buckets, const moment& now) {
  for (bucket& b : buckets) {
    const auto before = std::find_if(r.buckets.begin(), r.buckets.end(),
                                     [&](const bucket& one) { return one.id == b.id; });
    const bool full = is_full(b, now.now_at);
    if (before == r.buckets.end()) {
      if (!full) r.buckets.push_back(std::move(b));
    } else if (!full) {
      *before = std::move(b);
    } else {
      r.buckets.erase(before);
    }
  }
}

}  // namespace

void expire(rate_record& r, const moment& now) {
  std::erase_if(r.buckets, [&](const bucket& b) { return is_full(b, now.now_at); });
  std::erase_if(r.refunds, [&](const auto& one) { return one.forget_at <= now.now_at; });
}

rate_reply apply(rate_record& r, const rate_command& c, const moment& now) {
  rate_reply reply;
  reply.now_at = now.now_at;
  std::vector<bucket> buckets(c.buckets.size());
  bool fits = true;
  bool went_over = false;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    reply.which = static_cast<std::uint32_t>(i);
    bucket& b = buckets[i];
    // 1. Tokens that have come back are available again. 2. The greatest version of a rule is in
    //    force.
    if (!look_up(r, c, c.buckets[i], now, b, went_over)) {
      reply.outcome = rate_outcome::capacity_mismatch;
      return reply;
    }
    // 3. A request for more than the capacity fails at once.
    if (c.verb == rate_verb::take && c.tokens > b.rule.capacity / b.rule.unit) {
      reply.outcome = rate_outcome::too_many;
      return reply;
    }
    const std::int64_t units = units_of(c, b);
    fits = fits && store::missing(b, now.now_at) <= store::most_units - units;
    const std::int64_t wait = wait_for(b, units, now.now_at);
    reply.wait_us = std::max(reply.wait_us, wait);
    reply.buckets.push_back(describe(b, wait, now.now_at));
  }
  reply.which = 0;
  // 4. All buckets give, or none.
  const bool takes = c.verb == rate_verb::take;
  if (takes) {
    const bool granted = fits && reply.wait_us <= c.ahead_us;
    reply.outcome = granted ? rate_outcome::granted : rate_outcome::refused;
    reply.changed = granted || went_over;
    for (bucket& b : buckets) {
      if (granted) take_from(b, units_of(c, b), now);
    }
  } else if (c.verb == rate_verb::refund) {
    reply.changed = true;
    put_back(r, c, buckets, now);
  }
  if (!reply.changed) return reply;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    reply.buckets[i] = describe(buckets[i], takes ? reply.buckets[i].wait_us : 0, now.now_at);
  }
  if (!takes) reply.wait_us = 0;
  // 5. A full bucket need not be kept.
  store_into(r, buckets, now);
  return reply;
}

}  // namespace holdfast::kernel
