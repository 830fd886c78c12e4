#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <atomic>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/redis_server.hpp"
#include "harness/shared_memory.hpp"
#include "paths.hpp"

namespace {

using namespace fault_test;
using namespace std::chrono_literals;
using harness::child;

#ifdef HOLDFAST_WITH_REDIS
// URL: asks each time it hears something, and says what came of it.
const harness::role asks{"asks", [](const std::vector<std::string>& args) {
                           const auto session = holdfast::open(args[0]);
                           for (harness::say("ready"); !harness::hear().empty();) {
                             try {
                               (void)session.show("m");
                               harness::say("answered");
                             } catch (const holdfast::error& e) {
                               harness::say(e.what());
                             }
                           }
                           return 0;
                         }};
#endif

/// Processes made in here have clocks of their own, which can be set.
class clocks : public testing::Test {
 protected:
  clocks() {
    ::setenv("LD_PRELOAD", HOLDFAST_SHIFTED_CLOCK, 1);
    ::setenv("HOLDFAST_CLOCK_SHIFT", g.dir.file("clocks").c_str(), 1);
  }
  ~clocks() override {
    ::unsetenv("LD_PRELOAD");
    ::unsetenv("HOLDFAST_CLOCK_SHIFT");
  }

  void set_wall(std::chrono::microseconds by) { (*shift_)[0] = by.count(); }
  /// What a machine that slept does to all its processes.
  void suspend(std::chrono::microseconds length) { (*shift_)[1] = length.count(); }

  child holder(std::chrono::milliseconds lease) {
    return child("holder", {g.url, "m", std::to_string(lease.count()), g.page});
  }

  ground g;

 private:
  harness::shared<std::array<std::atomic<std::int64_t>, 2>> shift_{g.dir.file("clocks")};
};

class wall_clock : public clocks, public testing::WithParamInterface<std::chrono::hours> {};

TEST_P(wall_clock, set_while_a_lock_is_held_changes_nothing) {
  child first = holder(10min);
  const auto fence = std::stoull(first.expect_line());
  set_wall(GetParam());
  auto session = holdfast::open(g.url);
  EXPECT_FALSE(holdfast::mutex(session, "m").try_acquire_for(100ms));
  first.tell("go on");
  EXPECT_EQ(first.expect_line(), "held");
  EXPECT_EQ(first.expect_line(), "written");
  first.tell("end");
  EXPECT_EQ(first.wait(), 0);
  EXPECT_GT(holdfast::mutex(session, "m").acquire().fence(), fence);
}

TEST_P(wall_clock, of_one_process_does_not_turn_the_order_of_fences_round) {
  auto session = holdfast::open(g.url);
  holdfast::mutex m{session, "m"};
  const auto before = m.acquire().fence();
  set_wall(GetParam());
  child other = holder(10min);
  const auto between = std::stoull(other.expect_line());
  EXPECT_GT(between, before);
  other.kill();
  EXPECT_GT(m.acquire().fence(), between);
}

TEST_P(wall_clock, set_while_somebody_waits_changes_nothing) {
  auto session = holdfast::open(g.url);
  holdfast::lease held = holdfast::fair_mutex(session, "m", {.lease = a_month}).acquire();
  child waiting("waiter", {g.url, "m"});
  g.await_waiters(session, "m", 1);
  set_wall(GetParam());
  EXPECT_FALSE(held.release());
  EXPECT_EQ(waiting.expect_line(), "got it");
}

INSTANTIATE_TEST_SUITE_P(, wall_clock, testing::Values(24h, -24h), [](const auto& hours) {
  return std::string(hours.param > 0h ? "a_day_forward" : "a_day_back");
});

TEST_F(clocks, a_machine_that_slept_beyond_the_lease_has_lost_it_and_the_waiter_gets_it) {
  child first = holder(10min);
  (void)first.expect_line();
  child waiting("waiter", {g.url, "m"});
  g.await_waiters(holdfast::open(g.url), "m", 1);
  suspend(1h);
  EXPECT_EQ(waiting.expect_line(), "got it");
  first.tell("go on");
  EXPECT_EQ(first.expect_line(), "lost");
}

TEST_F(clocks, a_machine_that_slept_for_less_than_the_lease_goes_on) {
  child first = holder(10min);
  (void)first.expect_line();
  suspend(1min);
  first.tell("go on");
  EXPECT_EQ(first.expect_line(), "held");
}

#ifdef HOLDFAST_WITH_REDIS
TEST_F(clocks, an_answer_that_came_while_the_process_stood_still_is_one) {
  const harness::redis_server server;
  harness::fault_proxy network(server.port());
  child other("asks",
              {"redis://127.0.0.1:" + std::to_string(network.port()) + "?command_timeout=1m"});
  EXPECT_EQ(other.expect_line(), "ready");
  const auto before = network.count();
  network.with([](auto& relay) { relay.stall(harness::way::down); });
  other.tell("ask");
  harness::eventually("it has asked", [&] { return network.count().up > before.up; });
  other.stop();
  suspend(1h);
  network.heal();
  harness::eventually("it is answered", [&] { return network.count().down > before.down; });
  other.resume();
  EXPECT_EQ(other.expect_line(), "answered");
}
#endif

}  // namespace
