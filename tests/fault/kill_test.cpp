#include <gtest/gtest.h>

#include <thread>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"

namespace {

using namespace fault_test;
using harness::child;

TEST(kill, a_killed_holder_gives_way_at_once_and_not_when_its_lease_ends) {
  ground g;
  child holder("holder", {g.url, "m", std::to_string(a_month.count()), g.page});
  const auto fence = std::stoull(holder.expect_line());
  auto session = holdfast::open(g.url);
  holdfast::mutex m{session, "m"};
  std::uint64_t next = 0;
  std::thread waiting([&] { next = m.acquire().fence(); });
  g.await_waiters(session, "m", 1);
  holder.kill();
  waiting.join();  // its lease has a month to go
  EXPECT_GT(next, fence);
}

TEST(kill, a_try_after_the_holder_was_killed_succeeds) {
  ground g;
  child holder("holder", {g.url, "m", std::to_string(a_month.count()), g.page});
  (void)holder.expect_line();
  auto session = holdfast::open(g.url);
  holdfast::mutex m{session, "m"};
  EXPECT_FALSE(m.try_acquire());
  holder.kill();
  EXPECT_TRUE(m.try_acquire());
}

TEST(kill, a_killed_waiter_at_any_place_of_the_queue_is_passed_over) {
  constexpr std::size_t waiters = 4;
  for (std::size_t victim = 0; victim < waiters; ++victim) {
    ground g;
    auto session = holdfast::open(g.url);
    holdfast::fair_mutex m{session, "m", {.lease = a_month}};
    holdfast::lease held = m.acquire();
    std::vector<child> queue;
    for (std::size_t i = 0; i < waiters; ++i) {
      queue.emplace_back("waiter", std::vector<std::string>{g.url, "m"});
      g.await_waiters(session, "m", i + 1);
    }
    queue[victim].kill();
    EXPECT_FALSE(held.release());
    for (std::size_t i = 0; i < waiters; ++i) {
      if (i == victim) continue;
      EXPECT_EQ(queue[i].expect_line(), "got it") << "place " << i << ", killed " << victim;
      EXPECT_EQ(queue[i].wait(), 0);
    }
    EXPECT_TRUE(m.try_acquire());
  }
}

TEST(kill, the_permits_of_a_killed_process_come_back) {
  ground g;
  child holder("permit_holder", {g.url, "s"});
  (void)holder.expect_line();
  auto session = holdfast::open(g.url);
  holdfast::semaphore s{session, "s", 3};
  EXPECT_FALSE(s.try_acquire(2));
  holder.kill();
  EXPECT_TRUE(s.try_acquire(3));
  EXPECT_TRUE(session.names().empty()) << "nothing stays behind";
}

}  // namespace
