#include <barrier>
#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"
#include "harness/seed.hpp"

// Waiting for an exclusive lock: being woken, giving up, and many at once.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lease;

class waiting : public suite {
 protected:
  std::unique_ptr<exclusive> make(holdfast::session s) const {
    return make_exclusive(GetParam().primitive, std::move(s), name_);
  }
  std::unique_ptr<exclusive> lock_ = make(here_);
  std::unique_ptr<exclusive> rival_ = make(another());
};

INSTANTIATE_TEST_SUITE_P(
    stores, waiting, testing::ValuesIn(cells({"mutex", "fair_mutex", "shared_mutex", "semaphore"})),
    cell_name);

TEST_P(waiting, a_waiter_acquires_the_lock_when_it_is_released) {
  lease held = lock_->acquire();
  std::uint64_t fence = 0;
  std::thread waiter([&] { fence = rival_->acquire().fence(); });
  until_waiting(1);
  const auto mine = held.fence();
  EXPECT_FALSE(held.release());
  waiter.join();
  EXPECT_GT(fence, mine);
}

TEST_P(waiting, a_waiter_of_the_same_session_acquires_it_too) {
  lease held = lock_->acquire();
  std::thread waiter([&, mine = held.fence()] { EXPECT_GT(lock_->acquire().fence(), mine); });
  std::thread other([&] { EXPECT_TRUE(lock_->try_acquire_for(1h)); });
  EXPECT_FALSE(lock_->try_acquire());
  held = {};
  waiter.join();
  other.join();
}

TEST_P(waiting, a_wait_that_is_cancelled_ends_and_leaves_nothing_behind) {
  const lease held = lock_->acquire();
  std::stop_source stop;
  std::thread waiter([&] {
    EXPECT_EQ(reason_of([&] { (void)rival_->acquire(stop.get_token()); }), errc::cancelled);
    EXPECT_FALSE(rival_->try_acquire_for(1h, stop.get_token()));
  });
  until_waiting(1);
  stop.request_stop();
  waiter.join();
  expect_no_waiters();
}

TEST_P(waiting, a_wait_that_is_cancelled_before_it_begins_gets_nothing_even_if_the_name_is_free) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(reason_of([&] { (void)lock_->acquire(stop.get_token()); }), errc::cancelled);
  EXPECT_FALSE(lock_->try_acquire_for(1h, stop.get_token()));
  expect_free();
}

TEST_P(waiting, cancelling_one_of_three_wakes_that_one_and_the_others_get_their_turn) {
  lease held = lock_->acquire();
  std::stop_source stop;
  std::atomic<int> served{0};
  const auto other = make(another());
  std::thread first([&] { (void)other->acquire(), ++served; });
  until_waiting(1);
  std::thread second([&] { EXPECT_FALSE(rival_->try_acquire_for(1h, stop.get_token())); });
  until_waiting(2);
  const auto last = make(another());
  std::thread third([&] { (void)last->acquire(), ++served; });
  until_waiting(3);
  stop.request_stop();
  second.join();
  EXPECT_EQ(served, 0);
  held = {};
  first.join();
  third.join();
  EXPECT_EQ(served, 2);
}

// From zero to as long as a slow store takes to hand over, short times as often as long ones.
// Measured by the clock: on a busy machine a thread that yields gets the processor back
// milliseconds later.
std::chrono::microseconds a_while(harness::random& random) {
  return std::chrono::microseconds(random.between(0, 1 << random.between(0, 11)));
}
void spin_for(std::chrono::microseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
  }
}

// Either the waiter has the lock, or nobody: nothing else, and nothing stays behind. A lock that
// the store grants to a waiter that has gone already is released a moment later.
TEST_P(waiting, a_deadline_that_races_with_the_grant_leaves_no_unowned_hold) {
  harness::random random;
  for (int i = 0; i < 60; ++i) {
    lease held = lock_->acquire();
    const auto timeout = std::chrono::microseconds(random.between(0, 1'500));
    std::thread waiter([&] {
      const auto got = rival_->try_acquire_for(timeout);
      EXPECT_TRUE(!got || got->remaining() > 0ns);
    });
    spin_for(a_while(random));
    EXPECT_FALSE(held.release());
    waiter.join();
    SCOPED_TRACE("round " + std::to_string(i));
    until_free();
    if (HasFailure()) return;
  }
}

TEST_P(waiting, a_cancellation_that_races_with_the_grant_leaves_no_unowned_hold) {
  harness::random random;
  for (int i = 0; i < 60; ++i) {
    lease held = lock_->acquire();
    std::stop_source stop;
    std::thread waiter([&] {
      const auto got = rival_->try_acquire_for(1h, stop.get_token());
      EXPECT_TRUE(!got || got->remaining() > 0ns);
    });
    if (random.one_in(2)) until_waiting(1);
    const auto later = a_while(random);
    std::thread canceller([&, later] {
      spin_for(later);
      stop.request_stop();
    });
    EXPECT_FALSE(held.release());
    waiter.join();
    canceller.join();
    SCOPED_TRACE("round " + std::to_string(i));
    until_free();
    if (HasFailure()) return;
  }
}

// A shared counter without atomics: two threads inside at once lose increments, and TSan reports
// them.
TEST_P(waiting, a_hundred_waiters_acquire_the_lock_one_by_one) {
  constexpr int sessions = 4;
  constexpr int threads_each = 25;
  std::vector<std::unique_ptr<exclusive>> locks;
  for (int i = 0; i < sessions; ++i) locks.push_back(make(another({.store_timeout = 1min})));
  std::barrier start(sessions * threads_each);
  int inside = 0;
  int entered = 0;
  std::uint64_t last_fence = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < sessions * threads_each; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      const lease held = locks[static_cast<std::size_t>(i % sessions)]->acquire();
      EXPECT_EQ(++inside, 1);
      EXPECT_GT(held.fence(), last_fence);
      last_fence = held.fence();
      ++entered;
      std::this_thread::yield();
      --inside;
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(entered, sessions * threads_each);
  until_free();
}

TEST_P(waiting, waiters_that_give_up_at_random_do_not_block_the_others) {
  harness::random random;
  constexpr int threads_count = 16;
  constexpr int rounds = 15;
  std::vector<std::unique_ptr<exclusive>> locks;
  for (int i = 0; i < 4; ++i) locks.push_back(make(another()));
  int entered = 0;
  std::atomic<int> got{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < threads_count; ++i) {
    threads.emplace_back([&, i, seed = random.bits()] {
      harness::random mine(seed, static_cast<std::uint64_t>(i));
      for (int round = 0; round < rounds; ++round) {
        const auto wait = std::chrono::microseconds(mine.between(0, 3'000));
        const auto held = locks[static_cast<std::size_t>(i % 4)]->try_acquire_for(wait);
        if (!held) continue;
        ++entered;
        ++got;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(entered, got.load());
  until_free();
}

}  // namespace
}  // namespace conformance
