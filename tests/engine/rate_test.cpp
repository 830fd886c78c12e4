#include <gtest/gtest.h>

#include <future>

#include "engine/stage.hpp"
#include "harness/concurrently.hpp"
#include "harness/next_wake.hpp"

// Limits on a clock that stands still.
namespace engine_test {
namespace {

using holdfast::rate_limiter;
using holdfast::rate_rule;
using fault = holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

const std::vector<rate_rule> one_a_second{{.tokens = 1, .per = 1s}};

TEST(rate, a_waiter_continues_when_its_token_is_due_after_one_round_trip) {
  stage s;
  rate_limiter l(s.session, "n", one_a_second);
  EXPECT_TRUE(l.try_take());
  const auto before = s.session.store_operations();
  auto waiter = harness::concurrently([&] { return l.take(); });
  harness::eventually("it has reserved", [&] { return s.script->count(verb::acquire) == 2; });
  s.clock->advance(999ms);
  EXPECT_EQ(waiter.wait_for(0s), std::future_status::timeout);
  // The wait counts from when its length was known, which may have been after this.
  harness::eventually("its time has come", [&] {
    harness::pass(*s.clock, 1ms);
    return waiter.wait_for(0s) == std::future_status::ready;
  });
  const auto d = waiter.get();
  EXPECT_TRUE(d);
  EXPECT_GE(d.wait, 1s);
  EXPECT_EQ(s.session.store_operations() - before, 1u);
}

TEST(rate, a_stopped_waiter_learns_when_its_token_was_due) {
  stage s;
  rate_limiter l(s.session, "n", {{.tokens = 1, .per = 1h}});
  EXPECT_TRUE(l.try_take());
  std::stop_source stop;
  auto waiter = harness::concurrently([&] { return l.take(1, {}, stop.get_token()); });
  harness::eventually("it has reserved", [&] { return s.script->count(verb::acquire) == 2; });
  stop.request_stop();
  const auto d = waiter.get();
  EXPECT_FALSE(d);
  EXPECT_GT(d.wait, 59min);
}

TEST(rate, an_outage_of_a_moment_makes_waiters_repeat_their_requests) {
  stage s;
  rate_limiter l(s.session, "n", one_a_second);
  s.script->set(verb::acquire, fault::drop_request);
  auto waiter = harness::concurrently([&] { return l.take_for(1, 1min); });
  s.script->await(verb::acquire, 1);
  s.script->set(verb::acquire, fault::none);
  harness::eventually("it is through", [&] {
    harness::pass(*s.clock, 100ms);
    return waiter.wait_for(0s) == std::future_status::ready;
  });
  EXPECT_TRUE(waiter.get());
}

TEST(rate, a_take_with_a_lost_reply_reports_an_unknown_outcome) {
  stage s;
  rate_limiter l(s.session, "n", {{.tokens = 5, .per = 1h}});
  s.script->set(verb::acquire, fault::drop_reply);
  try {
    (void)l.try_take();
    FAIL() << "nothing was thrown";
  } catch (const holdfast::error& e) {
    EXPECT_TRUE(e.outcome_unknown());
    EXPECT_TRUE(e.retryable());
  }
  EXPECT_EQ(l.peek().rules.at(0).remaining, 4u);
}

TEST(rate, a_refund_whose_reply_was_lost_is_repeated_and_counts_once) {
  stage s;
  rate_limiter l(s.session, "n", {{.tokens = 5, .per = 1h}});
  EXPECT_TRUE(l.try_take(5));
  s.script->set(verb::release, fault::drop_reply);
  auto giver = harness::concurrently([&] { l.refund(2); });
  s.script->await(verb::release, 1);
  s.script->set(verb::release, fault::none);
  harness::eventually("it is through", [&] {
    harness::pass(*s.clock, 100ms);
    return giver.wait_for(0s) == std::future_status::ready;
  });
  EXPECT_EQ(l.peek().rules.at(0).remaining, 2u);
}

TEST(rate, tokens_kept_in_the_process_are_lost_when_their_time_is_over) {
  stage s;
  rate_limiter l(s.session, "n", {{.tokens = 10, .per = 1h}},
                 {.local_tokens = 5, .local_time = 100ms});
  EXPECT_TRUE(l.try_take());
  EXPECT_EQ(l.peek().rules.at(0).remaining, 5u);
  s.clock->advance(99ms);
  EXPECT_TRUE(l.try_take());
  EXPECT_EQ(l.peek().rules.at(0).remaining, 5u);
  s.clock->advance(1ms);
  EXPECT_TRUE(l.try_take());
  EXPECT_EQ(l.peek().rules.at(0).remaining, 0u);
}

TEST(rate, a_stopped_waiter_leaves_no_debt) {
  stage s;
  rate_limiter l(s.session, "n", one_a_second);
  EXPECT_TRUE(l.try_take());
  std::stop_source stop;
  auto waiter = harness::concurrently([&] { return l.take(1, {}, stop.get_token()); });
  s.script->await(verb::acquire, 2);
  stop.request_stop();
  EXPECT_FALSE(waiter.get());
  s.clock->advance(1s);
  EXPECT_TRUE(l.try_take());
}

}  // namespace
}  // namespace engine_test
