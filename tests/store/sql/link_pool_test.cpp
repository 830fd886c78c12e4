#include "store/sql/link_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <holdfast/testing.hpp>
#include <latch>
#include <new>
#include <thread>
#include <vector>

#include "harness/eventually.hpp"

// What a session's threads share: connections.
namespace sql_test {
namespace {

using namespace std::chrono_literals;
using holdfast::store::sql::link_pool;
using holdfast::store::sql::row_link;
using made = holdfast::result<std::unique_ptr<row_link>>;

TEST(link_pools, have_room_again_for_what_there_was_no_memory_for) {
  int failures = 2;
  link_pool pool(
      [&](auto) -> made {
        if (failures-- > 0) throw std::bad_alloc();
        return holdfast::failure{holdfast::errc::unavailable, "no server"};
      },
      1);
  for (int i = 0; i < 2; ++i)
    EXPECT_THROW((void)pool.borrow(holdfast::boot_time{}), std::bad_alloc);
  const auto next = pool.borrow(holdfast::boot_time{});
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().what, "no server");
}

const holdfast::failure no_server{holdfast::errc::unavailable, "no server"};

/// A pool of four whose server is away until it is given connections.
struct away_pool {
  made connect(holdfast::boot_time) {
    ++attempts;
    clock.advance(lasts);
    if (answers) return std::unique_ptr<row_link>();
    return no_server;
  }
  holdfast::result<link_pool::loan> borrow() { return pool.borrow(clock.now() + 1h); }

  holdfast::testing::fake_clock clock;
  std::chrono::milliseconds lasts{0};
  std::atomic<int> attempts{0};
  std::atomic<bool> answers{false};
  link_pool pool{[this](auto deadline) { return connect(deadline); }, 4, clock};
};

// A server that is slow to accept connections would be kept busy by those that are given up.
TEST(link_pools, try_a_server_again_only_after_a_pause_as_long_as_the_attempt_that_failed) {
  away_pool away;
  away.lasts = 600ms;
  EXPECT_FALSE(away.borrow());
  for (int i = 0; i < 3; ++i) {
    const auto refused = away.borrow();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().what, no_server.what);
  }
  EXPECT_EQ(away.attempts, 1) << "half of the pause is the least";
  away.clock.advance(600ms);
  EXPECT_FALSE(away.borrow());
  EXPECT_EQ(away.attempts, 2);
  away.lasts = 5min;
  away.clock.advance(600ms);
  EXPECT_FALSE(away.borrow());
  away.clock.advance(1s);
  away.answers = true;
  EXPECT_TRUE(away.borrow()) << "no pause is longer than a second";
  EXPECT_TRUE(away.borrow()) << "and it is over with the first that succeeds";
}

TEST(link_pools, wait_for_a_pause_that_is_short) {
  away_pool away;
  EXPECT_FALSE(away.borrow());
  away.answers = true;
  auto next = std::async(std::launch::async, [&] { return bool(away.borrow()); });
  harness::eventually("it waits", [&] {
    return away.clock.next_wake() != holdfast::forever ||
           next.wait_for(0s) == std::future_status::ready;
  });
  away.clock.advance(5ms);
  EXPECT_TRUE(next.get());
  EXPECT_EQ(away.attempts, 2);
}

TEST(link_pools, do_not_believe_a_slow_failure_after_another_attempt_succeeded) {
  holdfast::testing::fake_clock clock;
  int attempts = 0;
  link_pool pool(
      [&](auto deadline) -> made {
        if (++attempts > 1) return std::unique_ptr<row_link>();
        EXPECT_TRUE(pool.borrow(deadline));
        clock.advance(600ms);
        return no_server;
      },
      4, clock);
  EXPECT_FALSE(pool.borrow(clock.now() + 1h));
  EXPECT_TRUE(pool.borrow(clock.now()));
}

TEST(link_pools, leave_it_to_one_to_try_while_the_server_is_away) {
  constexpr int threads = 4, in_vain = 3;
  holdfast::testing::fake_clock clock;
  std::latch all_there{threads};
  std::atomic<int> attempts{0}, at_once{0};
  link_pool pool(
      [&](auto) -> made {
        const int mine = ++attempts;
        if (mine == 1) return no_server;
        if (mine > in_vain) return std::unique_ptr<row_link>();
        EXPECT_EQ(++at_once, 1);
        all_there.wait();
        for (int i = 0; i < 1'000; ++i)
          std::this_thread::yield();  // for others to come, if they do
        --at_once;
        return no_server;
      },
      threads, clock);
  EXPECT_FALSE(pool.borrow(clock.now() + 1h));
  clock.advance(1s);
  std::atomic<int> served{0};
  std::vector<std::jthread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      all_there.count_down();
      while (!pool.borrow(clock.now() + 1h)) clock.advance(1ms);
      ++served;
    });
  }
  while (served < threads) clock.advance(1ms);
}

}  // namespace
}  // namespace sql_test
