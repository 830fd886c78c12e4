#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/process.hpp"
#include "harness/seed.hpp"
#include "store/etcd/fixture.hpp"

// Servers that die and come back, networks that are cut, processes that sleep: nobody is let in
// while another may still believe that it is in.
namespace etcd_test {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lease;
using holdfast::lease_state;

constexpr const char* brief = "/locks?session=3s&command_timeout=1s";

std::string through(int port, const std::string& rest = brief) {
  return "etcd://127.0.0.1:" + std::to_string(port) + rest;
}

TEST(etcd_faults, leaders_that_die_and_come_back_give_nothing_to_two) {
  harness::random random;
  harness::etcd_cluster servers;
  harness::crowd all(std::vector<std::string>(4, servers.url(brief)));
  for (int round = 0; round < 3; ++round) {
    all.until_more(20);
    const int leader = servers.leader();
    if (leader < 0) continue;
    servers.kill(leader);
    if (random.one_in(2)) all.until_more(20);
    servers.start(leader);
    servers.until_whole();
  }
  all.until_more(20);
  const auto wrong = all.violations();
  EXPECT_TRUE(wrong.empty()) << harness::summary(wrong);
}

TEST(etcd_faults, without_a_majority_nobody_is_let_in_and_who_was_in_knows_in_time) {
  harness::etcd_cluster servers;
  auto here = holdfast::open(servers.url(brief));
  auto there = holdfast::open(servers.url(brief));
  holdfast::mutex one{here, "job"};
  holdfast::mutex two{there, "other"};
  const lease held = one.acquire();
  servers.kill(0);
  servers.kill(1);
  const auto e = thrown_by([&] { (void)two.try_acquire_for(500ms); });
  EXPECT_EQ(e.reason(), errc::unavailable) << e.what();
  EXPECT_TRUE(e.retryable());
  harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
  servers.start(0);
  servers.start(1);
  servers.until_whole();
  std::optional<lease> again;
  harness::eventually("it is let in", [&] {
    try {
      again = one.try_acquire_for(2s);
    } catch (const holdfast::error&) {
      return false;
    }
    return again.has_value();
  });
  EXPECT_GT(again->fence(), held.fence());
}

// A leader that slept answers keep-alives when it wakes, before it learns that there is another.
TEST(etcd_faults, a_leader_that_is_cut_off_does_not_keep_a_lease_alive) {
  harness::etcd_cluster servers;
  const int leader = servers.leader();
  auto here = holdfast::open(through(servers.port(leader)));
  const lease held = holdfast::mutex(here, "job").acquire();
  for (int i = 0; i < 3; ++i) {
    if (i != leader) servers.stop(i);
  }
  harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
  for (int i = 0; i < 3; ++i) servers.resume(i);
}

TEST(etcd_faults, what_a_process_slept_away_is_had_by_another_with_a_greater_fence) {
  const std::string url = calm_cluster().url(fresh_base() + "?session=1s");
  harness::child sleeper("lock-holder", {url});
  const auto fence = std::stoull(sleeper.expect_line());
  sleeper.stop();
  auto here = holdfast::open(url);
  const lease mine = holdfast::mutex(here, "job").acquire();
  EXPECT_GT(mine.fence(), fence);
  sleeper.resume();
  sleeper.tell("?");
  EXPECT_EQ(sleeper.expect_line(), "lost");
  EXPECT_NO_THROW(mine.check());
}

TEST(etcd_faults, a_process_that_is_killed_leaves_its_place_when_its_lease_ends) {
  const std::string url = calm_cluster().url(fresh_base() + "?session=1s");
  harness::child victim("lock-holder", {url});
  const auto fence = std::stoull(victim.expect_line());
  victim.kill();
  auto here = holdfast::open(url);
  EXPECT_GT(holdfast::mutex(here, "job").acquire().fence(), fence);
}

TEST(etcd_faults, one_that_is_cut_off_has_lost_it_before_another_has_it) {
  const std::string base = fresh_base() + "?session=2s&command_timeout=500ms";
  for (const bool silent : {false, true}) {
    harness::fault_proxy proxy(calm_cluster().port(1));
    auto here = holdfast::open(through(proxy.port(), base));
    auto there = holdfast::open(calm_cluster().url(base));
    holdfast::mutex mine{here, "job"};
    const lease held = mine.acquire();
    proxy.with([&](harness::relay& r) {
      if (silent) {
        r.stall(harness::way::up);
        r.stall(harness::way::down);
      } else {
        r.refuse();
        r.cut();
      }
    });
    const lease next = holdfast::mutex(there, "job").acquire();
    EXPECT_EQ(held.state(), lease_state::lost) << "known here before the store gave it away";
    EXPECT_GT(next.fence(), held.fence());
    proxy.heal();
    // Its lease expired meanwhile; it comes back with another one.
    harness::eventually("it is back", [&] {
      try {
        return !mine.try_acquire_for(100ms);
      } catch (const holdfast::error&) {
        return false;
      }
    });
    EXPECT_NO_THROW(next.check());
  }
}

TEST(etcd_faults, a_connection_that_is_lost_and_found_again_costs_nothing) {
  harness::fault_proxy proxy(calm_cluster().port(2));
  auto here = holdfast::open(through(proxy.port(), fresh_base() + "?session=10s"));
  const lease held = holdfast::mutex(here, "job", {.lease = 1s}).acquire();
  const auto fence = held.fence();
  for (int i = 0; i < 5; ++i) {
    const auto before = proxy.count().accepted;
    proxy.cut();
    harness::eventually("it is back", [&] { return proxy.count().accepted > before; });
  }
  EXPECT_NO_THROW(held.check());
  EXPECT_EQ(held.fence(), fence);
}

TEST(etcd_faults, a_lease_that_an_operator_revoked_is_noticed_and_the_next_one_works) {
  const auto base = fresh_base();
  auto here = holdfast::open(calm_cluster().url(base + "?session=3s"));
  holdfast::mutex lock{here, "job"};
  const lease held = lock.acquire();
  const auto key = keys_below(base);
  const auto from = key.rfind('/') + 1;
  (void)calm_cluster().ctl("lease revoke " + key.substr(from, key.find('.', from) - from));
  harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
  EXPECT_GT(lock.acquire().fence(), held.fence());
}

TEST(etcd_faults, fifty_that_wait_and_are_cut_off_at_once_are_all_served) {
  harness::fault_proxy proxy(calm_cluster().port(0));
  const std::string url = through(proxy.port(), fresh_base() + "?session=20s");
  std::vector<holdfast::session> sessions;
  for (int i = 0; i < 50; ++i) sessions.push_back(holdfast::open(url));
  lease held = holdfast::mutex(sessions[0], "job").acquire();
  std::atomic<int> served{0};
  int inside = 0;  // not atomic: the lock is all that protects it
  std::vector<std::thread> threads;
  for (auto& s : sessions) {
    threads.emplace_back([&] {
      holdfast::fair_mutex lock{s, "job"};
      const lease mine = lock.acquire();
      EXPECT_EQ(++inside, 1);
      --inside;
      ++served;
    });
  }
  harness::eventually("all wait", [&] { return sessions[0].show("job").waiters.size() == 50; });
  proxy.cut();
  held = {};
  for (auto& t : threads) t.join();
  EXPECT_EQ(served, 50);
}

TEST(etcd_faults, in_a_child_of_a_program_that_uses_it_etcd_can_not_be_opened_and_says_so) {
  auto here = holdfast::open(calm_cluster().url(fresh_base()));
  const pid_t child = ::fork();
  if (child == 0) {
    int answer = 1;
    try {
      (void)holdfast::open(here.url());
    } catch (const holdfast::error& e) {
      answer = e.reason() == errc::forked ? 0 : 2;
    }
    ::_exit(answer);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(holdfast::mutex(here, "job").try_acquire());
}

}  // namespace
}  // namespace etcd_test
