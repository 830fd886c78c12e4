#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"

namespace {

using namespace fault_test;
using harness::child;
using verb = holdfast::store::permits_verb;

TEST(kill, the_lock_of_a_killed_holder_is_free_at_once_and_not_only_at_its_end) {
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

TEST(kill, an_idle_lock_of_a_killed_process_is_free_at_once) {
  ground g;
  child holder("lingerer", {g.url, "m"});
  EXPECT_EQ(holder.expect_line(), "idle");
  auto session = holdfast::open(g.url);
  EXPECT_EQ(session.show("m").holders.size(), 1U);
  holder.kill();
  EXPECT_TRUE((holdfast::mutex{session, "m"}.try_acquire()));
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

// ---- killed at each step ------------------------------------------------------------------------

struct step {
  verb at;
  bool answered;
};

class killed_at : public testing::TestWithParam<step> {
 protected:
  child start() {
    return child("mortal", {g.url, "m", std::to_string(static_cast<int>(GetParam().at)),
                            GetParam().answered ? "1" : "0"});
  }
  static constexpr int killed = 128 + SIGKILL;
  ground g;
  holdfast::session session = holdfast::open(g.url);
  holdfast::fair_mutex m{session, "m", {.lease = a_month}};
};

std::string step_name(const testing::TestParamInfo<step>& it) {
  const bool renews = it.param.at == verb::renew;
  const std::string at = it.param.at == verb::acquire ? "acquire" : renews ? "renew" : "release";
  return at + (it.param.answered ? "_answered" : "_on_the_way");
}

INSTANTIATE_TEST_SUITE_P(steps, killed_at,
                         testing::Values(step{verb::acquire, false}, step{verb::acquire, true},
                                         step{verb::renew, false}, step{verb::renew, true},
                                         step{verb::release, false}, step{verb::release, true}),
                         step_name);

TEST_P(killed_at, leaves_a_lock_that_the_next_one_gets) {
  child victim = start();
  if (GetParam().at != verb::acquire) {
    EXPECT_EQ(victim.expect_line(), "got it");
    victim.tell("go on");
  }
  EXPECT_EQ(victim.wait(), killed);
  EXPECT_TRUE(m.try_acquire());
  EXPECT_TRUE(session.names().empty()) << "nothing stays behind";
}

TEST_P(killed_at, passes_the_lock_to_the_waiters) {
  const bool as_waiter = GetParam().at == verb::acquire;
  holdfast::lease held;
  if (as_waiter) held = m.acquire();
  child victim = start();
  if (as_waiter) {
    EXPECT_EQ(victim.wait(), killed);  // perhaps with a queue entry
  } else {
    EXPECT_EQ(victim.expect_line(), "got it");
  }
  std::thread waiting([&] { EXPECT_GT(m.acquire().fence(), 0U); });
  harness::eventually("this process waits", [&] {
    const auto all = session.show("m").waiters;
    return std::any_of(all.begin(), all.end(),
                       [](const auto& w) { return static_cast<pid_t>(w.pid) == getpid(); });
  });
  if (as_waiter) {
    EXPECT_FALSE(held.release());
  } else {
    victim.tell("go on");
    EXPECT_EQ(victim.wait(), killed);
  }
  waiting.join();  // every lease has a month to go
  EXPECT_TRUE(session.names().empty());
}

}  // namespace
