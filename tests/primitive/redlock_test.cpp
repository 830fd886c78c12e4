#include <gtest/gtest.h>

#include <future>

#include "harness/concurrently.hpp"
#include "harness/next_wake.hpp"
#include "harness/seed.hpp"
#include "primitive/quorum_stage.hpp"

// A majority of stores over memory, each fault in turn, on a clock that stands still.
namespace {

using namespace quorum_test;
using holdfast::errc;
using holdfast::lease_state;
using holdfast::redlock;
using holdfast::vote;

template <class F>
errc reason_of(F f) {
  try {
    f();
  } catch (const holdfast::error& e) {
    return e.reason();
  }
  return errc{};
}

std::size_t count(const std::vector<vote>& votes, vote v) {
  return static_cast<std::size_t>(std::count(votes.begin(), votes.end(), v));
}

/// Advances the clock until the call is over.
template <class Future>
auto get(Future& f, world& w) {
  harness::eventually("the end of it", [&] {
    if (f.wait_for(0s) == std::future_status::ready) return true;
    harness::pass(*w.clock, 50ms);
    return false;
  });
  return f.get();
}

/// The result while the clock stands still.
template <class Future>
auto in_no_time(Future& f) {
  harness::eventually("the end of it", [&] { return f.wait_for(0s) == std::future_status::ready; });
  return f.get();
}

class redlocks : public testing::TestWithParam<std::tuple<std::size_t, form>> {
 protected:
  std::size_t n() const { return std::get<0>(GetParam()); }
  std::size_t majority() const { return n() / 2 + 1; }
  unsigned subsets() const { return 1U << n(); }
  bool may_be_away(unsigned nodes) const { return n() - ones(nodes) >= majority(); }
  world w_{n()};
  const in_form do_{std::get<1>(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(nodes, redlocks,
                         testing::Combine(testing::Values(1, 2, 3, 4, 5),
                                          testing::Values(form::by_a_thread,
                                                          form::without_a_thread)),
                         [](const auto& cell) {
                           return std::to_string(std::get<0>(cell.param)) + "_" +
                                  name_of(std::get<1>(cell.param));
                         });

TEST_P(redlocks, one_holder_at_a_time_has_the_lock_and_fences_grow) {
  client a(w_), b(w_);
  std::uint64_t last = 0;
  for (int i = 0; i < 10; ++i) {
    client& mine = i % 2 == 0 ? a : b;
    client& other = i % 2 == 0 ? b : a;
    auto held = do_.acquire(mine.lock);
    EXPECT_GT(held.fence(), last);
    last = held.fence();
    EXPECT_GE(count(held.votes(), vote::granted), majority());
    EXPECT_FALSE(do_.try_acquire(other.lock));
    EXPECT_FALSE(do_.release(std::move(held)));
  }
  w_.until_free();
}

TEST_P(redlocks, every_minority_may_be_down_and_no_majority) {
  for (unsigned down = 0; down < subsets(); ++down) {
    client a(w_);
    a.cut(down);
    if (may_be_away(down)) {
      EXPECT_TRUE(do_.try_acquire(a.lock)) << down;
    } else {
      EXPECT_EQ(reason_of([&] { (void)do_.try_acquire(a.lock); }), errc::unavailable) << down;
    }
    a.settle();
    a.cut(0);
    harness::eventually("free", [&] {
      harness::pass(*w_.clock, 300ms);
      return w_.held_at() == 0;
    });
  }
}

TEST_P(redlocks, every_minority_may_hang_and_late_votes_are_released) {
  for (unsigned hung = 0; hung < subsets(); ++hung) {
    client a(w_);
    EXPECT_TRUE(do_.try_acquire(a.lock));  // from now on it knows the nodes
    a.settle();
    for (std::size_t i = 0; i < n(); ++i) {
      if ((hung >> i & 1U) != 0) a.ways[i]->hang(verb::acquire);
    }
    auto got = harness::concurrently([&] {
      return reason_of([&] {
        if (!do_.try_acquire(a.lock)) throw holdfast::error({errc::busy, "not had"});
      });
    });
    // Time would pass for the answering nodes, too, and a busy machine is slower than the clock
    // here.
    if (may_be_away(hung)) {
      EXPECT_EQ(in_no_time(got), errc{}) << hung;
    } else {
      EXPECT_EQ(get(got, w_), errc::unavailable) << hung;
    }
    for (auto& way : a.ways) way->let_go();
    a.settle();
    w_.until_free();
  }
}

TEST_P(redlocks, a_vote_whose_answer_is_lost_is_released_too) {
  client a(w_);
  for (auto& way : a.ways) way->set(verb::acquire, fault::drop_reply);
  EXPECT_EQ(reason_of([&] { (void)do_.try_acquire(a.lock); }), errc::unavailable);
  EXPECT_GT(count(a.lock.last_votes(), vote::failed), n() - majority());
  w_.until_free();
}

TEST_P(redlocks, a_failed_release_of_a_vote_is_repeated_when_the_node_is_back) {
  client a(w_);
  auto held = do_.acquire(a.lock);
  a.cut(subsets() - 1);
  EXPECT_EQ(do_.release(std::move(held)), errc::unavailable);
  EXPECT_GE(w_.held_at(), majority());
  a.cut(0);
  harness::eventually("free", [&] {
    harness::pass(*w_.clock, 300ms);
    return w_.held_at() == 0;
  });
}

TEST_P(redlocks, a_majority_renews_the_lock_and_restores_it_at_forgetful_nodes) {
  client a(w_);
  auto held = do_.acquire(a.lock);
  harness::eventually("everywhere", [&] { return w_.held_at() == n(); });
  const std::size_t lost = n() - majority();
  for (std::size_t i = 0; i < lost; ++i) w_.restart_empty(i);
  EXPECT_EQ(w_.held_at(), majority());
  w_.clock->advance(10s);
  harness::eventually("again everywhere", [&] { return w_.held_at() == n(); });
  for (int i = 0; i < 9; ++i) {
    harness::eventually("renewed", [&] { return held.remaining() > 25s; });
    w_.clock->advance(10s);
  }
  harness::eventually("renewed", [&] { return held.remaining() > 25s; });
  EXPECT_NO_THROW(held.check());
}

TEST_P(redlocks, without_a_majority_a_lock_is_suspect_and_then_lost_in_time) {
  client a(w_);
  auto held = do_.acquire(a.lock);
  harness::eventually("everywhere", [&] { return w_.held_at() == n(); });
  a.cut(subsets() - 1);
  w_.clock->advance(10s);
  w_.seen->await(holdfast::event_kind::suspect);
  EXPECT_EQ(held.state(), lease_state::suspect);
  w_.clock->advance(19'800ms);
  w_.seen->await(holdfast::event_kind::lost);
  EXPECT_EQ(w_.seen->detail(holdfast::event_kind::lost),
            "the lease ended before a majority had renewed it");
  EXPECT_TRUE(held.lost().stop_requested());
  EXPECT_GE(w_.held_at(), majority());  // the nodes still count it as held
  EXPECT_EQ(reason_of([&] { held.check(); }), errc::lost);
  EXPECT_EQ(do_.release(std::move(held)), errc::lost);
}

TEST_P(redlocks, a_client_cut_off_from_a_minority_keeps_it_and_from_a_majority_fails) {
  client a(w_), b(w_);
  const unsigned minority = (1U << (n() - majority())) - 1;
  a.cut(minority);
  auto held = do_.acquire(a.lock);
  b.cut(~minority & (subsets() - 1));
  EXPECT_EQ(reason_of([&] { (void)do_.try_acquire(b.lock); }), errc::unavailable);
  b.cut(0);
  EXPECT_FALSE(do_.try_acquire(b.lock));
  EXPECT_NO_THROW(held.check());
}

// Quorums that differ, nodes that forget (fewer than would matter): each next holder has a greater
// fence.
TEST_P(redlocks, fences_grow_over_all_majorities) {
  client a(w_), b(w_);
  harness::random dice(7);
  std::uint64_t last = 0;
  for (int i = 0; i < 60; ++i) {
    client& mine = dice.one_in(2) ? a : b;
    unsigned cut = 0;
    do cut = dice.between(0u, subsets() - 1);
    while (!may_be_away(cut));
    mine.cut(cut);
    auto held = do_.try_acquire(mine.lock);
    ASSERT_TRUE(held);
    EXPECT_GT(held->fence(), last);
    last = held->fence();
    (void)do_.release(std::move(*held));
    mine.settle();
    mine.cut(0);
    w_.until_free();
  }
}

TEST_P(redlocks, an_answer_that_comes_after_the_lease_is_no_lock) {
  client a(w_, {.lease = 100ms});
  (void)do_.release(do_.acquire(a.lock));
  a.settle();
  std::vector<std::size_t> so_far;
  for (auto& way : a.ways) so_far.push_back(way->count(verb::acquire));
  for (auto& way : a.ways) way->hang(verb::acquire);
  auto got = harness::concurrently([&] { return do_.try_acquire_for(a.lock, 100s); });
  for (std::size_t i = 0; i < n(); ++i) a.ways[i]->await(verb::acquire, so_far[i] + 1);
  w_.clock->advance(150ms);  // longer than the lease, shorter than the nodes may take
  for (auto& way : a.ways) way->let_go();
  const auto held = get(got, w_);
  ASSERT_TRUE(held);
  EXPECT_GE(a.lock.attempts(), 3u);
}

TEST(redlock_input, impossible_arguments_are_refused_before_any_lock_is_acquired) {
  world w(3);
  const auto open = [&](std::size_t i) { return w.open(i, nullptr); };
  const auto make = [&](std::vector<holdfast::session> s, holdfast::redlock_options o = {},
                        std::string name = "job") {
    redlock lock(std::move(s), std::move(name), std::move(o));
  };
  const auto three = [&] { return std::vector{open(0), open(1), open(2)}; };
  EXPECT_EQ(reason_of([&] { make({}); }), errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { make(three(), {.lease = 1ms}); }), errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { make(three(), {.node_timeout = 0ms}); }), errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { make(three(), {}, ""); }), errc::invalid_name);
  const auto one = open(0);
  EXPECT_EQ(reason_of([&] { make({one, open(1), one}); }), errc::invalid_argument);
  redlock twice({open(0), open(1), open(1)}, "job");
  EXPECT_EQ(reason_of([&] { (void)twice.try_acquire(); }), errc::invalid_argument);
  EXPECT_EQ(w.held_at(), 0u);
  redlock fine(three(), "job");
  EXPECT_EQ(reason_of([&] { (void)fine.acquire(1ms); }), errc::invalid_argument);
}

TEST(redlock_input, a_name_in_use_as_another_kind_is_reported) {
  world w(3);
  client a(w);
  holdfast::semaphore s0(w.open(0, nullptr), "job", 2), s1(w.open(1, nullptr), "job", 2);
  const auto held0 = s0.acquire(), held1 = s1.acquire();
  EXPECT_EQ(reason_of([&] { (void)a.lock.try_acquire(); }), errc::kind_mismatch);
}

TEST(redlock_input, a_name_in_use_as_something_else_on_one_node_is_one_vote) {
  world w(3);
  client a(w), rival(w);
  holdfast::semaphore s0(w.open(0, nullptr), "job", 2);
  const auto other = s0.acquire();
  const auto taken = rival.lock.acquire();
  EXPECT_FALSE(a.lock.try_acquire());
}

TEST(redlock_breaker, a_node_that_fails_gets_no_request_for_a_while_and_then_again) {
  world w(3);
  client a(w);
  a.cut(1);
  harness::eventually("it was asked and failed", [&] {
    (void)a.lock.acquire().release();
    return a.lock.last_votes()[0] == vote::skipped;
  });
  const auto asked = a.ways[0]->count(verb::acquire);
  for (int i = 0; i < 5; ++i) (void)a.lock.acquire().release();
  EXPECT_EQ(a.ways[0]->count(verb::acquire), asked);
  a.cut(0);
  w.clock->advance(5s);
  (void)a.lock.acquire().release();
  a.ways[0]->await(verb::acquire, asked + 1);
}

TEST(redlock_std, it_is_a_lockable_of_its_thread) {
  world w(3);
  client a(w), b(w);
  const auto held_by_others = [&] { return !b.lock.try_lock(); };
  {
    const std::lock_guard guard{a.lock};
    EXPECT_TRUE(held_by_others());
    EXPECT_GT(a.lock.fence(), 0u);
    EXPECT_NO_THROW(a.lock.check());
    EXPECT_EQ(reason_of([&] { a.lock.lock(); }), errc::deadlock);
    EXPECT_FALSE(a.lock.try_lock());
  }
  EXPECT_EQ(a.lock.fence(), 0u);
  EXPECT_TRUE(b.lock.try_lock());
  b.lock.unlock();
  b.lock.unlock();
  w.seen->await(holdfast::event_kind::misuse);
}

}  // namespace
