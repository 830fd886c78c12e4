#include <gtest/gtest.h>

#include <thread>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"

// Leaders that are killed and stopped.
namespace {

using namespace fault_test;
using namespace std::chrono_literals;
using harness::child;
using holdfast::election;
using holdfast::leadership;

// Arguments: URL LEASE_MS. Leads, reports its term, keeps leading until it gets a line, then
// reports the state of its leadership.
const harness::role leads{
    "leads", [](const std::vector<std::string>& args) {
      auto session = holdfast::open(args[0]);
      const std::chrono::milliseconds lease(std::stoll(args[1]));
      const leadership mine = election(session, "e", {.note = "child", .lease = lease}).campaign();
      harness::say(std::to_string(mine.term()));
      (void)harness::hear();
      harness::say(mine.lost().stop_requested() || mine.state() == holdfast::lease_state::lost
                       ? "lost"
                       : "leads");
      return 0;
    }};

TEST(elections, a_killed_leader_is_followed_at_once_with_a_greater_term) {
  ground g;
  child first("leads", {g.url, std::to_string(a_month.count())});
  const auto term = std::stoull(first.expect_line());
  auto session = holdfast::open(g.url);
  election mine{session, "e", {.note = "me"}};
  EXPECT_EQ(mine.current()->note, "child");
  leadership next;
  std::thread waits([&] { next = mine.campaign(); });
  g.await_waiters(session, "e", 1);
  first.kill();
  waits.join();  // its lease has a month to go
  EXPECT_GT(next.term(), term);
  EXPECT_EQ(mine.current()->note, "me");
}

TEST(elections, a_killed_leader_without_a_next_one_leads_no_more) {
  ground g;
  child first("leads", {g.url, std::to_string(a_month.count())});
  const auto term = std::stoull(first.expect_line());
  auto session = holdfast::open(g.url);
  election mine{session, "e", {.note = "me"}};
  auto seen = mine.observe();
  EXPECT_EQ(seen.next().term, term);
  first.kill();
  EXPECT_FALSE(mine.current());
  const auto asked_for = holdfast::async_current(mine).future().get();
  ASSERT_TRUE(asked_for);
  EXPECT_FALSE(*asked_for);
  EXPECT_FALSE(mine.observe().next_for(0s));
  const leadership next = mine.campaign();
  EXPECT_EQ(seen.next().term, next.term());
  EXPECT_EQ(mine.current()->note, "me");
}

TEST(elections, a_leader_stopped_beyond_its_lease_learns_of_the_loss) {
  ground g;
  child first("leads", {g.url, "500"});
  const auto term = std::stoull(first.expect_line());
  g.stop(first);
  auto session = holdfast::open(g.url);
  const leadership next = election(session, "e").campaign();
  EXPECT_GT(next.term(), term);
  first.resume();
  first.tell("go on");
  EXPECT_EQ(first.expect_line(), "lost");
}

}  // namespace
