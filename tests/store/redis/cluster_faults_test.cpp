#include <array>
#include <atomic>
#include <thread>

#include "fixture.hpp"
#include "harness/fake_redis.hpp"
#include "harness/hung_store.hpp"
#include "harness/redis_fleet.hpp"

// The errors of a cluster's nodes, by their own names.
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using redis_test::contains;
using redis_test::outcome_of;

class redis_cluster_says : public testing::Test {
 protected:
  explicit redis_cluster_says(int patience_ms = 15'000) : cluster_(patience_ms) {}

  static std::string said(const harness::redis_server& node) {
    return node.ask({"INFO", "errorstats"});
  }
  harness::hang all_nodes_hang() const {
    const auto each = [this](void (harness::redis_server::*act)()) {
      for (const auto& node : cluster_.nodes()) (*node.*act)();
    };
    return {[=] { each(&harness::redis_server::stop); },
            [=] { each(&harness::redis_server::resume); }};
  }
  harness::redis_server& other() const {
    return *cluster_.nodes()[cluster_.nodes()[0].get() == &owner_ ? 1 : 0];
  }

  harness::redis_cluster cluster_;
  holdfast::session s_ = holdfast::open(cluster_.url("?command_timeout=30s"));
  holdfast::mutex m_{s_, "m"};
  const int slot_ = cluster_.slot_of("holdfast:{m}");
  harness::redis_server& owner_ = cluster_.owner(slot_);
};

TEST_F(redis_cluster_says, nothing_for_a_while_and_calls_end_at_their_limit) {
  const std::string url = cluster_.url("?connect_timeout=3600s&command_timeout=3600s");
  harness::calls_end_at_their_limit_while_it_hangs(all_nodes_hang(), url, url);
}

TEST_F(redis_cluster_says, nothing_for_a_while_and_tries_time_out) {
  harness::tries_time_out_while_it_hangs(
      all_nodes_hang(), cluster_.url("?connect_timeout=300ms&command_timeout=300ms"));
}

TEST_F(redis_cluster_says, moved_is_followed_unnoticed) {
  auto held = m_.acquire();
  const auto fence = held.fence();
  cluster_.move(slot_, other());
  held.extend();
  EXPECT_EQ(held.fence(), fence);
  EXPECT_TRUE(contains(said(owner_), "errorstat_MOVED")) << said(owner_);
  const auto before = said(owner_);
  EXPECT_FALSE(held.release());
  EXPECT_EQ(said(owner_), before) << "once is enough";
}

TEST_F(redis_cluster_says, moved_is_followed_by_an_unconfirmed_release_too) {
  struct failures final : holdfast::observer {
    std::atomic<int> told{0};
    void on_event(const holdfast::event& e) override {
      if (e.kind != holdfast::event_kind::release_failed) return;
      EXPECT_EQ(e.code, errc::unavailable) << e.detail;
      ++told;
    }
  };
  const auto tells = std::make_shared<failures>();
  holdfast::session_options o;
  o.observer = tells;
  const auto s = holdfast::open(cluster_.url("?command_timeout=30s"), o);
  holdfast::lock_options later;
  later.unconfirmed_release = true;
  holdfast::mutex m{s, "m", later};
  m.lock();
  cluster_.move(slot_, other());
  m.unlock();
  harness::eventually("free", [&] { return s.show("m").holders.empty(); });
  EXPECT_EQ(tells->told, 1);
}

TEST_F(redis_cluster_says, tryagain_is_waited_out) {
  auto held = m_.acquire();
  const auto fence = held.fence();
  cluster_.begin_move(slot_, owner_, other());  // one of the name's keys is there, and others not
  std::thread extending([&] { held.extend(); });
  harness::eventually("TRYAGAIN", [&] { return contains(said(owner_), "errorstat_TRYAGAIN"); });
  cluster_.end_move(slot_, owner_, other());
  extending.join();
  EXPECT_EQ(held.fence(), fence);
  EXPECT_FALSE(held.release());
}

// Two fakes share the slots, and the second refuses the first request.
TEST(redis_cluster_identity, is_that_of_the_attempt_that_succeeded) {
  std::array<std::atomic<int>, 2> ports{};
  std::atomic<int> asked{0};
  const auto node = [&](const std::string& run_id) {
    return [&, run_id](const harness::fake_redis::words& command) {
      const bool second = run_id == "second";
      if (command[0] == "INFO" && command.size() > 1) {
        if (second && ++asked == 1) return std::string("-LOADING for a moment\r\n");
        return harness::bulk("run_id:" + run_id + "\r\nuptime_in_seconds:9\r\n");
      }
      if (command[0] == "INFO")
        return harness::bulk("redis_version:7.0.15\r\nrole:master\r\ncluster_enabled:1\r\n");
      if (command[0] != "CLUSTER") return std::string();
      const auto slots = [&](const char* range, int port) {
        return "*3\r\n" + std::string(range) + "*2\r\n" + harness::bulk("127.0.0.1") + ":" +
               std::to_string(port) + "\r\n";
      };
      return "*2\r\n" + slots(":0\r\n:8191\r\n", ports[0]) + slots(":8192\r\n:16383\r\n", ports[1]);
    };
  };
  const harness::fake_redis first(node("first")), second(node("second"));
  ports[0] = first.port();
  ports[1] = second.port();
  std::string run_id;
  holdfast::session_options o;
  o.decorate = [&](std::unique_ptr<holdfast::store::session_store> inner) {
    const auto who = inner->identify();
    run_id = who ? who->run_id : who.error().what;
    return inner;
  };
  const auto s = holdfast::open("redis+cluster://127.0.0.1:" + std::to_string(first.port()), o);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(run_id.size(), std::string("firstsecond").size()) << run_id;
}

// The node asked for the map may be the last to learn of a move.
TEST_F(redis_cluster_says, moved_is_believed_though_the_map_is_older) {
  std::atomic<int> port{0};
  const std::string moved =
      "-MOVED " + std::to_string(slot_) + " 127.0.0.1:" + std::to_string(owner_.port()) + "\r\n";
  const harness::fake_redis former([&](const harness::fake_redis::words& command) {
    if (command[0].starts_with("EVAL")) return moved;
    if (command[0] == "INFO")
      return harness::bulk("redis_version:7.0.15\r\nrole:master\r\ncluster_enabled:1\r\n");
    if (command[0] != "CLUSTER") return std::string();
    return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n" + harness::bulk("127.0.0.1") + ":" +
           std::to_string(port) + "\r\n";
  });
  const std::string url = former.url();
  port = std::stoi(url.substr(url.rfind(':') + 1));
  auto s =
      holdfast::open("redis+cluster://127.0.0.1:" + std::to_string(port) + "?command_timeout=5s");
  EXPECT_TRUE(holdfast::mutex(s, "m").try_lock());
}

// A node that is cut off from the others, and was replaced, knows only its old map.
TEST_F(redis_cluster_says, down_by_a_node_whose_map_is_not_believed) {
  std::atomic<int> port{0};
  const harness::fake_redis cut_off([&](const harness::fake_redis::words& command) {
    const auto node = [](int p) {
      return "*2\r\n" + harness::bulk("127.0.0.1") + ":" + std::to_string(p) + "\r\n";
    };
    if (command[0].starts_with("EVAL")) return std::string("-CLUSTERDOWN The cluster is down\r\n");
    if (command[0] == "INFO")
      return harness::bulk("redis_version:7.0.15\r\nrole:master\r\ncluster_enabled:1\r\n");
    if (command[0] != "CLUSTER") return std::string();
    return "*1\r\n*4\r\n:0\r\n:16383\r\n" + node(port) + node(owner_.port());
  });
  port = cut_off.port();
  auto s =
      holdfast::open("redis+cluster://127.0.0.1:" + std::to_string(port) + "?command_timeout=5s");
  EXPECT_TRUE(holdfast::mutex(s, "m").try_lock());
}

/// A cluster whose missing nodes are noticed soon.
class redis_cluster_falls : public redis_cluster_says {
 protected:
  redis_cluster_falls() : redis_cluster_says(1'000) {}
};

TEST_F(redis_cluster_falls, clusterdown_is_unavailable_until_all_slots_are_served_again) {
  auto lost = cluster_.nodes()[0].get() == &owner_ ? 1U : 0U;
  for (const auto i : {lost, lost + 3}) cluster_.nodes()[i]->kill();
  harness::eventually("a cluster that is down",
                      [&] { return owner_.field({"CLUSTER", "INFO"}, "cluster_state") == "fail"; });
  holdfast::session_options o;
  o.store_timeout = 300ms;
  const auto refused = outcome_of([&] {
    auto s = holdfast::open(
        "redis+cluster://127.0.0.1:" + std::to_string(owner_.port()) + "?command_timeout=300ms", o);
    (void)holdfast::mutex(s, "m").try_lock();
  });
  EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
  EXPECT_TRUE(contains(refused.text, "CLUSTERDOWN")) << refused.text;
  EXPECT_TRUE(refused.retryable);
  for (const auto i : {lost, lost + 3}) cluster_.nodes()[i]->start();
  EXPECT_TRUE(m_.try_lock_for(60s));
}

}  // namespace
