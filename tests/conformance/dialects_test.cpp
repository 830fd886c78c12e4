#ifdef HOLDFAST_WITH_REDIS
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <holdfast/holdfast.hpp>
#include <random>
#include <thread>
#include <vector>

#include "harness/concurrently.hpp"
#include "harness/failing.hpp"
#include "harness/process.hpp"
#include "harness/shared_servers.hpp"

// The dialects on the Redis topologies of more than one server: their promises are the same there.
// tests/interop covers their layouts, on one server.
namespace {

using namespace std::chrono_literals;
using harness::outcome_of;
using holdfast::errc;
using holdfast::mutex;

constexpr std::array dialects{"redlock", "redisson", "setnx"};
/// In a cluster each of them is on a server of its own.
constexpr std::array names{"a", "b", "c"};

class dialect_topologies : public testing::TestWithParam<std::string> {
 protected:
  std::string url(const std::string& dialect) const {
    return harness::url_of_servers(GetParam()) + "?dialect=" + dialect + "&prefix=" + prefix_;
  }
  holdfast::session open(const std::string& dialect) const { return holdfast::open(url(dialect)); }
  template <class Rule>
  void on_each_dialect(Rule rule) const {
    for (const std::string dialect : dialects) {
      SCOPED_TRACE(dialect);
      for (const std::string name : names) rule(dialect, dialect + "-" + name);
    }
  }

 private:
  // Other tests use the servers, too.
  const std::string prefix_ = "dialect-" + std::to_string(std::random_device()()) + "-";
};

INSTANTIATE_TEST_SUITE_P(servers, dialect_topologies,
                         testing::Values("redis_replicas", "redis_sentinel", "redis_cluster"),
                         [](const auto& p) { return p.param + "__dialects"; });

TEST_P(dialect_topologies, a_holder_keeps_others_out_and_is_shown) {
  on_each_dialect([&](const std::string& dialect, const std::string& name) {
    const auto ours = open(dialect), others = open(dialect);
    {
      holdfast::lease held = mutex(ours, name).acquire();
      EXPECT_FALSE(mutex(others, name).try_lock());
      EXPECT_EQ(others.show(name).holders.size(), 1u);
      EXPECT_NO_THROW(held.extend());
    }
    EXPECT_TRUE(others.show(name).holders.empty());
    EXPECT_TRUE(mutex(others, name).try_acquire());
  });
}

TEST_P(dialect_topologies, a_waiter_acquires_the_lock_when_it_is_released) {
  on_each_dialect([&](const std::string& dialect, const std::string& name) {
    const auto ours = open(dialect), others = open(dialect);
    holdfast::lease held = mutex(ours, name).acquire();
    auto next = harness::concurrently([&] { return mutex(others, name).acquire(); });
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(next.get());
  });
}

// The role is that of the stores' own test.
TEST_P(dialect_topologies, a_static_lock_is_released_when_the_program_ends) {
  on_each_dialect([&](const std::string& dialect, const std::string& name) {
    harness::child program("static-holder", {url(dialect), name});
    ASSERT_EQ(program.expect_line(), "in");
    EXPECT_FALSE(mutex(open(dialect), name).try_acquire());
    program.tell("end");
    EXPECT_EQ(program.wait(), 0);
    EXPECT_TRUE(mutex(open(dialect), name).try_acquire());
  });
}

TEST_P(dialect_topologies, only_one_session_at_a_time_holds_the_lock) {
  on_each_dialect([&](const std::string& dialect, const std::string& name) {
    std::atomic<int> inside{0};
    int count = 0;  // not atomic: only the lock protects it
    std::vector<std::jthread> workers;
    for (int i = 0; i < 3; ++i) {
      // Opened here: servers that a thread starts end with it.
      workers.emplace_back([&, session = open(dialect)] {
        mutex lock(session, name);
        for (int n = 0; n < 10; ++n) {
          const holdfast::lease held = lock.acquire();
          EXPECT_EQ(++inside, 1);
          (void)session.show(name);  // time for another worker to come in
          ++count, --inside;
        }
      });
    }
    workers.clear();
    EXPECT_EQ(count, 30);
  });
}

// All keys of a name are on the node of the name.
TEST_P(dialect_topologies, redisson_s_read_write_lock_and_latch_work_too) {
  const auto ours = open("redisson"), others = open("redisson");
  for (const std::string letter : names) {
    SCOPED_TRACE(letter);
    holdfast::shared_mutex mine(ours, "rw-" + letter), theirs(others, "rw-" + letter);
    mine.lock();
    auto reader = harness::concurrently([&] { return theirs.acquire_shared(); });
    mine.downgrade();
    EXPECT_TRUE(reader.get());
    EXPECT_TRUE(mine.try_upgrade());
    mine.unlock();
    holdfast::latch three(ours, "latch-" + letter, 3);
    auto waits =
        harness::concurrently([&] { holdfast::latch(others, "latch-" + letter, 3).wait(); });
    three.count_down(2);
    three.count_down();
    waits.get();
  }
}

/// Rules that do not depend on the layout, also on one server.
class dialect_servers : public dialect_topologies {};

INSTANTIATE_TEST_SUITE_P(servers, dialect_servers,
                         testing::Values("redis", "redis_replicas", "redis_sentinel",
                                         "redis_cluster"),
                         [](const auto& p) { return p.param + "__dialects"; });

// Nobody would notify its holder that the lock is wanted.
TEST_P(dialect_servers, an_idle_lock_cannot_be_kept) {
  on_each_dialect([&](const std::string& dialect, const std::string& name) {
    const auto session = open(dialect);
    const auto lingers = outcome_of([&] { mutex(session, name, {.linger = 1s}); });
    EXPECT_EQ(lingers.reason, errc::unsupported) << lingers.text;
  });
}

TEST_P(dialect_topologies, redisson_s_keys_beside_a_name_need_a_tag_that_is_whole_in_a_cluster) {
  const auto session = open("redisson");
  const bool cluster = GetParam() == "redis_cluster";
  for (const std::string name : {"{cl", "a{}b"}) {
    SCOPED_TRACE(name);
    const auto rw = outcome_of([&] { (void)holdfast::shared_mutex(session, name).try_acquire(); });
    const auto one =
        outcome_of([&] { (void)holdfast::latch(session, "latch-" + name, 1).try_wait(); });
    EXPECT_EQ(rw.reason, cluster ? errc::invalid_name : errc{}) << rw.text;
    EXPECT_EQ(one.reason, cluster ? errc::invalid_name : errc{}) << one.text;
    EXPECT_TRUE(mutex(session, "mutex-" + name).try_acquire());
  }
}

TEST_P(dialect_topologies, a_force_released_lock_is_lost) {
  on_each_dialect([&](const std::string& dialect, const std::string& name) {
    const auto ours = open(dialect), others = open(dialect);
    holdfast::lease held = mutex(ours, name).acquire();
    // A time names no owner, so nobody can take it away.
    if (dialect == "setnx") return;
    EXPECT_EQ(others.force_release(name), 1u);
    EXPECT_EQ(outcome_of([&] { held.extend(); }).reason, errc::lost);
  });
}

TEST_P(dialect_topologies, a_lock_of_another_dialect_is_named_and_left_alone) {
  for (const std::string theirs : dialects) {
    const auto session = open(theirs);
    holdfast::lease held = mutex(session, "shared-" + theirs).acquire();
    for (const std::string ours : dialects) {
      if (ours == theirs) continue;
      const auto refused =
          outcome_of([&] { (void)mutex(open(ours), "shared-" + theirs).try_lock(); });
      EXPECT_EQ(refused.reason, errc::kind_mismatch) << ours << " on " << theirs;
    }
    EXPECT_FALSE(held.release()) << theirs;
  }
}

}  // namespace
#endif
