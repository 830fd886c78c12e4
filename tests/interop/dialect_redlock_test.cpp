#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <holdfast/holdfast.hpp>

#include "harness/eventually.hpp"
#include "harness/failing.hpp"
#include "harness/redis_server.hpp"

// A redlock on three servers whose keys another program's redlock shares, seen from the servers.
namespace interop_test {
namespace {

using namespace std::chrono_literals;
using harness::outcome_of;
using holdfast::errc;

class dialect_redlock : public testing::Test {
 protected:
  std::vector<holdfast::session> open(const std::string& options = "?dialect=redlock") const {
    std::vector<holdfast::session> nodes;
    for (const auto& s : servers_) nodes.push_back(holdfast::open(s.url(options)));
    return nodes;
  }
  void theirs_on(std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_EQ(servers_[i].ask({"SET", "job", "theirs", "NX", "PX", "100000"}), "OK");
  }
  std::vector<std::string> values() const {
    std::vector<std::string> all;
    for (const auto& s : servers_) all.push_back(s.ask({"GET", "job"}));
    return all;
  }
  // A release waits for the answers of a majority; the other answers may still be on their way.
  void soon_has(const std::vector<std::string>& expected) const {
    harness::eventually("what is left", [&] { return values() == expected; });
  }

  std::array<harness::redis_server, 3> servers_;
};

TEST_F(dialect_redlock, has_one_token_on_every_server_and_no_fence) {
  {
    holdfast::redlock job(open(), "job", {.node_timeout = 20s});
    const auto held = job.acquire();
    EXPECT_EQ(held.fence(), 0u);
    harness::eventually("one token on all of them", [&] {
      const auto all = values();
      return all[0].ends_with(":holdfast") && all[1] == all[0] && all[2] == all[0];
    });
  }
  harness::eventually("nothing at all is left", [&] {
    return std::all_of(servers_.begin(), servers_.end(),
                       [](const auto& s) { return s.ask({"DBSIZE"}) == "0"; });
  });
}

TEST_F(dialect_redlock, is_kept_out_by_another_program_s_majority_and_leaves_nothing) {
  theirs_on(2);
  {
    holdfast::redlock job(open(), "job", {.node_timeout = 20s});
    EXPECT_FALSE(job.try_acquire());
  }  // with its sessions
  soon_has({"theirs", "theirs", "nil"});
}

TEST_F(dialect_redlock, is_acquired_beside_another_program_s_minority_which_stays) {
  theirs_on(1);
  holdfast::redlock job(open(), "job", {.node_timeout = 20s});
  {
    const auto held = job.try_acquire();
    ASSERT_TRUE(held);
    EXPECT_EQ(values()[1], values()[2]);
    EXPECT_TRUE(values()[1].ends_with(":holdfast"));
  }
  soon_has({"theirs", "nil", "nil"});
}

// A renewal shortens a lease again that somebody has extended.
TEST_F(dialect_redlock, is_renewed_on_all_of_them) {
  holdfast::redlock job(open(), "job", {.lease = 6s, .node_timeout = 20s});
  const auto held = job.acquire();
  for (const auto& s : servers_) s.ask({"PEXPIRE", "job", "5000"});
  harness::eventually("renewed", [&] {
    return std::all_of(servers_.begin(), servers_.end(), [](const harness::redis_server& s) {
      return std::stoi(s.ask({"PTTL", "job"})) > 5'000;
    });
  });
  EXPECT_NO_THROW(held.check());
}

TEST_F(dialect_redlock, gets_no_vote_from_a_server_that_just_started) {
  holdfast::redlock job(open(), "job", {.node_timeout = 20s, .trust_after = 24h});
  const auto refused = outcome_of([&] { (void)job.try_acquire(); });
  EXPECT_EQ(refused.reason, errc::unavailable);
  EXPECT_TRUE(harness::contains(refused.text, "untrusted")) << refused.text;
}

TEST_F(dialect_redlock, is_refused_on_one_server_with_two_names) {
  const auto& s = servers_.front();
  holdfast::redlock job(
      {holdfast::open(s.url("?dialect=redlock")), holdfast::open(s.tcp_url("?dialect=redlock"))},
      "job", {.node_timeout = 20s});
  EXPECT_EQ(outcome_of([&] { (void)job.try_acquire(); }).reason, errc::invalid_argument);
}

TEST_F(dialect_redlock, is_refused_if_only_some_nodes_use_it) {
  auto mixed = open();
  mixed.back() = holdfast::open(servers_.back().url());
  const auto refused = outcome_of([&] { holdfast::redlock(mixed, "job"); });
  EXPECT_EQ(refused.reason, errc::unsupported);
  EXPECT_TRUE(harness::contains(refused.text, "dialect")) << refused.text;
}

TEST_F(dialect_redlock, is_refused_on_the_other_dialects) {
  for (const char* other : {"?dialect=redisson", "?dialect=setnx"}) {
    const auto refused = outcome_of([&] { holdfast::redlock(open(other), "job"); });
    EXPECT_EQ(refused.reason, errc::unsupported) << other;
  }
}

}  // namespace
}  // namespace interop_test
