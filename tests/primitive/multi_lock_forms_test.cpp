#include <gtest/gtest.h>

#include <future>

#include "engine/stage.hpp"
#include "harness/concurrently.hpp"
#include "harness/next_wake.hpp"

// The table at the head of multi_lock.hpp: each cell is a test named after it, on a clock that
// stands still.
namespace {

using namespace engine_test;
using holdfast::errc;
using holdfast::lease_state;
using holdfast::multi_lock;
using verb = holdfast::store::permits_verb;
using fault = holdfast::testing::fault;

class multi_forms : public testing::Test {
 protected:
  bool is_free(const std::string& name) { return at_.session.show(name).holders.empty(); }

  stage at_;
  stage far_;  ///< another store, with a clock of its own
  holdfast::mutex a_{at_.session, "a"}, b_{at_.session, "b"}, rival_{at_.session, "b"};
  holdfast::mutex far_b_{far_.session, "b"};
  multi_lock both_{a_, b_};

  // Advances ten seconds at a time; in each step `renewed` renewals and a waiter's `asked_for`
  // requests must come. The clock waits for the waiter, too: an answer that is older than its lease
  // would be worthless. A waiter that the clock outran sleeps a moment longer.
  void pass(std::chrono::seconds time, std::size_t renewed, std::size_t asked_for = 0) {
    for (; time > 0s; time -= 10s) {
      const auto renewals = at_.script->count(verb::renew);
      const auto requests = at_.script->count(verb::acquire);
      at_.clock->advance(10s);
      at_.script->await(verb::renew, renewals + renewed);
      harness::eventually("a request", [&] {
        if (at_.script->count(verb::acquire) >= requests + asked_for) return true;
        harness::to_next_wake(*at_.clock, 100ms);
        return false;
      });
    }
  }
  template <class Begin>
  auto waiting_for_b(Begin begin) {
    auto got = harness::concurrently(begin);
    at_.await_waiters("b", 1);
    return got;
  }
};

TEST_F(multi_forms, lock_waits_without_limit) {
  auto taken = rival_.acquire();
  auto got = waiting_for_b([&] {
    both_.lock();
    both_.unlock();
    return true;
  });
  pass(100s, 1, 2);
  EXPECT_NE(got.wait_for(0s), std::future_status::ready);
  (void)taken.release();
  EXPECT_TRUE(got.get());
}

TEST_F(multi_forms, lock_is_renewed_until_the_caller_releases) {
  both_.lock();
  pass(90s, 2);
  EXPECT_NO_THROW(both_.check());
  both_.unlock();
  EXPECT_TRUE(is_free("a"));
}

TEST_F(multi_forms, lock_lease_waits_without_limit_and_keeps_acquired_members) {
  auto taken = rival_.acquire();
  auto got = waiting_for_b([&] { return both_.acquire(1s); });
  // Each poll renews the first lock, which nothing else does, and asks for the second.
  for (int i = 0; i < 20; ++i) {
    at_.await_wake_within(400ms);
    const auto asked = at_.script->count(verb::acquire);
    at_.clock->advance(400ms);
    at_.script->await(verb::acquire, asked + 2);
    EXPECT_FALSE(is_free("a"));
  }
  (void)taken.release();
  EXPECT_TRUE(got.get());
}

TEST_F(multi_forms, lock_lease_expires_without_renewal) {
  auto held = both_.acquire(10s);
  at_.clock->advance(20s);
  EXPECT_EQ(held.state(), lease_state::lost);
  EXPECT_TRUE(is_free("a"));
  EXPECT_TRUE(is_free("b"));
  EXPECT_EQ(at_.script->count(verb::renew), 0u);
}

TEST_F(multi_forms, lock_lease_lasts_no_longer_than_max_hold_at_the_store_either) {
  const holdfast::lock_options brief{.max_hold = 20s};
  holdfast::mutex c{at_.session, "c", brief}, d{at_.session, "d", brief};
  multi_lock pair{c, d};
  const auto held = pair.acquire(1h);
  at_.clock->advance(30s);
  EXPECT_EQ(held.state(), lease_state::lost);
  EXPECT_TRUE(is_free("c"));
  EXPECT_TRUE(is_free("d"));
}

TEST_F(multi_forms, try_lock_never_retries) {
  const auto taken = rival_.acquire();
  const auto before = at_.script->count(verb::acquire);
  EXPECT_FALSE(both_.try_lock());
  EXPECT_EQ(at_.script->count(verb::acquire), before + 2);  // a, and b: once each
  EXPECT_TRUE(is_free("a"));
}

TEST_F(multi_forms, try_lock_is_renewed_until_the_caller_releases) {
  ASSERT_TRUE(both_.try_lock());
  pass(90s, 2);
  EXPECT_NO_THROW(both_.check());
  both_.unlock();
}

TEST_F(multi_forms, try_lock_wait_waits_for_the_whole_remaining_time_at_each) {
  const auto taken = rival_.acquire();
  auto got = waiting_for_b([&] { return both_.try_lock_for(100s); });
  pass(90s, 1, 2);
  EXPECT_NE(got.wait_for(0s), std::future_status::ready);
  pass(10s, 1);
  EXPECT_FALSE(got.get());
}

TEST_F(multi_forms, try_lock_wait_is_renewed_until_the_caller_releases) {
  ASSERT_TRUE(both_.try_lock_for(1s));
  pass(90s, 2);
  EXPECT_NO_THROW(both_.check());
  both_.unlock();
}

TEST_F(multi_forms, try_lock_wait_lease_gives_up_when_the_time_is_over) {
  const auto taken = rival_.acquire();
  auto got = waiting_for_b([&] { return both_.try_acquire_for(100s, 1s).has_value(); });
  pass(100s, 1);
  EXPECT_FALSE(got.get());
  EXPECT_TRUE(is_free("a"));
}

TEST_F(multi_forms, try_lock_wait_lease_expires_without_renewal) {
  auto held = both_.try_acquire_for(1s, 10s);
  ASSERT_TRUE(held);
  at_.clock->advance(20s);
  EXPECT_EQ(held->state(), lease_state::lost);
  EXPECT_EQ(at_.script->count(verb::renew), 0u);
}

TEST_F(multi_forms, all_forms_fail_with_any_store_and_release_all_members) {
  multi_lock over_two{a_, far_b_};
  far_.script->set(verb::acquire, fault::drop_reply);  // it grants the lock, and the answer is lost
  for (const auto& form : std::vector<std::function<bool()>>{
           [&] { return over_two.try_lock(); }, [&] { return over_two.try_lock_for(0s, 1s); }}) {
    try {
      EXPECT_FALSE(form());
      FAIL();
    } catch (const holdfast::error& e) {
      EXPECT_EQ(e.reason(), errc::unavailable);
    }
    harness::eventually("given back, though no time passes",
                        [&] { return is_free("a") && far_.session.show("b").holders.empty(); });
  }
}

TEST_F(multi_forms, a_member_whose_release_failed_is_released_later) {
  multi_lock over_two{a_, far_b_};
  far_.script->set(verb::acquire, fault::drop_reply);
  far_.script->set(verb::release, fault::drop_request);
  EXPECT_THROW((void)over_two.try_lock(), holdfast::error);
  EXPECT_FALSE(far_.session.show("b").holders.empty());
  far_.script->set(verb::release, fault::none);
  harness::eventually("given back", [&] {
    harness::pass(*far_.clock, 1s);
    return far_.session.show("b").holders.empty();
  });
}

TEST_F(multi_forms, renewals_of_all_members_are_due_together) {
  auto held = both_.acquire();
  const auto left = held.remaining();
  at_.clock->advance(10s);
  at_.script->await(verb::renew, 2);
  harness::eventually("renewed", [&] { return held.remaining() == left; });
}

TEST_F(multi_forms, the_end_of_a_member_is_the_loss_of_all) {
  auto held = both_.acquire();
  at_.script->set(verb::renew, fault::drop_request);
  at_.clock->advance(10s);
  at_.seen->await(holdfast::event_kind::suspect, 2);
  EXPECT_EQ(held.state(), lease_state::suspect);
  at_.clock->advance(20s);
  at_.seen->await(holdfast::event_kind::lost, 2);
  EXPECT_TRUE(held.lost().stop_requested());
}

}  // namespace
