#include <gtest/gtest.h>

#include <future>

#include "harness/detached_task.hpp"
#include "harness/next_wake.hpp"
#include "harness/why.hpp"
#include "primitive/quorum_stage.hpp"

// An asynchronous majority: how a wait ends, where the result arrives, and what it keeps alive.
// redlock_test.cpp and redlock_faults_test.cpp cover the rules for votes in either form.
namespace {

using namespace quorum_test;
using harness::why;
using holdfast::errc;
using holdfast::event_kind;
using holdfast::quorum_lease;
using holdfast::result;
using holdfast::vote;

using lease_result = result<quorum_lease>;

/// The result while the clock stands still.
template <class Future>
auto in_no_time(Future& f) {
  harness::eventually("the end of it", [&] { return f.wait_for(0s) == std::future_status::ready; });
  return f.get();
}

class async_redlocks : public testing::Test {
 protected:
  static constexpr std::size_t nodes = 3;

  /// From now on it knows the nodes.
  static void meet(client& one) {
    EXPECT_FALSE(one.lock.acquire().release());
    one.settle();
  }
  void await_votes(const client& of, std::uint64_t n) {
    harness::eventually("votes", [&] {
      harness::to_next_wake(*w_.clock, 1s);
      return of.lock.attempts() >= n;
    });
  }
  template <class Future>
  auto get(Future& f) {
    return quorum_test::get(w_, f);
  }

  world w_{nodes};
  /// However slow the machine is, no answering node counts as silent.
  const holdfast::redlock_options patient_{.node_timeout = 30s};
  std::unique_ptr<client> mine_ = std::make_unique<client>(w_, patient_);
  client rival_{w_, patient_};
};

TEST_F(async_redlocks, a_waiter_votes_again_until_it_has_the_lock) {
  auto taken = rival_.lock.acquire();
  auto waiting = async_acquire(mine_->lock).future();
  await_votes(*mine_, 3);
  EXPECT_FALSE(taken.release());
  auto held = get(waiting).value();
  EXPECT_NO_THROW(held.check());
  EXPECT_TRUE(async_release(std::move(held)).future().get());
  w_.until_free();
}

TEST_F(async_redlocks, a_limit_of_zero_is_one_vote) {
  auto taken = rival_.lock.acquire();
  auto tried = async_acquire(mine_->lock, 0s).future();
  EXPECT_EQ(why(in_no_time(tried)), errc::busy);
  EXPECT_EQ(mine_->lock.attempts(), 1U);
  EXPECT_EQ(w_.seen->count(event_kind::busy), 1U);
}

TEST_F(async_redlocks, a_timed_out_wait_is_reported_to_the_observer) {
  auto taken = rival_.lock.acquire();
  // A node has a third of the limit for its answer: more than the clock advances at once, so that a
  // slow machine does not look like nodes that do not answer.
  auto waiting = async_acquire(mine_->lock, 4s).future();
  await_votes(*mine_, 2);
  EXPECT_EQ(why(get(waiting)), errc::timed_out);
  EXPECT_EQ(w_.seen->count(event_kind::gave_up), 1U);
}

TEST_F(async_redlocks, many_simultaneous_waiters_acquire_it_one_after_the_other) {
  constexpr int many = 8;
  std::atomic<int> inside{0}, passed{0};
  for (int i = 0; i < many; ++i) {
    async_acquire(i % 2 == 0 ? mine_->lock : rival_.lock).start([&](lease_result got) {
      ASSERT_TRUE(got);
      EXPECT_EQ(++inside, 1);
      --inside;
      async_release(std::move(*got)).start([&](const holdfast::status& how) {
        EXPECT_TRUE(how);
        ++passed;
      });
    });
  }
  // By small steps: if the clock advanced to each next wake, a vote on a slow machine would last
  // seconds by it, and so would the pause after a split one.
  harness::eventually("all", [&] {
    harness::pass(*w_.clock, 5ms);
    return passed == many;
  });
  w_.until_free();
}

harness::detached_task take_again_and_again(holdfast::redlock& lock, std::promise<int>& done) {
  int times = 0;
  std::uint64_t last = 0;
  for (; times < 5; ++times) {
    lease_result held = co_await async_acquire(lock);
    if (!held || held->fence() <= last) break;
    last = held->fence();
    if (!co_await async_release(std::move(*held))) break;
  }
  done.set_value(times);
}

TEST_F(async_redlocks, a_coroutine_takes_it_again_and_again) {
  std::promise<int> done;
  take_again_and_again(mine_->lock, done);
  auto times = done.get_future();
  EXPECT_EQ(get(times), 5);
  w_.until_free();
}

// ---- asked to stop

TEST_F(async_redlocks, a_wait_that_is_stopped_before_it_begins_sends_no_request) {
  std::stop_source stop;
  stop.request_stop();
  auto waiting = async_acquire(mine_->lock, {}, stop.get_token()).future();
  EXPECT_EQ(why(in_no_time(waiting)), errc::cancelled);
  EXPECT_EQ(mine_->lock.attempts(), 0U);
  EXPECT_EQ(w_.seen->count(event_kind::gave_up), 1U);
}

TEST_F(async_redlocks, a_wait_that_is_stopped_in_a_pause_ends_at_once) {
  auto taken = rival_.lock.acquire();
  std::stop_source stop;
  auto waiting = async_acquire(mine_->lock, {}, stop.get_token()).future();
  await_votes(*mine_, 2);
  stop.request_stop();
  EXPECT_EQ(why(in_no_time(waiting)), errc::cancelled);
  EXPECT_EQ(w_.seen->count(event_kind::gave_up), 1U);
  EXPECT_NO_THROW(taken.check());
  EXPECT_FALSE(taken.release());
  w_.until_free();
}

TEST_F(async_redlocks, a_wait_that_is_stopped_while_nodes_hang_releases_the_other_votes) {
  meet(*mine_);
  for (const std::size_t i : {0U, 2U}) mine_->ways[i]->hang(verb::acquire);
  std::stop_source stop;
  auto waiting = async_acquire(mine_->lock, {}, stop.get_token()).future();
  harness::eventually("one grants it", [&] { return w_.holders(1) == 1; });
  stop.request_stop();
  EXPECT_EQ(why(in_no_time(waiting)), errc::cancelled);
  harness::eventually("given back", [&] { return w_.holders(1) == 0; });
  for (auto& way : mine_->ways) way->let_go();
  mine_->settle();
  w_.until_free();
}

TEST_F(async_redlocks, a_wait_that_is_stopped_while_a_release_hangs_ends_a_moment_later) {
  meet(*mine_);
  const auto so_far = mine_->ways[1]->count(verb::release);
  for (const std::size_t i : {0U, 2U}) mine_->ways[i]->set(verb::acquire, fault::drop_request);
  mine_->ways[1]->hang(verb::release);
  std::stop_source stop;
  auto waiting = async_acquire(mine_->lock, {}, stop.get_token()).future();
  mine_->ways[1]->await(verb::release, so_far + 1);
  EXPECT_EQ(waiting.wait_for(0s), std::future_status::timeout);
  const auto then = w_.clock->now();
  stop.request_stop();
  harness::eventually("it ends", [&] {
    harness::to_next_wake(*w_.clock, 80ms);
    return waiting.wait_for(0s) == std::future_status::ready;
  });
  EXPECT_LE(w_.clock->now() - then, 200ms);
  EXPECT_EQ(why(in_no_time(waiting)), errc::cancelled);
  for (auto& way : mine_->ways) way->let_go();
}

TEST_F(async_redlocks, a_wait_that_is_stopped_after_its_grant_has_the_lock) {
  std::stop_source stop;
  std::promise<lease_result> told;
  async_acquire(mine_->lock, {}, stop.get_token()).start([&](lease_result got) {
    stop.request_stop();
    told.set_value(std::move(got));
  });
  auto waiting = told.get_future();
  EXPECT_TRUE(in_no_time(waiting));
}

// ---- where the result arrives

TEST_F(async_redlocks, a_callback_may_release_the_lock_at_once_in_either_form) {
  std::promise<std::error_code> first;
  async_acquire(mine_->lock).start([&](lease_result got) { first.set_value(got->release()); });
  auto released = first.get_future();
  EXPECT_FALSE(in_no_time(released));
  std::promise<void> second;
  async_acquire(mine_->lock).start([&](lease_result got) {
    async_release(std::move(*got)).start([&](const holdfast::status& how) {
      EXPECT_TRUE(how);
      second.set_value();
    });
  });
  auto released_later = second.get_future();
  in_no_time(released_later);
  w_.until_free();
}

TEST_F(async_redlocks, a_callback_that_drops_its_lease_releases_the_lock) {
  std::promise<void> told;
  async_acquire(mine_->lock).start([&](const lease_result& got) {
    EXPECT_TRUE(got);
    told.set_value();
  });
  auto over = told.get_future();
  in_no_time(over);
  w_.until_free();
}

TEST_F(async_redlocks, a_callback_that_waits_delays_no_other_wait_of_a_session) {
  std::promise<void> may_go;
  std::promise<void> inside;
  async_acquire(mine_->lock).start([&](const lease_result&) {
    inside.set_value();
    may_go.get_future().wait();
  });
  auto is_inside = inside.get_future();
  in_no_time(is_inside);
  for (auto& s : mine_->sessions) {
    holdfast::mutex m(s, "m");
    EXPECT_TRUE(async_acquire(m).future().get());
  }
  may_go.set_value();
  w_.until_free();
}

// The first node's session is the one on whose thread the result arrives.
TEST_F(async_redlocks, a_node_that_hangs_delays_no_result_whichever_it_is) {
  meet(*mine_);
  for (std::size_t hung = 0; hung < nodes; ++hung) {
    mine_->ways[hung]->hang(verb::acquire);
    auto got = async_acquire(mine_->lock).future();
    auto held = in_no_time(got).value();
    mine_->ways[hung]->let_go();
    mine_->ways[hung]->hang(verb::release);
    auto released = async_release(std::move(held)).future();
    EXPECT_TRUE(in_no_time(released)) << hung;
    mine_->ways[hung]->let_go();
    mine_->settle();
    w_.until_free();
  }
}

// ---- what it keeps alive

TEST_F(async_redlocks, the_lock_object_may_be_destroyed_during_a_wait_and_sessions_stay) {
  auto taken = rival_.lock.acquire();
  std::stop_source stop;
  auto waiting = async_acquire(mine_->lock).future();
  auto stopped = async_acquire(mine_->lock, {}, stop.get_token()).future();
  await_votes(*mine_, 4);
  mine_.reset();
  stop.request_stop();
  EXPECT_EQ(why(get(stopped)), errc::cancelled);
  EXPECT_FALSE(taken.release());
  auto held = get(waiting).value();
  EXPECT_NO_THROW(held.check());
  EXPECT_FALSE(held.release());
  w_.until_free();
}

TEST_F(async_redlocks, the_lock_and_its_sessions_may_be_destroyed_in_the_callback) {
  std::promise<void> told;
  async_acquire(mine_->lock).start([&](lease_result got) {
    mine_.reset();
    EXPECT_FALSE(got->release());
    told.set_value();
  });
  auto over = told.get_future();
  in_no_time(over);
  w_.until_free();
}

TEST_F(async_redlocks, a_wait_that_is_never_begun_does_nothing) {
  {
    const auto never = async_acquire(mine_->lock);
  }
  EXPECT_EQ(mine_->lock.attempts(), 0U);
  {
    const auto never = async_release(mine_->lock.acquire());
  }
  w_.until_free();
}

// ---- released

TEST_F(async_redlocks, a_release_waits_for_a_majority_and_no_longer_than_a_node_may_take) {
  client one(w_);
  meet(one);
  auto held = one.lock.acquire();
  one.settle();
  for (const std::size_t i : {0U, 1U}) one.ways[i]->hang(verb::release);
  const auto so_far = one.ways[2]->count(verb::release);
  auto released = async_release(std::move(held)).future();
  one.ways[2]->await(verb::release, so_far + 1);
  EXPECT_EQ(released.wait_for(0s), std::future_status::timeout);
  w_.clock->advance(200ms);
  EXPECT_EQ(why(in_no_time(released)), errc::unavailable);
  for (auto& way : one.ways) way->let_go();
  one.settle();
  w_.until_free();
}

TEST_F(async_redlocks, an_empty_lease_is_refused) {
  EXPECT_THROW((void)async_release(quorum_lease{}), holdfast::error);
  auto held = mine_->lock.acquire();
  auto released = async_release(std::move(held)).future();
  EXPECT_TRUE(in_no_time(released));
  EXPECT_THROW((void)async_release(std::move(held)), holdfast::error);
}

}  // namespace
