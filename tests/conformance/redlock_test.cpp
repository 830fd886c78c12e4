#include <atomic>
#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"
#include "harness/why.hpp"

// A majority in which the row's store is a deciding node: of two nodes both have to grant the lock.
// The other one is in memory, and grants the first request.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lease_state;
using holdfast::quorum_lease;
using holdfast::redlock;

class redlocks : public suite {
 protected:
  /// The redlock of another process.
  std::unique_ptr<redlock> another_one(std::chrono::milliseconds lease = {}) const {
    return std::make_unique<redlock>(std::vector{another(), holdfast::open(beside_url_)}, name_,
                                     patient(lease));
  }
  /// The time-out for a node is so long that no node loses its vote by slowness.
  static holdfast::redlock_options patient(std::chrono::milliseconds lease = {}) {
    holdfast::redlock_options o;
    o.lease = lease;
    o.node_timeout = 10s;
    return o;
  }
  /// Nobody holds or waits for it at the row's store.
  void expect_nothing_left() const {
    harness::eventually("nothing is left", [&] {
      const auto info = here_.show(name_);
      return info.holders.empty() && info.waiters.empty();
    });
  }
  /// One vote. Where answers are lost, too few nodes may answer.
  static bool gets(redlock& lock) {
    try {
      return lock.try_acquire().has_value();
    } catch (const holdfast::error& e) {
      EXPECT_EQ(e.reason(), errc::unavailable) << e.what();
      return false;
    }
  }
  bool free_for_others() const { return gets(*another_one()); }

  const std::string beside_url_ =
      "memory:beside " + std::to_string(reinterpret_cast<std::uintptr_t>(this));
  holdfast::session beside_ = holdfast::open(beside_url_);
  redlock mine_{{here_, beside_}, name_, patient()};
};

INSTANTIATE_TEST_SUITE_P(stores, redlocks, testing::ValuesIn(cells({"redlock"})), cell_name);

TEST_P(redlocks, a_redlock_excludes_others_until_its_release) {
  quorum_lease held = mine_.acquire();
  EXPECT_EQ(held.state(), lease_state::held);
  EXPECT_EQ(held.votes(), (std::vector{holdfast::vote::granted, holdfast::vote::granted}));
  EXPECT_EQ(holders(), 1U);
  EXPECT_FALSE(free_for_others());
  EXPECT_NO_THROW(held.check());
  EXPECT_FALSE(held.release());
  expect_nothing_left();
  harness::eventually("others get it", [&] { return free_for_others(); });
}

TEST_P(redlocks, no_two_holders_overlap) {
  constexpr int rounds = 5;
  std::atomic<int> inside{0};
  int passed = 0;  // not atomic: only the lock orders it
  const auto work = [&] {
    const auto lock = another_one();
    for (int i = 0; i < rounds; ++i) {
      const quorum_lease held = lock->acquire();
      EXPECT_EQ(++inside, 1);
      ++passed;
      --inside;
    }
  };
  std::thread first(work), second(work);
  first.join(), second.join();
  EXPECT_EQ(passed, 2 * rounds);
  expect_nothing_left();
}

TEST_P(redlocks, a_waiter_acquires_it_after_the_release) {
  quorum_lease held = mine_.acquire();
  const auto other = another_one();
  auto next = harness::concurrently([&] { return other->acquire(); });
  harness::eventually("a vote that was refused", [&] { return other->attempts() >= 1; });
  EXPECT_FALSE(held.release());
  quorum_lease got = next.get();
  EXPECT_NO_THROW(got.check());
  EXPECT_FALSE(got.release());
  expect_nothing_left();
}

TEST_P(redlocks, without_a_thread_a_redlock_excludes_others_until_its_release) {
  auto got = async_acquire(mine_).future().get();
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->votes(), (std::vector{holdfast::vote::granted, holdfast::vote::granted}));
  EXPECT_EQ(holders(), 1U);
  EXPECT_FALSE(free_for_others());
  EXPECT_NO_THROW(got->check());
  EXPECT_TRUE(async_release(std::move(*got)).future().get());
  expect_nothing_left();
  harness::eventually("others get it", [&] { return free_for_others(); });
}

TEST_P(redlocks, a_waiter_without_a_thread_acquires_it_after_the_release) {
  quorum_lease held = mine_.acquire();
  const auto other = another_one();
  auto next = async_acquire(*other).future();
  harness::eventually("a vote that was refused", [&] { return other->attempts() >= 1; });
  EXPECT_TRUE(async_release(std::move(held)).future().get());
  auto got = next.get();
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_NO_THROW(got->check());
  EXPECT_FALSE(got->release());
  expect_nothing_left();
}

TEST_P(redlocks, without_a_thread_a_refused_or_stopped_call_leaves_nothing_at_any_node) {
  const holdfast::lease taken = holdfast::mutex{another(), name_}.acquire();
  EXPECT_EQ(harness::why(async_acquire(mine_, 0s).future().get()), errc::busy);
  std::stop_source stop;
  auto waits = async_acquire(mine_, {}, stop.get_token()).future();
  const auto votes = mine_.attempts();
  harness::eventually("another vote", [&] { return mine_.attempts() > votes; });
  stop.request_stop();
  EXPECT_EQ(harness::why(waits.get()), errc::cancelled);
  EXPECT_NO_THROW(taken.check());
  EXPECT_EQ(holders(), 1U);
  harness::eventually("nothing is left beside",
                      [&] { return beside_.show(name_).holders.empty(); });
}

TEST_P(redlocks, fences_grow_from_holder_to_holder) {
  const auto other = another_one();
  std::uint64_t last = 0;
  for (int i = 0; i < 4; ++i) {
    const quorum_lease held = (i % 2 == 0 ? mine_ : *other).acquire();
    EXPECT_GT(held.fence(), last);
    last = held.fence();
  }
}

TEST_P(redlocks, a_plain_lock_at_a_node_is_respected_and_the_next_fence_is_greater) {
  holdfast::mutex single{another(), name_};
  std::uint64_t last = 0;
  {
    const holdfast::lease taken = single.acquire();
    EXPECT_FALSE(gets(mine_));
    EXPECT_NO_THROW(taken.check());
    last = taken.fence();
  }
  harness::eventually("it is free", [&] {
    try {
      const auto held = mine_.try_acquire();
      return held && held->fence() > last;
    } catch (const holdfast::error& e) {
      EXPECT_EQ(e.reason(), errc::unavailable) << e.what();
      return false;
    }
  });
}

TEST_P(redlocks, a_try_that_is_refused_leaves_nothing_at_any_node) {
  const holdfast::lease taken = holdfast::mutex{another(), name_}.acquire();
  EXPECT_FALSE(gets(mine_));
  try {
    EXPECT_FALSE(mine_.try_acquire_for(50ms));
  } catch (const holdfast::error& e) {  // slower than its share of that time
    EXPECT_EQ(e.reason(), errc::unavailable);
  }
  std::stop_source stop;
  auto waits = harness::concurrently(
      [&] { return reason_of([&] { (void)mine_.acquire(stop.get_token()); }); });
  const auto votes = mine_.attempts();
  harness::eventually("another vote", [&] { return mine_.attempts() > votes; });
  stop.request_stop();
  EXPECT_EQ(waits.get(), errc::cancelled);
  EXPECT_NO_THROW(taken.check());
  EXPECT_EQ(holders(), 1U);
  harness::eventually("nothing is left beside",
                      [&] { return beside_.show(name_).holders.empty(); });
}

TEST_P(redlocks, a_redlock_is_lost_when_its_node_grants_the_lock_to_another) {
  const auto lock = another_one(lease_of(1s));
  quorum_lease held = lock->acquire();
  std::optional<holdfast::lease> taken;
  harness::eventually("another has it there", [&] {
    (void)here_.force_release(name_);
    taken = holdfast::mutex{here_, name_}.try_acquire();
    return taken.has_value();
  });
  harness::eventually("told", [&] { return held.lost().stop_requested(); });
  EXPECT_EQ(held.state(), lease_state::lost);
  EXPECT_EQ(reason_of([&] { held.check(); }), errc::lost);
  EXPECT_EQ(held.release(), errc::lost);
  EXPECT_NO_THROW(taken->check());
}

TEST_P(redlocks, a_lock_that_a_node_forgot_is_restored_with_the_same_fence) {
  const auto lock = another_one(lease_of(1s));
  const quorum_lease held = lock->acquire();
  const auto fence = held.fence();
  (void)here_.force_release(name_);
  harness::eventually("renewed", [&] { return holders() == 1; });
  EXPECT_EQ(held.fence(), fence);
  EXPECT_NO_THROW(held.check());
}

TEST_P(redlocks, a_redlock_without_renewal_expires) {
  const quorum_lease held = mine_.acquire(lease_of(500ms));
  harness::eventually("ended", [&] { return held.state() == lease_state::lost; });
  harness::eventually("free for others", [&] { return free_for_others(); });
}

TEST_P(redlocks, one_store_does_not_vote_twice) {
  redlock twice{{here_, another()}, name_, patient()};
  EXPECT_EQ(reason_of([&] { (void)twice.try_acquire(); }), errc::invalid_argument);
  expect_nothing_left();
}

}  // namespace
}  // namespace conformance
