#include "kernel/countdown.hpp"

#include <gtest/gtest.h>

#include "kernel/times.hpp"

namespace kernel_test {
namespace {

using namespace holdfast::store;
using enum countdown_outcome;

class countdown : public testing::Test {
 protected:
  countdown_reply apply(countdown_verb verb, std::uint64_t owner, std::uint32_t drop = 0,
                        std::int64_t repeats = 0) {
    countdown_command c;
    c.repeats_us = repeats;
    c.verb = verb;
    c.owner = {0, owner};
    c.count = count_;
    c.drop = drop;
    c.queue_lease_us = place_;
    c.keep_us = keep_;
    c.peer = "peer";
    return holdfast::kernel::apply(record_, c, {now_, 1'700'000'000 * second + now_});
  }
  countdown_reply arrive(std::uint64_t owner, std::uint32_t drop = 1, std::int64_t repeats = 0) {
    return apply(countdown_verb::arrive, owner, drop, repeats);
  }
  countdown_reply wait(std::uint64_t owner) { return apply(countdown_verb::wait, owner); }

  countdown_record record_;
  std::uint32_t count_ = 3;
  std::int64_t now_ = 0;
  std::int64_t keep_ = 3'600 * second;
  std::int64_t place_ = 4 * second;
};

TEST_F(countdown, the_first_use_makes_the_latch_with_its_count) {
  EXPECT_EQ(arrive(1).remaining, 2u);
  EXPECT_EQ(record_.count, 3u);
}

TEST_F(countdown, the_last_arrival_opens_the_latch_and_lists_the_waiters_to_notify) {
  wait(10);
  wait(11);
  EXPECT_EQ(arrive(1).outcome, closed);
  const auto reply = arrive(2, 2);
  EXPECT_EQ(reply.outcome, open);
  ASSERT_EQ(reply.tell.size(), 2u);
  EXPECT_EQ(reply.tell[0].what, notification_kind::opened);
  EXPECT_EQ(reply.tell[0].owner.low, 10u);
  EXPECT_EQ(reply.tell[0].peer, "peer");
  EXPECT_TRUE(record_.waiting.empty());
}

TEST_F(countdown, a_wait_at_an_open_latch_ends_at_once) {
  arrive(1, 3);
  EXPECT_EQ(wait(10).outcome, open);
  EXPECT_TRUE(record_.waiting.empty());
}

TEST_F(countdown, a_repeated_arrival_counts_once) {
  arrive(1);
  const auto after = record_;
  EXPECT_EQ(arrive(1).remaining, 2u);
  EXPECT_EQ(record_, after);
}

TEST_F(countdown, an_arrival_is_remembered_for_as_long_as_it_may_be_repeated) {
  for (const std::int64_t repeats : {std::int64_t{0}, std::int64_t{90'000'000}}) {
    record_ = {};
    arrive(1, 1, repeats);
    now_ += std::max<std::int64_t>(repeats, 60'000'000) - 1;
    EXPECT_EQ(arrive(1, 1, repeats).remaining, 2u);
    now_ += 1;
    (void)apply(countdown_verb::wait, 10);
    EXPECT_TRUE(record_.arrivals.empty()) << "and no longer";
  }
}

TEST_F(countdown, an_arrival_that_is_repeated_after_the_end_makes_no_other_latch) {
  keep_ = second;
  for (const bool removed : {false, true}) {
    record_ = {};
    arrive(1);
    if (removed) apply(countdown_verb::remove, 9);
    now_ += 10 * second;
    arrive(1);
    EXPECT_EQ(record_.count, 0u);
    EXPECT_EQ(arrive(2).remaining, 2u);
    EXPECT_EQ(arrive(1).remaining, 2u) << "nor counts in the next";
    apply(countdown_verb::remove, 9);
    now_ += 60 * second;
    apply(countdown_verb::leave, 9);
    EXPECT_EQ(record_, countdown_record{});
  }
}

TEST_F(countdown, the_repeated_last_arrival_reports_an_open_latch) {
  arrive(1, 3);
  EXPECT_EQ(arrive(1, 3).outcome, open);
}

TEST_F(countdown, more_than_remains_is_refused_and_changes_nothing) {
  arrive(1, 2);
  const auto before = record_;
  EXPECT_EQ(arrive(2, 2).outcome, too_many);
  EXPECT_EQ(arrive(3, 0).outcome, too_many);
  EXPECT_EQ(record_, before);
}

TEST_F(countdown, an_arrival_above_the_count_makes_no_latch) {
  const auto refused = arrive(1, 4);
  EXPECT_EQ(refused.outcome, too_many);
  EXPECT_EQ(refused.remaining, 3u) << "as many as it would have";
  EXPECT_EQ(record_, countdown_record{});
}

TEST_F(countdown, an_open_latch_refuses_arrivals) {
  arrive(1, 3);
  EXPECT_EQ(arrive(2).outcome, too_many);
  EXPECT_EQ(wait(10).outcome, open);
}

TEST_F(countdown, another_count_is_a_mismatch_and_changes_nothing) {
  arrive(1);
  const auto before = record_;
  count_ = 4;
  EXPECT_EQ(arrive(2).outcome, capacity_mismatch);
  EXPECT_EQ(wait(10).outcome, capacity_mismatch);
  EXPECT_EQ(wait(10).found.count, 3u);
  EXPECT_EQ(record_, before);
}

TEST_F(countdown, a_waiter_polls_within_a_second) {
  const auto reply = wait(10);
  EXPECT_GT(reply.retry_after_us, 0);
  EXPECT_LE(reply.retry_after_us, second);
}

TEST_F(countdown, a_waiter_that_polls_again_has_one_entry) {
  wait(10);
  now_ += second;
  wait(10);
  ASSERT_EQ(record_.waiting.size(), 1u);
  EXPECT_EQ(record_.waiting[0].expires_at, now_ + 4 * second);
}

TEST_F(countdown, a_waiter_polls_before_the_latch_would_be_forgotten) {
  keep_ = second;
  arrive(1);
  for (int looks = 0; looks < 10; ++looks) now_ += wait(10).retry_after_us;
  EXPECT_EQ(record_.remaining, 2u);
  EXPECT_LT(wait(10).retry_after_us, second / 2) << "one look may be late";
}

TEST_F(countdown, a_waiter_that_does_not_retry_after_is_forgotten) {
  wait(10);
  now_ += 4 * second;
  EXPECT_TRUE(arrive(1, 3).tell.empty());
}

TEST_F(countdown, a_waiter_may_leave_and_leave_again) {
  wait(10);
  apply(countdown_verb::leave, 10);
  EXPECT_TRUE(record_.waiting.empty());
  const auto after = record_;
  EXPECT_EQ(apply(countdown_verb::leave, 10).outcome, done);
  EXPECT_EQ(record_, after);
}

TEST_F(countdown, a_request_without_a_queue_entry_adds_none_and_removes_an_earlier_one) {
  place_ = 0;
  EXPECT_EQ(wait(10).outcome, closed);
  EXPECT_EQ(record_.count, 3u) << "it uses the latch all the same";
  EXPECT_TRUE(record_.waiting.empty());
  place_ = 4 * second;
  wait(10);
  wait(11);
  place_ = 0;
  EXPECT_EQ(wait(10).outcome, closed);
  ASSERT_EQ(record_.waiting.size(), 1u);
  EXPECT_EQ(record_.waiting.front().owner.low, 11u);
  arrive(1, 3);
  EXPECT_EQ(wait(10).outcome, open);
}

TEST_F(countdown, a_latch_outlives_its_last_use_by_its_keep_time) {
  arrive(1, 3);
  now_ += keep_ - 1;
  EXPECT_EQ(wait(10).outcome, open) << "and this was a use";
  now_ += keep_;
  EXPECT_EQ(wait(10).outcome, closed);
}

TEST_F(countdown, a_removed_latch_starts_over) {
  arrive(1, 2);
  EXPECT_EQ(apply(countdown_verb::remove, 0).outcome, done);
  EXPECT_EQ(record_.count, 0u);
  EXPECT_EQ(arrive(2, 2).remaining, 1u);
}

TEST_F(countdown, a_peek_changes_nothing) {
  arrive(1);
  wait(10);
  const auto before = record_;
  EXPECT_EQ(apply(countdown_verb::inspect, 0).found, before);
  EXPECT_EQ(record_, before);
}

TEST_F(countdown, dead_waiters_are_forgotten) {
  wait(10);
  const std::vector<std::string> dead{"peer"};
  EXPECT_TRUE(holdfast::kernel::forget(record_, dead));
  EXPECT_TRUE(record_.waiting.empty());
  EXPECT_FALSE(holdfast::kernel::forget(record_, dead));
}

}  // namespace
}  // namespace kernel_test
