#include "harness/consensus_faults.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <holdfast/holdfast.hpp>
#include <optional>
#include <thread>

#include "harness/crowd.hpp"
#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/hung_store.hpp"
#include "harness/opened_late.hpp"
#include "harness/process.hpp"
#include "harness/seed.hpp"

namespace harness {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lease;
using holdfast::lease_state;

void leaders_die_and_come_back(server_group& servers) {
  random random;
  crowd all(std::vector<std::string>(4, servers.url(brief)));
  for (int round = 0; round < 3; ++round) {
    all.until_more(20);
    const int leader = servers.leader();
    if (leader < 0) continue;  // an election has just begun
    servers.kill(leader);
    if (random.one_in(2)) all.until_more(20);
    servers.start(leader);
    servers.until_whole();
  }
  all.until_more(20);
  const auto wrong = all.violations();
  EXPECT_TRUE(wrong.empty()) << summary(wrong);
}

void the_majority_is_gone(server_group& servers) {
  auto here = holdfast::open(servers.url(brief));
  auto there = holdfast::open(servers.url(brief));
  holdfast::mutex one{here, "job"};
  holdfast::mutex two{there, "other"};
  const lease held = one.acquire();
  const int leader = std::max(servers.leader(), 0);
  const int other = (leader + 1) % servers.size();
  servers.kill(leader);
  servers.kill(other);
  // Before a second has passed, the server may only be slow, and a time-out is no failure.
  const auto e = thrown_by([&] { (void)two.try_acquire_for(2s); });
  EXPECT_EQ(e.reason(), errc::unavailable) << e.what();
  EXPECT_TRUE(e.retryable());
  eventually("the loss is told", [&] { return held.lost().stop_requested(); });
  const auto late = opened_before(
      [&] {
        servers.start(leader);
        servers.start(other);
      },
      servers.url(std::string(brief) + "&connect_timeout=500ms"));
  servers.until_whole();
  std::optional<lease> again;
  eventually("it is let in", [&] {
    try {
      again = one.try_acquire_for(2s);
    } catch (const holdfast::error&) {
      return false;
    }
    return again.has_value();
  });
  EXPECT_GT(again->fence(), held.fence());
}

void a_holder_sleeps(const server_group& servers, const std::string& base) {
  const std::string url = servers.url(base + "?session=1s");
  child sleeper("lock-holder", {url});
  const auto fence = std::stoull(sleeper.expect_line());
  sleeper.stop();
  auto here = holdfast::open(servers.url(base + "?session=30s"));
  const lease mine = holdfast::mutex(here, "job").acquire();
  EXPECT_GT(mine.fence(), fence);
  sleeper.resume();
  sleeper.tell("?");
  EXPECT_EQ(sleeper.expect_line(), "lost");
  EXPECT_NO_THROW(mine.check());
}

void a_holder_is_killed(const server_group& servers, const std::string& base) {
  const std::string url = servers.url(base + "?session=1s");
  child victim("lock-holder", {url});
  const auto fence = std::stoull(victim.expect_line());
  victim.kill();
  auto here = holdfast::open(url);
  EXPECT_GT(holdfast::mutex(here, "job").acquire().fence(), fence);
}

void limited_calls_to_a_server_that_hangs(const server_group& servers, const std::string& base) {
  fault_proxy proxy(servers.port(1));
  calls_end_at_their_limit_while_it_hangs(
      hang(proxy), servers.url_at(proxy.port(), base + "?session=100s&command_timeout=3600s"),
      servers.url(base));
}

void tries_at_a_server_that_hangs(const server_group& servers, const std::string& base) {
  fault_proxy proxy(servers.port(1));
  tries_time_out_while_it_hangs(
      hang(proxy), servers.url_at(proxy.port(), base + "?session=100s&command_timeout=1s"));
}

void a_holder_is_cut_off(const server_group& servers, const std::string& base,
                         const std::string& options) {
  const std::string rest = base + options;
  for (const bool silent : {false, true}) {
    fault_proxy proxy(servers.port(1));
    auto here = holdfast::open(servers.url_at(proxy.port(), rest));
    auto there = holdfast::open(servers.url(base + "?session=30s"));
    holdfast::mutex mine{here, "job"};
    const lease held = mine.acquire();
    proxy.with([&](relay& r) {
      if (silent) {
        r.stall(way::up);
        r.stall(way::down);
      } else {
        r.refuse();
        r.cut();
      }
    });
    const lease next = holdfast::mutex(there, "job").acquire();
    EXPECT_EQ(held.state(), lease_state::lost) << "known here before the store gave it away";
    EXPECT_GT(next.fence(), held.fence());
    proxy.heal();
    // Its session ended meanwhile; it comes back with another one.
    eventually("it is back", [&] {
      try {
        return !mine.try_acquire_for(100ms);
      } catch (const holdfast::error&) {
        return false;
      }
    });
    EXPECT_NO_THROW(next.check());
  }
}

void connections_are_lost_and_found(const server_group& servers, const std::string& base) {
  fault_proxy proxy(servers.port(2));
  auto here = holdfast::open(servers.url_at(proxy.port(), base + "?session=30s"));
  const lease held = holdfast::mutex(here, "job").acquire();
  const auto fence = held.fence();
  for (int i = 0; i < 5; ++i) {
    const auto before = proxy.count().accepted;
    proxy.cut();
    eventually("it is back", [&] { return proxy.count().accepted > before; });
  }
  EXPECT_NO_THROW(held.check());
  EXPECT_EQ(held.fence(), fence);
}

void fifty_are_cut_off_at_once(const server_group& servers, const std::string& base) {
  fault_proxy proxy(servers.port(0));
  const std::string url = servers.url_at(proxy.port(), base + "?session=20s");
  std::vector<holdfast::session> sessions;
  for (int i = 0; i < 50; ++i) sessions.push_back(holdfast::open(url));
  lease held = holdfast::mutex(sessions[0], "job").acquire();
  std::atomic<int> served{0};
  int inside = 0;  // not atomic: only the lock protects it
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
  eventually("all wait", [&] { return sessions[0].show("job").waiters.size() == 50; });
  proxy.cut();
  held = {};
  for (auto& t : threads) t.join();
  EXPECT_EQ(served, 50);
}

void late_requests_leave_nothing(const server_group& servers, const std::string& base,
                                 fault_proxy& proxy, const std::string& by) {
  constexpr int count = 16;
  const auto name = [](int i) { return "job" + std::to_string(i); };
  auto here = holdfast::open(by + base + "?session=30s&command_timeout=1s", {.store_timeout = 0ms});
  // This session only reads; its long time-out keeps a late answer on a loaded machine from
  // counting as lost.
  auto there = holdfast::open(servers.url(base + "?session=30s&command_timeout=10s"));
  proxy.with([](relay& r) { r.stall(way::up); });
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        (void)holdfast::mutex(here, name(i)).acquire();
      } catch (const holdfast::error& e) {
        EXPECT_EQ(e.reason(), errc::unavailable) << e.what();
      }
    });
  }
  for (auto& t : threads) t.join();
  proxy.heal();
  std::vector<lease> held;
  for (int i = 0; i < count; ++i) {
    eventually("the name is free", [&] {
      auto got = holdfast::mutex(there, name(i)).try_acquire();
      if (got) held.push_back(std::move(*got));
      return got.has_value();
    });
  }
  // A late request is queued behind our entry.
  for (int look = 0; look < 10; ++look) {
    for (int i = 0; i < count; ++i) {
      eventually("nobody stays there", [&] { return there.show(name(i)).waiters.empty(); });
    }
  }
}

}  // namespace harness
