#include "kernel/rate.hpp"

#include <gtest/gtest.h>

#include "harness/seed.hpp"

namespace kernel_test {
namespace {

using namespace holdfast::store;
using enum rate_outcome;

constexpr std::int64_t second = 1'000'000;

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

TEST_F(rate, all_buckets_give_or_none) {
  const std::vector<bucket_choice> two{{"a", ten_a_second}, {"b", ten_each_second}};
  EXPECT_EQ(apply(rate_verb::take, 10, two).outcome, granted);
  const auto before = record_;
  const auto no = apply(rate_verb::take, 1, two);
  EXPECT_EQ(no.outcome, refused);
  EXPECT_EQ(no.wait_us, second) << "the longest wait";
  EXPECT_EQ(no.buckets[0].wait_us, 0);
  EXPECT_EQ(record_, before);
}

TEST_F(rate, what_is_not_there_yet_may_be_taken_ahead_and_the_next_comes_after_it) {
  take(20);
  EXPECT_EQ(take(1, second).wait_us, second / 10);
  EXPECT_EQ(take(1, second).wait_us, second / 5);
  EXPECT_EQ(take(9, second).outcome, refused) << "that would be more than a second ahead";
  now_ += second / 5;
  EXPECT_EQ(take(1).outcome, refused) << "these two have been given away";
  now_ += second / 10;
  EXPECT_EQ(take(1).outcome, granted);
}

TEST_F(rate, a_debt_that_can_not_be_counted_is_not_made) {
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

TEST_F(rate, what_is_given_back_to_a_full_bucket_is_nothing) {
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

TEST_F(rate, the_greatest_version_is_in_force_whoever_asks) {
  take(5);
  const bucket_rule fifty{second, 1, 1, 50 * second};
  EXPECT_EQ(apply(rate_verb::take, 1, {{"a", fifty}}, 0, 1).buckets[0].remaining, 44);
  EXPECT_EQ(take(1).buckets[0].limit, 50);
}

TEST_F(rate, nobody_gets_a_second_burst_out_of_a_change) {
  take(20);
  const bucket_rule five{second, 1, 1, 5 * second};
  EXPECT_EQ(apply(rate_verb::take, 1, {{"a", five}}, 0, 1).outcome, refused);
  now_ += second / 10 + 1;
  EXPECT_EQ(apply(rate_verb::take, 1, {{"a", five}}, 0, 1).outcome, refused)
      << "part of a token is none";
}

// The test that the whole is for: over a million takes, to the token.
class exactness : public testing::TestWithParam<bucket_rule> {};

TEST_P(exactness, over_a_million_takes_it_gives_what_has_come_and_never_more) {
  const bucket_rule rule = GetParam();
  harness::random dice(1);
  rate_record record;
  moment now{0, 0};
  const std::vector<bucket_choice> choice{{"a", rule}};
  std::int64_t given = 0;
  // Asked about twice as often as tokens come, at moments that have nothing to do with them.
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
