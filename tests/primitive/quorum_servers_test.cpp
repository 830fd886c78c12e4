#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <holdfast/holdfast.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "harness/eventually.hpp"
#include "harness/history.hpp"
#include "harness/postgres_server.hpp"
#include "harness/redis_server.hpp"
#include "harness/temp_dir.hpp"

// redlock over five Redis servers that die, stop, restart and disagree about the time.
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::redlock;
using holdfast::vote;

class quorum_servers : public testing::Test {
 protected:
  std::vector<holdfast::session> open(const std::string& command_timeout = "1s") const {
    std::vector<holdfast::session> sessions;
    for (const auto& server : servers_) {
      sessions.push_back(holdfast::open(server.url("?command_timeout=" + command_timeout)));
    }
    return sessions;
  }
  static std::size_t held_at(const std::vector<holdfast::session>& nodes) {
    std::size_t n = 0;
    for (const auto& node : nodes) n += node.show("job").holders.size();
    return n;
  }

  std::array<harness::redis_server, 5> servers_;
};

TEST_F(quorum_servers, two_of_five_may_die_and_their_forgotten_locks_are_restored) {
  redlock lock(open(), "job", {.lease = 3s});
  auto held = lock.acquire();
  for (const int i : {0, 1}) servers_[static_cast<std::size_t>(i)].kill();
  EXPECT_NO_THROW(held.check());
  for (const int i : {0, 1}) servers_[static_cast<std::size_t>(i)].start();
  const auto nodes = open();
  harness::eventually("had again everywhere", [&] { return held_at(nodes) == 5; });
  EXPECT_NO_THROW(held.check());
  EXPECT_FALSE(held.release());
}

TEST_F(quorum_servers, a_stopped_server_costs_nothing_once_a_majority_has_spoken) {
  // A round that waited for that server would last for an hour.
  redlock lock(open("1h"), "job", {.lease = 24h, .node_timeout = 1h});
  (void)lock.acquire().release();
  servers_[2].stop();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(lock.acquire().release());
  servers_[2].resume();
  const auto nodes = open();
  harness::eventually("given back there too", [&] { return held_at(nodes) == 0; });
}

TEST_F(quorum_servers, a_server_that_was_started_a_moment_ago_has_no_vote) {
  redlock lock(open(), "job", {.trust_after = 1h});
  try {
    (void)lock.try_acquire();
    FAIL();
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::unavailable);
    EXPECT_NE(std::string(e.what()).find("untrusted"), std::string::npos);
  }
  const auto nodes = open();
  EXPECT_EQ(held_at(nodes), 0u);
}

// Their uptime does not show it.
TEST_F(quorum_servers, a_server_that_was_flushed_or_has_taken_over_has_no_vote_for_a_while) {
  redlock lock(open(), "job", {.node_timeout = 20s, .trust_after = 1h});
  const auto untrusted = [&] {
    try {
      EXPECT_FALSE(lock.try_acquire());
    } catch (const holdfast::error& e) {
      EXPECT_EQ(e.reason(), errc::unavailable) << e.what();
    }
    const auto votes = lock.last_votes();
    return std::count(votes.begin(), votes.end(), vote::untrusted);
  };
  EXPECT_GE(untrusted(), 3) << "which may have been flushed before anybody knew them";
  // Also the servers that were not waited for.
  harness::eventually("a mark at each", [&] {
    return std::all_of(servers_.begin(), servers_.end(),
                       [](const auto& s) { return s.ask({"GET", "holdfast:remembers"}) != "nil"; });
  });
  for (auto& s : servers_) s.shift_clock(2h);
  ASSERT_TRUE(lock.try_acquire());
  for (const std::size_t i : {0u, 1u}) servers_[i].ask({"FLUSHALL"});
  // Another process, with the former one's data.
  servers_[2].ask({"SET", "holdfast:remembers", "another 1"});
  // The release of the lease before is waited for at a majority only.
  harness::eventually("the vote of three is not counted", [&] { return untrusted() == 3; });
  for (auto& s : servers_) s.shift_clock(4h);
  EXPECT_TRUE(lock.try_acquire());
}

TEST_F(quorum_servers, one_server_twice_is_found_out_by_its_run_id) {
  std::vector<holdfast::session> nodes{holdfast::open(servers_[0].url()),
                                       holdfast::open(servers_[1].url()),
                                       holdfast::open(servers_[0].tcp_url())};
  redlock lock(nodes, "job");
  try {
    (void)lock.acquire();
    FAIL();
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::invalid_argument);
  }
}

// Majorities that share one node only, whose clock is an hour behind that of the others.
TEST_F(quorum_servers, fences_grow_across_majorities_whose_clocks_differ) {
  servers_[2].shift_clock(-1h);
  servers_[0].shift_clock(10min);
  std::uint64_t last = 0;
  for (int i = 0; i < 6; ++i) {
    const auto away = i % 2 == 0 ? std::array{3, 4} : std::array{0, 1};
    redlock lock(open(), "job", {.node_timeout = 5s});  // which knows of no fence yet
    for (const int a : away) servers_[static_cast<std::size_t>(a)].stop();
    auto held = lock.acquire();
    EXPECT_GT(held.fence(), last);
    last = held.fence();
    EXPECT_FALSE(held.release());
    for (const int a : away) servers_[static_cast<std::size_t>(a)].resume();
  }
}

// The events, in the order of one counter; the resource refuses smaller fences.
TEST_F(quorum_servers, three_that_split_the_votes_settle_and_never_overlap) {
  std::atomic<std::uint64_t> tick{0};
  std::mutex mutex;
  std::vector<harness::hold_event> history;
  const auto work = [&](std::uint32_t me) {
    redlock lock(open(), "job");
    for (int i = 0; i < 15; ++i) {
      auto held = lock.acquire();
      harness::hold_event e{.worker = me, .fence = held.fence()};
      e.begin = ++tick;
      std::this_thread::yield();
      e.end = ++tick;
      (void)held.release();
      const std::lock_guard guard{mutex};
      history.push_back(e);
    }
  };
  std::vector<std::jthread> crew;
  for (std::uint32_t i = 0; i < 3; ++i) crew.emplace_back(work, i);
  crew.clear();
  const auto broken = harness::violations(history, {});
  EXPECT_TRUE(broken.empty()) << harness::summary(broken);
  EXPECT_EQ(history.size(), 45u);
}

TEST_F(quorum_servers, stores_of_different_kinds_make_a_quorum) {
  const harness::temp_dir dir;
  const harness::postgres_server postgres;
  const std::vector<holdfast::session> nodes{holdfast::open(servers_[0].url()),
                                             holdfast::open("sqlite:" + dir.file("locks.db")),
                                             holdfast::open(postgres.url())};
  redlock lock(nodes, "job"), rival(nodes, "job");
  auto held = lock.acquire();
  EXPECT_FALSE(rival.try_acquire());
  const auto first = held.fence();
  EXPECT_FALSE(held.release());
  servers_[0].kill();
  EXPECT_GT(rival.acquire().fence(), first);
}

}  // namespace
