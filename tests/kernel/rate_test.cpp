#include "kernel/rate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "harness/seed.hpp"
#include "kernel/times.hpp"

namespace kernel_test {
namespace {

using namespace holdfast::store;
using enum rate_outcome;

/// Ten tokens a second, twenty at once.
constexpr bucket_rule ten_a_second{second / 10, 1, 1, 20 * second / 10};
/// Ten at the end of each second.
constexpr bucket_rule ten_each_second{1, 10, second, 10};

class rate : public testing::Test {
 protected:
  rate_reply apply(rate_verb verb, std::int64_t tokens, std::vector<bucket_choice> buckets,
                   std::int64_t ahead = 0, std::uint32_t version = 0) {
    rate_command c{verb, owner_, tokens, ahead, version, buckets};
    return holdfast::kernel::apply(record_, c, {now_, 0});
  }
  rate_reply take(std::int64_t tokens, std::int64_t ahead = 0) {
    return apply(rate_verb::take, tokens, {{"a", rule_}}, ahead);
  }
  std::int64_t left() { return apply(rate_verb::inspect, 1, {{"a", rule_}}).buckets[0].remaining; }
  rate_reply refund(std::int64_t tokens, std::uint64_t id) {
    owner_.low = id;
    return apply(rate_verb::refund, tokens, {{"a", rule_}});
  }

  rate_record record_;
  bucket_rule rule_ = ten_a_second;
  owner_id owner_{0, 1};
  std::int64_t now_ = 1'000 * second;
};

TEST_F(rate, a_bucket_begins_full_and_gives_its_burst_at_once) {
  EXPECT_EQ(take(20).outcome, granted);
  const auto none = take(1);
  EXPECT_EQ(none.outcome, refused);
  EXPECT_EQ(none.wait_us, second / 10);
}

TEST_F(rate, a_token_is_there_when_it_is_due_and_not_a_moment_earlier) {
  take(20);
  now_ += second / 10 - 1;
  EXPECT_EQ(take(1).outcome, refused);
  now_ += 1;
  EXPECT_EQ(take(1).outcome, granted);
  EXPECT_EQ(take(1).outcome, refused);
}

TEST_F(rate, parts_of_a_token_are_not_lost_between_takes) {
  take(20);
  for (int i = 0; i < 10; ++i) {
    now_ += second / 20;
    EXPECT_EQ(take(1).outcome, i % 2 == 1 ? granted : refused) << i;
  }
}

TEST_F(rate, it_never_holds_more_than_its_burst) {
  take(1);
  now_ += 1'000'000 * second;
  EXPECT_EQ(left(), 20);
}

TEST_F(rate, tokens_of_an_interval_come_at_its_end_and_the_next_begins_there) {
  rule_ = {1, 10, second, 20};
  take(20);
  now_ += second - 1;
  EXPECT_EQ(take(1).wait_us, 1);
  now_ += second / 2;
  EXPECT_EQ(take(10).outcome, granted);
  EXPECT_EQ(take(1).wait_us, second / 2 + 1);
}

TEST_F(rate, all_buckets_give_tokens_or_no_bucket_does) {
  const std::vector<bucket_choice> two{{"a", ten_a_second}, {"b", ten_each_second}};
  EXPECT_EQ(apply(rate_verb::take, 10, two).outcome, granted);
  const auto before = record_;
  const auto no = apply(rate_verb::take, 1, two);
  EXPECT_EQ(no.outcome, refused);
  EXPECT_EQ(no.wait_us, second) << "the longest wait";
  EXPECT_EQ(no.buckets[0].wait_us, 0);
  EXPECT_EQ(record_, before);
}

TEST_F(rate, future_tokens_can_be_reserved_and_the_next_request_follows) {
  take(20);
  EXPECT_EQ(take(1, second).wait_us, second / 10);
  EXPECT_EQ(take(1, second).wait_us, second / 5);
  EXPECT_EQ(take(9, second).outcome, refused) << "that would be more than a second ahead";
  now_ += second / 5;
  EXPECT_EQ(take(1).outcome, refused) << "these two have been given away";
  now_ += second / 10;
  EXPECT_EQ(take(1).outcome, granted);
}

TEST_F(rate, a_debt_that_overflows_is_refused) {
  rule_ = {1, 1, 1, most_units / 2};
  EXPECT_EQ(take(most_units / 2).outcome, granted);
  EXPECT_EQ(take(most_units / 2, most_units).outcome, granted);
  EXPECT_EQ(take(1, most_units).outcome, refused);
}

TEST_F(rate, more_than_the_burst_is_refused_for_good) {
  const auto no = take(21, 1'000 * second);
  EXPECT_EQ(no.outcome, too_many);
  EXPECT_EQ(record_, rate_record{});
}

TEST_F(rate, a_refund_that_is_repeated_counts_once) {
  take(20);
  EXPECT_EQ(refund(5, 7).buckets[0].remaining, 5);
  EXPECT_EQ(refund(5, 7).buckets[0].remaining, 5);
  EXPECT_EQ(refund(5, 8).buckets[0].remaining, 10);
}

TEST_F(rate, a_refund_to_a_full_bucket_changes_nothing) {
  take(3);
  refund(20, 7);
  EXPECT_EQ(left(), 20);
  EXPECT_TRUE(record_.buckets.empty());
}

TEST_F(rate, a_bucket_that_is_full_is_forgotten) {
  take(1);
  EXPECT_EQ(record_.buckets.size(), 1u);
  now_ += second / 10;
  holdfast::kernel::expire(record_, {now_, 0});
  EXPECT_EQ(record_, rate_record{});
}

TEST_F(rate, a_clock_that_was_set_back_gives_nothing_and_takes_nothing) {
  take(15);
  now_ = 5;
  EXPECT_EQ(left(), 5);
  now_ += second;
  EXPECT_EQ(left(), 5) << "a look does not set the clock";
  take(1);
  now_ += second;
  EXPECT_EQ(left(), 14);
}

TEST_F(rate, other_figures_of_the_same_version_are_a_mismatch_while_it_is_in_use) {
  take(1);
  rule_ = ten_each_second;
  const auto before = record_;
  EXPECT_EQ(take(1).outcome, capacity_mismatch);
  EXPECT_EQ(record_, before);
  now_ += second;
  EXPECT_EQ(take(1).outcome, granted) << "it was full";
}

TEST_F(rate, the_greatest_version_is_in_force_for_each_request) {
  take(5);
  const bucket_rule fifty{second, 1, 1, 50 * second};
  EXPECT_EQ(apply(rate_verb::take, 1, {{"a", fifty}}, 0, 1).buckets[0].remaining, 44);
  EXPECT_EQ(take(1).buckets[0].limit, 50);
}

TEST_F(rate, a_change_does_not_give_a_second_burst) {
  take(20);
  const bucket_rule five{second, 1, 1, 5 * second};
  EXPECT_EQ(apply(rate_verb::take, 1, {{"a", five}}, 0, 1).outcome, refused);
  now_ += second / 10 + 1;
  EXPECT_EQ(apply(rate_verb::take, 1, {{"a", five}}, 0, 1).outcome, refused)
      << "part of a token is none";
}

/// Refunds that state when their tokens were due.
class given_back : public rate {
 protected:
  struct taken {
    std::int64_t tokens;
    std::int64_t due_at;
  };
  taken reserve(std::int64_t tokens) {
    const auto reply = take(tokens, 3'600 * second);
    EXPECT_EQ(reply.outcome, granted);
    return {tokens, due_at(reply, 0)};
  }
  void give_up(const taken& t) {
    owner_.low = ++refunds_;
    apply(rate_verb::refund, t.tokens, {{"a", rule_, t.due_at}});
  }
  std::int64_t wait_of(std::int64_t tokens) {
    return apply(rate_verb::inspect, tokens, {{"a", rule_}}).wait_us;
  }

 private:
  std::uint64_t refunds_ = 0;
};

TEST_F(given_back, the_latest_reservation_is_returned_in_full) {
  rule_ = {second, 1, 1, 5 * second};  // one a second, five at once
  take(5);
  const auto first = reserve(5);
  const auto second_one = reserve(3);
  give_up(second_one);
  EXPECT_EQ(wait_of(1), 6 * second) << "behind the first";
  give_up(first);
  EXPECT_EQ(wait_of(1), second) << "as if nobody had reserved anything";
  EXPECT_EQ(record_.buckets.at(0).reserved_until, 0);
}

TEST_F(given_back, beside_a_reservation_that_was_made_later_it_lets_no_more_through) {
  rule_ = {second, 1, 1, 5 * second};
  take(5);
  const auto first = reserve(5);  // passes after 5 s
  reserve(5);                     // after 10 s: it keeps that time
  give_up(first);
  EXPECT_EQ(wait_of(5), 15 * second) << "after 10 s, ten at once would be twice the burst";
}

TEST_F(given_back, a_refund_returns_only_tokens_that_delay_no_later_reservation) {
  rule_ = {second, 1, 1, 5 * second};
  take(5);
  const auto first = reserve(5);
  reserve(1);  // passes after 6 s
  give_up(first);
  EXPECT_EQ(wait_of(1), 3 * second) << "four of five";
  EXPECT_EQ(record_.buckets.at(0).reserved_until, now_ + 6 * second);
  const auto between = reserve(1);
  give_up(between);
  EXPECT_EQ(wait_of(1), 4 * second) << "what is due before another's time does not go back";
  now_ += 7 * second;
  take(1);
  EXPECT_EQ(record_.buckets.at(0).reserved_until, 0) << "forgotten when it is over";
}

TEST_F(given_back, tokens_refilled_since_the_take_are_not_refunded_too) {
  rule_ = {second, 1, 1, 5 * second};
  const auto first = reserve(5);
  now_ += 3 * second;
  EXPECT_EQ(take(3).outcome, granted);
  give_up(first);
  EXPECT_EQ(left(), 2) << "not five beside the three";
}

TEST_F(given_back, without_its_time_it_counts_as_taken_now) {
  rule_ = {second, 1, 1, 5 * second};
  take(5);
  refund(2, 1'000);
  EXPECT_EQ(left(), 2);
  take(2);
  reserve(1);
  refund(5, 1'001);
  EXPECT_EQ(left(), 3) << "one of five comes back until the reservation is due";
}

TEST_F(given_back, a_clock_that_was_set_back_takes_the_reservations_with_it) {
  rule_ = {second, 1, 1, 5 * second};
  take(5);
  const auto first = reserve(5);
  reserve(1);
  give_up(first);
  now_ -= 500 * second;
  take(1, second * 60);
  EXPECT_EQ(record_.buckets.at(0).reserved_until, now_ + 6 * second);
}

TEST_F(given_back, reservations_outlast_a_change_of_the_rules) {
  rule_ = {second, 1, 1, 5 * second};
  take(5);
  reserve(5);
  const auto until = now_ + 5 * second;
  const bucket_rule twenty{second, 1, 1, 20 * second};
  apply(rate_verb::take, 1, {{"a", twenty}}, 0, 1);
  EXPECT_EQ(record_.buckets.at(0).reserved_until, until);
}

TEST_F(given_back, tokens_that_changed_rules_no_longer_count_are_not_refunded) {
  rule_ = {second, 1, 1, 5 * second};
  take(5);
  const auto first = reserve(5);
  rule_ = {second, 2, 1, 4 * second};
  EXPECT_EQ(apply(rate_verb::take, 1, {{"a", rule_}}, 0, 1).outcome, refused);
  const rate_command back{rate_verb::refund, {0, 99}, first.tokens, 0, 1, {}};
  const std::vector<bucket_choice> choice{{"a", rule_, first.due_at}};
  auto c = back;
  c.buckets = choice;
  holdfast::kernel::apply(record_, c, {now_, 0});
  EXPECT_EQ(apply(rate_verb::inspect, 1, {{"a", rule_}}, 0, 1).buckets[0].remaining, 0);
}

/// The tokens that pass, by their due times, whatever is taken, reserved and given back.
class in_any_span : public testing::TestWithParam<bucket_rule> {
 protected:
  struct taken {
    std::int64_t tokens;
    std::vector<std::int64_t> due_at;
  };

  // A step of a rule counts from its beginning, so this many may begin in a span. The part of a
  // step beyond what a wait needed stays in the bucket, and a refund may pass it on: less than a
  // step.
  static std::int64_t most_in(const bucket_rule& r, std::int64_t span) {
    const bool fine = r.step_us == 1;
    return r.capacity + r.gain * (span / r.step_us + (fine ? 0 : 1)) + (fine ? 0 : r.gain - 1);
  }

  // The spans that begin with one of them and end with another: no others can be worse.
  void expect_no_more(std::size_t which, const bucket_rule& rule) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    for (const auto& t : kept_) all.emplace_back(t.due_at[which], t.tokens * rule.unit);
    std::sort(all.begin(), all.end());
    for (std::size_t first = 0; first < all.size(); ++first) {
      std::int64_t sum = 0;
      for (std::size_t last = first; last < all.size(); ++last) {
        sum += all[last].second;
        const auto span = all[last].first - all[first].first;
        ASSERT_LE(sum, most_in(rule, span)) << "of bucket " << which << " in " << span << " us";
      }
    }
  }

  void step(const std::vector<bucket_rule>& rules) {
    std::vector<bucket_choice> choices;
    const std::array<std::string_view, 2> ids{"a", "b"};
    for (std::size_t i = 0; i < rules.size(); ++i) choices.push_back({ids[i], rules[i]});
    if (dice_.one_in(4)) now_.now_at += dice_.between<std::int64_t>(0, pause_);
    if (dice_.one_in(5)) gives_back_ = !gives_back_;
    if ((dice_.one_in(20) || (gives_back_ && !dice_.one_in(5))) && !kept_.empty()) {
      const std::size_t some = std::min<std::size_t>(kept_.size(), 3);  // of the last ones
      const auto which = kept_.size() - dice_.between<std::size_t>(1, some);
      for (std::size_t i = 0; i < rules.size(); ++i) choices[i].due_at = kept_[which].due_at[i];
      const rate_command c{rate_verb::refund, {0, ++refunds_}, kept_[which].tokens, 0, 0, choices};
      kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(which));
      holdfast::kernel::apply(record_, c, now_);
      return;
    }
    const std::int64_t n = dice_.one_in(2) ? 5 : dice_.between<std::int64_t>(1, 3);
    const std::int64_t ahead = dice_.one_in(4) ? 0 : dice_.between<std::int64_t>(0, 30 * second);
    const rate_command c{rate_verb::take, {}, n, ahead, 0, choices};
    const auto reply = holdfast::kernel::apply(record_, c, now_);
    if (reply.outcome != granted) return;
    taken t{n, {}};
    for (std::size_t i = 0; i < rules.size(); ++i) t.due_at.push_back(due_at(reply, i));
    kept_.push_back(std::move(t));
  }

  harness::random dice_;
  rate_record record_;
  moment now_{1'000 * second, 0};
  std::vector<taken> kept_;
  std::int64_t pause_ = 0;
  bool gives_back_ = false;
  std::uint64_t refunds_ = 0;
};

TEST_P(in_any_span, burst_and_rate_are_never_exceeded_with_any_refunds) {
  const std::vector<bucket_rule> rules{GetParam(), {second, 7, 1, 9 * second}};
  for (int history = 0; history < 2'000; ++history) {
    record_ = {}, kept_.clear();
    pause_ = dice_.one_in(3) ? 0 : dice_.between<std::int64_t>(1, 2 * second);
    const std::vector<bucket_rule> used(rules.begin(), rules.begin() + 1 + history % 2);
    for (int i = 0; i < 80; ++i) step(used);
    for (std::size_t i = 0; i < used.size(); ++i) expect_no_more(i, used[i]);
    if (HasFatalFailure()) FAIL() << "history " << history;
  }
}

INSTANTIATE_TEST_SUITE_P(rules, in_any_span,
                         testing::Values(bucket_rule{second, 2, 1, 5 * second},
                                         bucket_rule{second, 5, 1, 5 * second},
                                         bucket_rule{second, 9, 1, 30 * second},
                                         bucket_rule{1, 3, second, 7},
                                         bucket_rule{1, 2, second / 3, 5}));

// The main test of the limiter: over a million takes, exact to the token.
class exactness : public testing::TestWithParam<bucket_rule> {};

TEST_P(exactness, over_a_million_takes_exactly_the_due_tokens_are_given) {
  const bucket_rule rule = GetParam();
  harness::random dice(1);
  rate_record record;
  moment now{0, 0};
  const std::vector<bucket_choice> choice{{"a", rule}};
  std::int64_t given = 0;
  // Requested about twice as often as tokens come, at unrelated moments.
  const std::int64_t pause = std::max<std::int64_t>(rule.unit * rule.step_us / rule.gain, 1);
  const auto may_have_come = [&] {
    return rule.capacity / rule.unit + (now.now_at / rule.step_us * rule.gain) / rule.unit;
  };
  for (int i = 0; i < 1'000'000; ++i) {
    now.now_at += dice.between<std::int64_t>(0, pause);
    const rate_command c{rate_verb::take, {}, 1, 0, 0, choice};
    given += holdfast::kernel::apply(record, c, now).outcome == granted ? 1 : 0;
    ASSERT_LE(given, may_have_come()) << "take " << i;
  }
  EXPECT_GE(static_cast<double>(given), 0.999 * static_cast<double>(may_have_come()));
}

INSTANTIATE_TEST_SUITE_P(rules, exactness,
                         testing::Values(ten_a_second,
                                         bucket_rule{second, 7, 1, 100 * second},  // 7 a second
                                         bucket_rule{3'600 * second, 1'001, 1, 3'600 * second * 5},
                                         bucket_rule{1, 1, 1, 1}));

}  // namespace
}  // namespace kernel_test
