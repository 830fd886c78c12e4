#include <gtest/gtest.h>

#include "kernel/countdown.hpp"
#include "kernel/rate.hpp"
#include "permits_fixture.hpp"

// Rules whose violation no test noticed when tests/mutants made it.
namespace kernel_test {
namespace {

TEST_F(permits, a_waiter_may_leave_for_another_of_its_session) {
  acquire(1);
  acquire(2);
  auto c = command(permits_verb::acquire, 3);
  c.wait = true;
  c.replaces = {0, 2};
  EXPECT_TRUE(apply(c).replaced);
  EXPECT_EQ(who(), "1 | 3");
}

class once_missed : public testing::Test {
 protected:
  countdown_reply use(std::int64_t at) {
    countdown_command c;
    c.verb = countdown_verb::wait;
    c.owner = {0, 1};
    c.count = 2;
    c.keep_us = 10 * second;
    return holdfast::kernel::apply(latch_, c, {at, at});
  }
  rate_reply ask(rate_verb verb, std::int64_t tokens, std::vector<bucket_choice> buckets) {
    const rate_command c{verb, {0, ++owner_}, tokens, 0, 0, std::move(buckets)};
    return holdfast::kernel::apply(limiter_, c, {1'000 * second, 0});
  }

  countdown_record latch_;
  rate_record limiter_;
  std::uint64_t owner_ = 0;
};

TEST_F(once_missed, each_use_keeps_a_latch_for_longer) {
  use(0);
  use(8 * second);
  EXPECT_EQ(latch_.expires_at, 18 * second);
}

TEST_F(once_missed, a_take_waits_for_the_slowest_of_its_rules) {
  constexpr bucket_rule slow{second, 1, 1, second}, quick{second / 10, 1, 1, second / 10};
  const std::vector<bucket_choice> both{{"slow", slow}, {"quick", quick}};
  EXPECT_EQ(ask(rate_verb::take, 1, both).outcome, rate_outcome::granted);
  const auto none = ask(rate_verb::take, 1, both);
  EXPECT_EQ(none.outcome, rate_outcome::refused);
  EXPECT_EQ(none.wait_us, second);
}

TEST_F(once_missed, a_refund_of_more_than_was_taken_reports_a_full_bucket) {
  constexpr bucket_rule five{second, 1, 1, 5 * second};
  ask(rate_verb::take, 1, {{"a", five}});
  const auto reply = ask(rate_verb::refund, 3, {{"a", five}});
  EXPECT_EQ(reply.buckets.at(0).remaining, 5);
}

}  // namespace
}  // namespace kernel_test
