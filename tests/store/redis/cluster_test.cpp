#include <array>
#include <set>
#include <thread>

#include "crew.hpp"
#include "fixture.hpp"
#include "harness/fake_redis.hpp"
#include "harness/redis_fleet.hpp"
#include "store/redis/slot_map.hpp"

// Six nodes, slots that move, and primaries that die.
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using redis_test::contains;
using redis_test::outcome_of;

class redis_clusters : public testing::Test {
 protected:
  int slot_of(const std::string& name) { return cluster_.slot_of("holdfast:{" + name + "}"); }
  harness::redis_server& owner_of(const std::string& name) { return cluster_.owner(slot_of(name)); }
  harness::redis_server& other_than(const harness::redis_server& owner) {
    for (std::size_t i = 0; i < 3; ++i) {
      if (cluster_.nodes()[i].get() != &owner) return *cluster_.nodes()[i];
    }
    throw std::logic_error("there are three");
  }
  explicit redis_clusters(int patience_ms = 15'000) : cluster_(patience_ms) {}
  harness::redis_cluster cluster_;
};

/// A cluster whose nodes are replaced soon.
class redis_cluster_failover : public redis_clusters {
 protected:
  redis_cluster_failover() : redis_clusters(1'000) {}
  void fail_over(const std::string& name) {
    const int slot = slot_of(name);
    cluster_.owner(slot).kill();
    harness::eventually("another owner", [&] { return cluster_.is_served(slot); });
    cluster_.until_well();
  }
};

TEST_F(redis_clusters, names_are_spread_over_all_primaries_and_listed_from_all) {
  auto s = holdfast::open(cluster_.url());
  std::vector<std::string> names;
  std::vector<holdfast::lease> held;
  std::set<int> owners;
  for (int i = 0; i < 30; ++i) {
    names.push_back("name" + std::to_string(i));
    held.push_back(holdfast::mutex(s, names.back()).acquire());
    owners.insert(owner_of(names.back()).port());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(owners.size(), 3u);
  EXPECT_EQ(s.names(), names);
}

TEST_F(redis_clusters, slots_match_those_of_the_servers) {
  using holdfast::store::redis::slot_of;
  for (const std::string name :
       {"a", "order:1000", "with{brace", "{both}", "%7D", "ünï", "123456789"}) {
    auto s = holdfast::open(cluster_.url());
    auto held = holdfast::mutex(s, name).acquire();
    bool found = false;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto count =
          cluster_.nodes()[i]->ask({"CLUSTER", "COUNTKEYSINSLOT", std::to_string(slot_of(name))});
      found = found || count == "1";
    }
    EXPECT_TRUE(found) << name;
  }
}

TEST_F(redis_clusters, a_notification_reaches_a_listener_at_another_node) {
  auto a = holdfast::open(cluster_.url()), b = holdfast::open(cluster_.url());
  int looked = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "name" + std::to_string(i);
    holdfast::mutex first{a, name}, second{b, name};
    first.lock();
    std::thread waiter([&] { second.lock(), second.unlock(); });
    harness::eventually("a waiter", [&] { return a.show(name).waiters.size() == 1; });
    const auto before = b.store_operations();
    first.unlock();
    waiter.join();
    // One release, one renewal that claims the grant; a poll would be one more.
    looked += b.store_operations() - before > 2 ? 1 : 0;
  }
  EXPECT_LT(looked, 5);
}

TEST_F(redis_clusters, a_listener_at_a_node_that_goes_away_listens_at_another) {
  auto a = holdfast::open(cluster_.url()), b = holdfast::open(cluster_.url());
  // The replicas: no name is lost with them.
  for (std::size_t i = 3; i < 6; ++i) cluster_.nodes()[i]->kill();
  for (std::size_t i = 0; i < 3; ++i)
    cluster_.nodes()[i]->ask({"CLIENT", "KILL", "TYPE", "pubsub"});
  harness::eventually("a notice that comes", [&] {
    holdfast::mutex first{a, "m"}, second{b, "m"};
    first.lock();
    std::thread waiter([&] { second.lock(), second.unlock(); });
    harness::eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
    const auto before = b.store_operations();
    first.unlock();
    waiter.join();
    return b.store_operations() - before <= 2;
  });
}

// The node continues by itself, and gets nothing that is published in the cluster.
TEST_F(redis_clusters, a_listener_at_a_node_that_was_taken_out_listens_at_another) {
  auto& gone = *cluster_.nodes()[5];
  const auto a = holdfast::open(cluster_.url());
  const auto before = redis_test::listening_at(gone);
  std::vector<holdfast::session> all;  // each listens at any of them; the last one there
  do all.push_back(holdfast::open(cluster_.url()));
  while (redis_test::listening_at(gone) == before);
  auto held = holdfast::mutex(a, "m").acquire();
  holdfast::mutex waiter{all.back(), "m"};
  auto next = async_acquire(waiter).future();
  harness::eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
  cluster_.take_out(gone);
  auto& from = owner_of("m");
  auto& to = other_than(from);
  cluster_.begin_move(slot_of("m"), from, to);
  cluster_.end_move(slot_of("m"), from, to);
  (void)all.back().show("m");  // learns the nodes
  harness::eventually("no waiter to listen there",
                      [&] { return redis_test::listening_at(gone) == before; });
  EXPECT_FALSE(held.release());
  EXPECT_FALSE(next.get().value().release());
}

TEST_F(redis_clusters, each_primary_is_checked_when_the_store_is_opened) {
  for (std::size_t i = 0; i < 3; ++i) {
    cluster_.nodes()[i]->ask({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
    const auto told = std::make_shared<redis_test::listener>();
    holdfast::session_options o;
    o.observer = told;
    auto s = holdfast::open(cluster_.url(), o);
    EXPECT_TRUE(contains(told->details(), "allkeys-lru")) << "node " << i;
    cluster_.nodes()[i]->ask({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  }
}

/// Two nodes of a cluster, the second of which reports that about itself.
class two_nodes {
 public:
  explicit two_nodes(const std::string& info)
      : second_([info](const harness::fake_redis::words& w) {
          return w[0] == "INFO" ? harness::bulk(info) : std::string();
        }),
        first_([this](const harness::fake_redis::words& w) {
          if (w[0] == "INFO")
            return harness::bulk("# Server\r\nredis_version:7.0.15\r\ncluster_enabled:1\r\n");
          return w[0] == "CLUSTER" ? slots() : std::string();
        }) {}
  std::string url() const { return "redis+cluster://127.0.0.1:" + std::to_string(first_.port()); }
  std::string second() const { return "127.0.0.1:" + std::to_string(second_.port()); }

 private:
  static std::string range(int from, int to, int port) {
    return "*3\r\n:" + std::to_string(from) + "\r\n:" + std::to_string(to) + "\r\n*2\r\n" +
           harness::bulk("127.0.0.1") + ":" + std::to_string(port) + "\r\n";
  }
  std::string slots() const {
    return "*2\r\n" + range(0, 8'191, first_.port()) + range(8'192, 16'383, second_.port());
  }

  harness::fake_redis second_, first_;
};

TEST(redis_cluster_nodes, a_node_that_is_too_old_or_of_no_cluster_is_named_when_another_is_opened) {
  const two_nodes old("# Server\r\nredis_version:4.0.14\r\ncluster_enabled:1\r\n");
  const auto too_old = harness::outcome_of_opening(old.url());
  EXPECT_EQ(too_old.reason, errc::unsupported) << too_old.text;
  EXPECT_TRUE(contains(too_old.text, old.second())) << too_old.text;
  EXPECT_TRUE(contains(too_old.text, "4.0.14")) << too_old.text;
  const two_nodes alone("# Server\r\nredis_version:7.0.15\r\ncluster_enabled:0\r\n");
  const auto no_node = harness::outcome_of_opening(alone.url());
  EXPECT_EQ(no_node.reason, errc::unsupported) << no_node.text;
  EXPECT_TRUE(contains(no_node.text, alone.second())) << no_node.text;
}

TEST_F(redis_clusters, a_name_whose_keys_redisson_would_split_is_refused) {
  auto s = holdfast::open(cluster_.url("?dialect=redisson"));
  for (const char* const name : {"{cl", "a{cl", "{}x", "}cl", "a}b"}) {
    const auto writing = outcome_of([&] { (void)holdfast::shared_mutex(s, name).try_lock(); });
    EXPECT_EQ(writing.reason, errc::invalid_name) << name << ": " << writing.text;
    const auto arriving = outcome_of([&] { holdfast::latch(s, name, 1).count_down(); });
    EXPECT_EQ(arriving.reason, errc::invalid_name) << name << ": " << arriving.text;
    EXPECT_FALSE(outcome_of([&] { (void)holdfast::mutex(s, name).try_acquire(); }).failed)
        << "one key lies with itself";
  }
  for (const char* const name : {"{cl}", "a{cl}b", "a{cl}}b", "cl"}) {
    EXPECT_EQ(outcome_of([&] { (void)holdfast::shared_mutex(s, name).acquire(); }).text, "")
        << name;
  }
}

TEST_F(redis_clusters, a_user_with_the_documented_rights_sees_slots_move) {
  for (const auto& n : cluster_.nodes()) {
    redis_test::give_documented_rights(*n, {"everywhere", "in a cluster", "with ack"});
  }
  std::string url = cluster_.url("?ack=1&command_timeout=30s");
  url.insert(url.find("//") + 2, "app:pw@");
  auto s = holdfast::open(url);
  auto& from = owner_of("m");
  auto& to = other_than(from);
  cluster_.begin_move(slot_of("m"), from, to);
  std::thread contender(
      [&] { EXPECT_EQ(outcome_of([&] { holdfast::mutex(s, "m").lock(); }).text, ""); });
  harness::eventually("a question at the new place",
                      [&] { return contains(to.ask({"INFO", "commandstats"}), "cmdstat_asking"); });
  cluster_.end_move(slot_of("m"), from, to);
  contender.join();
}

TEST_F(redis_clusters, slots_that_move_under_load_hinder_no_request) {
  redis_test::crew crew(cluster_.url(), 3, 3, {"a", "b", "c"});
  crew.all_go_on(5);
  for (int i = 0; i < 4; ++i) {
    for (const std::string name : {"a", "b", "c"}) {
      cluster_.move(slot_of(name), other_than(owner_of(name)));
    }
  }
  crew.all_go_on(5);
  crew.stop();
  const auto t = crew.count();
  redis_test::expect_one_at_a_time(t);
  EXPECT_EQ(t.failed, 0) << t.failure;
}

// A batch of renewals goes to several nodes at once; each may have moved a name, and lack a script.
TEST_F(redis_clusters, scripts_that_are_lost_while_slots_move_hinder_no_request) {
  auto s = holdfast::open(cluster_.url("?command_timeout=30s"));
  std::vector<holdfast::lease> held;
  for (int i = 0; i < 12; ++i) {
    held.push_back(holdfast::mutex(s, "held" + std::to_string(i), {.lease = 6s}).acquire());
  }
  redis_test::crew crew(cluster_.url(), 2, 2, {"a", "b", "c"});
  for (int i = 0; i < 12; ++i) {
    for (const auto& n : cluster_.nodes()) n->ask({"SCRIPT", "FLUSH"});
    const std::string name = "held" + std::to_string(i);
    cluster_.move(slot_of(name), other_than(owner_of(name)));
    for (const auto& n : cluster_.nodes()) n->ask({"SCRIPT", "FLUSH"});
    crew.all_go_on(1);
  }
  crew.stop();
  const auto t = crew.count();
  redis_test::expect_one_at_a_time(t);
  EXPECT_EQ(t.failed, 0) << t.failure;
  for (const auto& one : held) EXPECT_NO_THROW(one.check());
}

TEST_F(redis_clusters, a_request_waits_until_the_slot_of_its_name_has_moved) {
  auto s = holdfast::open(cluster_.url("?command_timeout=30s"));
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  auto& from = owner_of("m");
  auto& to = other_than(from);
  cluster_.begin_move(slot_of("m"), from, to);
  to.ask({"CONFIG", "RESETSTAT"});
  std::thread contender([&] { EXPECT_TRUE(m.try_lock()); });
  // The client follows ASK: its command arrived there, after ASKING.
  harness::eventually("a question at the new place",
                      [&] { return contains(to.ask({"INFO", "commandstats"}), "cmdstat_asking"); });
  cluster_.end_move(slot_of("m"), from, to);
  contender.join();
  EXPECT_TRUE(contains(to.ask({"GET", "holdfast:{m}"}), " mutex 1 "));
  m.unlock();
}

TEST_F(redis_clusters, a_slot_that_stays_half_moved_is_unavailable_in_time) {
  auto s = holdfast::open(cluster_.url("?command_timeout=200ms"));
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  auto& from = owner_of("m");
  cluster_.begin_move(slot_of("m"), from, other_than(from));
  const auto refused = outcome_of([&] { (void)m.try_lock(); });
  EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
  EXPECT_TRUE(contains(refused.text, "moving slots")) << refused.text;
  EXPECT_TRUE(refused.retryable);
}

TEST_F(redis_cluster_failover,
       a_primary_that_is_killed_under_load_is_replaced_and_no_waiter_is_stuck) {
  redis_test::crew crew(cluster_.url(), 3, 3, {"a", "b", "c", "d"});
  crew.all_go_on(10);
  fail_over("a");
  crew.all_go_on(10);
  crew.stop();
  const auto t = crew.count();
  redis_test::expect_right_data(t);
  EXPECT_LE(t.failed, 9) << "each once at most, while the slot was not served: " << t.failure;
}

TEST_F(redis_cluster_failover, a_holder_keeps_its_lock_also_if_its_slot_was_moved_before) {
  auto s = holdfast::open(cluster_.url("?ack=all&replicas=1"));
  holdfast::mutex m{s, "m"};
  auto held = m.acquire();
  cluster_.move(slot_of("m"), other_than(owner_of("m")));
  EXPECT_EQ(outcome_of([&] { held.extend(); }).text, "");
  fail_over("m");
  auto unchecked = holdfast::open(cluster_.url());
  EXPECT_FALSE(holdfast::mutex(unchecked, "m").try_lock()) << "the replica knows the holder";
  EXPECT_FALSE(held.release());
}

TEST_F(redis_clusters, a_stopped_node_is_no_obstacle_for_names_on_others) {
  auto s = holdfast::open(cluster_.url("?command_timeout=1s"));
  std::string there = "a", here = "b";
  for (int i = 0; &owner_of(here) == &owner_of(there); ++i) here = "b" + std::to_string(i);
  holdfast::mutex m{s, here};
  m.lock(), m.unlock();
  owner_of(there).stop();
  EXPECT_TRUE(m.try_lock());
  m.unlock();
  for (const auto& n : cluster_.nodes()) n->resume();
}

TEST_F(redis_clusters, nodes_that_are_down_are_no_obstacle_to_opening) {
  const auto dead = std::to_string(harness::free_port());
  for (std::size_t i = 3; i < 6; ++i) cluster_.nodes()[i]->kill();
  for (int i = 0; i < 10; ++i) {  // the node to listen at is drawn at random
    auto s = holdfast::open("redis+cluster://127.0.0.1:" + dead +
                            ",127.0.0.1:" + std::to_string(cluster_.nodes()[1]->port()));
    holdfast::mutex m{s, "m"};
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  }
}

TEST_F(redis_clusters, an_impossible_configuration_is_refused_at_open) {
  const auto node = std::to_string(cluster_.nodes()[0]->port());
  const auto opening = [](const std::string& url) { return harness::outcome_of_opening(url); };
  const auto as_one = opening("redis://127.0.0.1:" + node);
  EXPECT_EQ(as_one.reason, errc::unsupported);
  EXPECT_TRUE(contains(as_one.text, "redis+cluster://")) << as_one.text;
  const harness::redis_server alone;
  const auto as_many = opening("redis+cluster://127.0.0.1:" + std::to_string(alone.port()));
  EXPECT_EQ(as_many.reason, errc::unsupported);
  EXPECT_TRUE(contains(as_many.text, "redis://")) << as_many.text;
  EXPECT_EQ(opening(cluster_.url("?database=1")).reason, errc::invalid_argument);
  const auto dead = std::to_string(harness::free_port());
  EXPECT_EQ(opening("redis+cluster://127.0.0.1:" + dead).reason, errc::unavailable);
}

}  // namespace
