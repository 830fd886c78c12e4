#include <gtest/gtest.h>

#include <future>

#include "harness/concurrently.hpp"
#include "harness/next_wake.hpp"
#include "slow_to_answer.hpp"
#include "stage.hpp"

// The time between the store's answer and its arrival here does not count for us: a lease counts
// from before its request was sent, and ends here before it ends at the store.
namespace {

using namespace engine_test;
using holdfast::admission;
using holdfast::fair_mutex;
using holdfast::lease;
using holdfast::lease_state;
using holdfast::multi_lock;
using holdfast::mutex;
using holdfast::rate_limiter;
using holdfast::semaphore;
using holdfast::store::permits_verb;

class late_replies : public testing::Test {
 protected:
  holdfast::session open() {
    holdfast::session_options o;
    o.clock = clock_;
    o.observer = seen_;
    o.lease = 30s;
    o.decorate = [d = late_, c = clock_](auto inner) {
      return std::make_unique<slow_to_answer>(std::move(inner), d, c);
    };
    return holdfast::open("memory:", o);
  }
  void answers_come(permits_verb verb, std::chrono::nanoseconds after, int times = 1'000'000) {
    late_->verb = verb;
    late_->times = times;
    late_->each = after;
  }

  /// At most a second before, as only the margin lies between.
  void expect_to_end_before_the_store_ends_it(std::chrono::nanoseconds here,
                                              const holdfast::session& session,
                                              const std::string& name) {
    const std::chrono::nanoseconds there = session.show(name).holders.at(0).expires_in.value();
    EXPECT_LT(here, there) << name;
    EXPECT_GT(here, there - 1s) << name;
  }

  /// The result, while time passes: a waiter pauses before it asks again.
  template <class Acquire>
  auto after_a_pause(Acquire acquire) {
    auto got = harness::concurrently(acquire);
    harness::eventually("it has asked again", [&] {
      harness::pass(*clock_, 1ms);
      return got.wait_for(0s) == std::future_status::ready;
    });
    return got.get();
  }

  const std::shared_ptr<holdfast::testing::fake_clock> clock_ =
      std::make_shared<holdfast::testing::fake_clock>();
  const std::shared_ptr<recorder> seen_ = std::make_shared<recorder>();
  const std::shared_ptr<delay> late_ = std::make_shared<delay>();
  holdfast::session session_ = open();
};

TEST_F(late_replies, an_acquired_lease_ends_before_the_store_ends_it) {
  mutex m{session_, "m"};
  answers_come(permits_verb::acquire, 8s);
  const lease held = m.acquire();
  expect_to_end_before_the_store_ends_it(held.remaining(), session_, "m");
}

TEST_F(late_replies, a_lease_acquired_without_a_thread_ends_before_the_store_ends_it) {
  mutex m{session_, "m"};
  answers_come(permits_verb::acquire, 8s);
  const lease held = async_acquire(m).future().get().value();
  expect_to_end_before_the_store_ends_it(held.remaining(), session_, "m");
}

// Not so late that its queue entry has ended.
TEST_F(late_replies, a_lease_granted_by_notification_ends_before_the_store_ends_it) {
  fair_mutex m{session_, "m"};
  lease first = m.acquire();
  const auto answered = clock_->now() + 2s;
  answers_come(permits_verb::acquire, 2s, 1);
  auto second = harness::concurrently([&] { return m.acquire(); });
  harness::eventually("its answer is on its way", [&] { return clock_->now() >= answered; });
  ASSERT_FALSE(first.release());
  const lease held = second.get();
  EXPECT_EQ(held.state(), lease_state::held);
  expect_to_end_before_the_store_ends_it(held.remaining(), session_, "m");
}

TEST_F(late_replies, an_extended_lease_ends_before_the_store_ends_it) {
  mutex m{session_, "m"};
  lease held = m.acquire();
  answers_come(permits_verb::renew, 8s);
  held.extend(60s);
  expect_to_end_before_the_store_ends_it(held.remaining(), session_, "m");
}

TEST_F(late_replies, a_renewed_lease_ends_before_the_store_ends_it) {
  mutex m{session_, "m"};
  const lease held = m.acquire();
  answers_come(permits_verb::renew, 4s, 1);
  clock_->advance(10s);
  harness::eventually("renewed", [&] { return held.remaining() > 20s; });
  expect_to_end_before_the_store_ends_it(held.remaining(), session_, "m");
}

TEST_F(late_replies, each_of_several_leases_ends_before_the_store_ends_it) {
  mutex a{session_, "a"}, b{session_, "b"};
  multi_lock both{a, b};
  answers_come(permits_verb::acquire, 8s);
  const auto held = both.acquire();
  expect_to_end_before_the_store_ends_it(held.remaining(), session_, "a");
  expect_to_end_before_the_store_ends_it(held.remaining(), session_, "b");
}

TEST_F(late_replies, an_admitted_permit_ends_before_the_store_ends_it) {
  semaphore slots{session_, "slots", 2};
  rate_limiter tokens{session_, "tokens", {{.tokens = 10}}};
  admission door{tokens, slots};
  answers_come(permits_verb::acquire, 8s);
  const auto in = door.try_admit();
  ASSERT_TRUE(in.permit);
  expect_to_end_before_the_store_ends_it(in.permit.remaining(), session_, "slots");
}

// ---- a lease that ended before its answer arrived is invalid: it is requested again

TEST_F(late_replies, a_grant_that_arrives_after_its_end_is_requested_again) {
  mutex m{session_, "m"};
  answers_come(permits_verb::acquire, 31s, 1);
  const lease held = after_a_pause([&] { return m.acquire(); });
  EXPECT_EQ(held.state(), lease_state::held);
}

TEST_F(late_replies, the_first_of_several_is_requested_again_if_it_expired_before_the_last) {
  auto elsewhere = open();
  mutex a{session_, "a"}, b{elsewhere, "b"};
  multi_lock both{a, b};
  answers_come(permits_verb::acquire, 20s, 2);
  const auto held = after_a_pause([&] { return both.acquire(); });
  EXPECT_EQ(held.state(), lease_state::held);
  EXPECT_NO_THROW(held.check());
}

TEST_F(late_replies, an_admission_that_arrives_after_its_end_is_requested_again) {
  semaphore slots{session_, "slots", 2};
  rate_limiter tokens{session_, "tokens", {{.tokens = 10}}};
  admission door{tokens, slots};
  answers_come(permits_verb::acquire, 31s, 1);
  const auto in = after_a_pause([&] { return door.admit(); });
  ASSERT_TRUE(in.permit);
  EXPECT_EQ(in.permit.state(), lease_state::held);
}

}  // namespace
