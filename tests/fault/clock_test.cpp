#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <atomic>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/shared_memory.hpp"
#include "paths.hpp"
#ifdef HOLDFAST_WITH_ETCD
#include "harness/etcd_cluster.hpp"
#endif
#ifdef HOLDFAST_WITH_MEMCACHED
#include "harness/memcached_server.hpp"
#endif
#ifdef HOLDFAST_WITH_REDIS
#include "harness/redis_server.hpp"
#endif

namespace {

using namespace fault_test;
using namespace std::chrono_literals;
using harness::child;

// Argument: URL. Sends a request for each line it gets, and reports the result.
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

/// Processes started here have clocks of their own, which can be set.
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
  /// The effect of a machine's sleep on all its processes.
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

TEST_P(wall_clock, set_during_a_wait_changes_nothing) {
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

TEST_F(clocks, a_machine_that_slept_for_less_than_the_lease_keeps_the_lock) {
  child first = holder(10min);
  (void)first.expect_line();
  suspend(1min);
  first.tell("go on");
  EXPECT_EQ(first.expect_line(), "held");
}

/// A server, and the URL that leads to a port before it. A call may take a minute. (With SQL, the
/// client libraries themselves check the connection when the time is over.)
struct answering {
  std::string name;
  using use = std::function<void(int, const std::function<std::string(int)>&)>;
  void (*with)(const use&);
};
std::ostream& operator<<(std::ostream& out, const answering& a) { return out << a.name; }

std::string at(const std::string& scheme, int port, const std::string& rest) {
  return scheme + "127.0.0.1:" + std::to_string(port) + rest + "?command_timeout=1m";
}

const std::vector<answering> all_that_answer{
#ifdef HOLDFAST_WITH_REDIS
    {"redis",
     [](const answering::use& by) {
       const harness::redis_server server;
       by(server.port(), [](int port) { return at("redis://", port, ""); });
     }},
#endif
#ifdef HOLDFAST_WITH_MEMCACHED
    {"memcached",
     [](const answering::use& by) {
       const harness::memcached_server server;
       by(server.port(), [](int port) { return at("memcached://", port, ""); });
     }},
#endif
#ifdef HOLDFAST_WITH_ETCD
    {"etcd",
     [](const answering::use& by) {
       const harness::etcd_cluster server(1);
       by(server.port(0), [](int port) { return at("etcd://", port, "/locks"); });
     }},
#endif
};

class clocks_of_callers : public clocks, public testing::WithParamInterface<answering> {};

INSTANTIATE_TEST_SUITE_P(of, clocks_of_callers, testing::ValuesIn(all_that_answer),
                         [](const auto& of) { return of.param.name; });

TEST_P(clocks_of_callers, an_answer_that_arrived_while_the_process_was_stopped_counts) {
  GetParam().with([this](int server, const std::function<std::string(int)>& url_of) {
    harness::fault_proxy network(server);
    child other("asks", {url_of(network.port())});
    EXPECT_EQ(other.expect_line(), "ready");
    const auto before = network.count();
    network.with([](auto& relay) { relay.stall(harness::way::down); });
    other.tell("ask");
    harness::eventually("it has asked", [&] { return network.count().up > before.up; });
    other.stop();
    suspend(2min);
    // A server that is slow to answer also acknowledges a request at once (etcd: in 30 bytes).
    constexpr std::size_t answer = 60;
    harness::eventually("the answer has come", [&] { return network.count().held >= answer; });
    network.heal();
    harness::eventually("it is passed on",
                        [&] { return network.count().down >= before.down + answer; });
    other.resume();
    EXPECT_EQ(other.expect_line(), "answered");
  });
}

}  // namespace
