#include <gtest/gtest.h>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"

namespace {

using namespace fault_test;
using namespace std::chrono_literals;
using harness::child;

TEST(stop, a_holder_stopped_beyond_its_lease_sees_the_loss_before_it_writes_and_is_refused) {
  ground g;
  child holder("holder", {g.url, "m", "500", g.page});
  const auto stale = std::stoull(holder.expect_line());
  g.stop(holder);
  auto session = holdfast::open(g.url);
  harness::resource at(g.page);
  // Its process lives, so only the end of the lease frees it.
  holdfast::lease held = holdfast::mutex(session, "m").acquire();
  EXPECT_GT(held.fence(), stale);
  EXPECT_TRUE(at.guarded_write(held.fence()));
  holder.resume();
  holder.tell("go on");
  EXPECT_EQ(holder.expect_line(), "lost");
  EXPECT_EQ(holder.expect_line(), "refused");
  EXPECT_EQ(held.state(), holdfast::lease_state::held) << "the other's lock stays";
  EXPECT_EQ(at.count().refused, 1U);
}

TEST(stop, a_holder_stopped_for_less_than_its_lease_keeps_the_lock) {
  ground g;
  child holder("holder", {g.url, "m", std::to_string(a_month.count()), g.page});
  (void)holder.expect_line();
  g.stop(holder);
  auto session = holdfast::open(g.url);
  EXPECT_FALSE(holdfast::mutex(session, "m").try_acquire_for(100ms)) << "stopped is not dead";
  holder.resume();
  holder.tell("go on");
  EXPECT_EQ(holder.expect_line(), "held");
  EXPECT_EQ(holder.expect_line(), "written");
}

TEST(stop, a_stopped_waiter_does_not_hold_up_the_waiters_behind_it) {
  ground g;
  auto session = holdfast::open(g.url);
  holdfast::fair_mutex m{session, "m", {.lease = a_month}};
  holdfast::lease held = m.acquire();
  child first("waiter", {g.url, "m"});
  g.await_waiters(session, "m", 1);
  child second("waiter", {g.url, "m"});
  g.await_waiters(session, "m", 2);
  g.stop(first);
  EXPECT_FALSE(held.release());
  EXPECT_EQ(second.expect_line(), "got it");
  EXPECT_EQ(second.wait(), 0);
  first.resume();
  EXPECT_EQ(first.expect_line(), "got it") << "it queues again";
  EXPECT_EQ(first.wait(), 0);
}

}  // namespace
