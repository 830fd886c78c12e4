#include <gtest/gtest.h>

#include "base/losses.hpp"
#include "harness/concurrently.hpp"
#include "harness/failing.hpp"
#include "harness/next_wake.hpp"
#include "primitive/quorum_stage.hpp"

// The table at the head of redlock.hpp: each cell is a test named after it.
namespace {

using namespace quorum_test;
using holdfast::errc;
using holdfast::lease_state;

class redlock_forms : public testing::Test {
 protected:
  world w_{5};
  /// However slow the machine is, no answering node counts as silent.
  const holdfast::redlock_options patient_{.node_timeout = 30s};
  client a_{w_, patient_}, rival_{w_, patient_};

  template <class Future>
  auto get(Future& f) {
    return quorum_test::get(w_, f);
  }
  template <class Lease>
  void expect_renewed(const Lease& remaining) {
    for (int i = 0; i < 9; ++i) {
      w_.clock->advance(10s);
      harness::eventually("renewed", [&] { return remaining() > 25s; });
    }
  }
  template <class Begin>
  void expect_it_votes_again(Begin begin) {
    auto taken = rival_.lock.acquire();
    auto got = harness::concurrently(begin);
    harness::eventually("three votes", [&] {
      harness::to_next_wake(*w_.clock, 1s);
      return a_.lock.attempts() >= 3;
    });
    (void)taken.release();
    EXPECT_TRUE(get(got));
  }
};

TEST_F(redlock_forms, lock_votes_again_without_limit) {
  expect_it_votes_again([&] {
    a_.lock.lock();
    a_.lock.unlock();
    return true;
  });
}

TEST_F(redlock_forms, lock_is_renewed_until_the_caller_releases) {
  auto held = a_.lock.acquire();
  expect_renewed([&] { return held.remaining(); });
  EXPECT_FALSE(held.release());
  w_.until_free();
}

TEST_F(redlock_forms, lock_lease_votes_again_without_limit) {
  expect_it_votes_again([&] { return bool(a_.lock.acquire(20s)); });
}

TEST_F(redlock_forms, lock_lease_expires_without_renewal) {
  auto held = a_.lock.acquire(10s);
  w_.clock->advance(11s);
  EXPECT_EQ(held.state(), lease_state::lost);
  // The last node may have been asked only now, when the others had decided.
  harness::eventually("free everywhere", [&] {
    harness::pass(*w_.clock, 1s);
    return w_.held_at() == 0;
  });
}

TEST_F(redlock_forms, lock_lease_blames_no_majority_for_its_end) {
  auto held = a_.lock.acquire(10s);
  w_.clock->advance(11s);
  const auto how = harness::outcome_of([&] { held.check(); });
  EXPECT_EQ(how.reason, errc::lost);
  EXPECT_FALSE(harness::contains(how.text, "majority")) << how.text;
  w_.seen->await(holdfast::event_kind::lost);
  EXPECT_EQ(w_.seen->detail(holdfast::event_kind::lost), holdfast::losses::lease_ended);
}

TEST_F(redlock_forms, try_lock_never_votes_again) {
  const auto taken = rival_.lock.acquire();
  EXPECT_FALSE(a_.lock.try_lock());
  EXPECT_EQ(a_.lock.attempts(), 1u);
}

TEST_F(redlock_forms, try_lock_is_renewed_until_the_caller_releases) {
  auto held = a_.lock.try_acquire();
  ASSERT_TRUE(held);
  expect_renewed([&] { return held->remaining(); });
}

TEST_F(redlock_forms, try_lock_wait_votes_again_until_then) {
  expect_it_votes_again([&] { return a_.lock.try_lock_for(100s); });
  const auto taken = rival_.lock.try_acquire();
  EXPECT_FALSE(taken);  // the thread that holds it is gone, and its hold is not
}

TEST_F(redlock_forms, try_lock_wait_gives_up_then) {
  const auto taken = rival_.lock.acquire();
  auto got = harness::concurrently([&] { return a_.lock.try_lock_for(2s); });
  EXPECT_FALSE(get(got));
}

TEST_F(redlock_forms, try_lock_wait_gives_each_node_a_part_of_the_wait) {
  quorum_test::client client{w_};
  for (int i = 0; i < 3; ++i) client.ways[static_cast<std::size_t>(i)]->hang(verb::acquire);
  auto got = harness::concurrently([&] {
    try {
      (void)client.lock.try_acquire_for(500ms);
    } catch (const holdfast::error& e) {
      return e.reason();
    }
    return errc{};
  });
  for (int i = 0; i < 3; ++i) client.ways[static_cast<std::size_t>(i)]->await(verb::acquire, 1);
  w_.clock->advance(100ms);  // a fifth of it, less than node_timeout
  harness::eventually("the first vote is over", [&] { return !client.lock.last_votes().empty(); });
  EXPECT_EQ(get(got), errc::unavailable);
}

TEST_F(redlock_forms, try_lock_wait_is_renewed_until_the_caller_releases) {
  auto held = a_.lock.try_acquire_for(1s);
  ASSERT_TRUE(held);
  expect_renewed([&] { return held->remaining(); });
}

TEST_F(redlock_forms, try_lock_wait_lease_votes_again_until_then) {
  expect_it_votes_again([&] { return a_.lock.try_acquire_for(100s, 20s).has_value(); });
}

TEST_F(redlock_forms, try_lock_wait_lease_expires_without_renewal) {
  auto held = a_.lock.try_acquire_for(1s, 10s);
  ASSERT_TRUE(held);
  w_.clock->advance(11s);
  EXPECT_EQ(held->state(), lease_state::lost);
}

TEST_F(redlock_forms, all_forms_tolerate_two_of_five_that_fail) {
  a_.cut(0b01001);
  EXPECT_TRUE(a_.lock.acquire());
  EXPECT_TRUE(a_.lock.acquire(10s));
  EXPECT_TRUE(a_.lock.try_acquire());
  EXPECT_TRUE(a_.lock.try_acquire_for(1s));
  EXPECT_TRUE(a_.lock.try_acquire_for(1s, 10s));
}

}  // namespace
