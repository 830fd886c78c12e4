#include <gtest/gtest.h>

#include "fault/storm.hpp"
#include "harness/eventually.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/temp_dir.hpp"

#ifdef HOLDFAST_WITH_REDIS
#include "harness/redis_fleet.hpp"
#endif
#ifdef HOLDFAST_WITH_POSTGRES
#include "harness/postgres_server.hpp"
#endif
#ifdef HOLDFAST_WITH_MARIADB
#include "harness/mariadb_server.hpp"
#endif
#ifdef HOLDFAST_WITH_MEMCACHED
#include "harness/memcached_server.hpp"
#endif
#ifdef HOLDFAST_WITH_ETCD
#include "harness/etcd_cluster.hpp"
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
#include "harness/zookeeper_ensemble.hpp"
#endif

// A storm at each store. Half of the troubles, once; or all of them, over and over, for
// HOLDFAST_CHAOS_SECONDS (make chaos, docs/reliability.md).
namespace {

using namespace fault_test;
using namespace std::chrono_literals;
using harness::fault_proxy;
using harness::way;

using troubles = std::vector<trouble>;

constexpr const char* impatient = "?command_timeout=500ms&connect_timeout=500ms";

/// On the way of some of the processes.
troubles of_the_network(fault_proxy& at) {
  const auto heal = [&at] { at.heal(); };
  const auto stall = [&at](way w) { return [&at, w] { at.with([w](auto& r) { r.stall(w); }); }; };
  return {{"cut", [&at] { at.cut(); }},
          {"refused", [&at] { at.with([](auto& r) { r.refuse(), r.cut(); }); }, heal},
          {"requests held up", stall(way::up), heal},
          {"answers held up", stall(way::down), heal},
          {"half open", [&at] { at.with([](auto& r) { r.half_open(); }); }},
          {"an answer lost", [&at] { at.with([](auto& r) { r.cut_after(way::down, 0); }); }}};
}

template <class Server>
troubles of_the_server(Server& server) {
  return {{"server stopped", [&] { server.stop(); }, [&] { server.resume(); }},
          {"server restarted", [&] { server.kill(); }, [&] { server.start(); }}};
}

troubles operator+(troubles some, const troubles& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

void expect_sound(const storm_at& at) {
  const auto card = storm(at);
  // Two servers may give the same fence in the same microsecond.
  EXPECT_EQ(card.fenced_overlaps, at.two_may_believe ? card.same_fences : 0U);
  EXPECT_LE(card.lost_updates, card.fenced_overlaps);
  EXPECT_EQ(card.left_behind, 0U);
  if (at.two_may_believe) return;
  EXPECT_EQ(card.believed_overlaps, 0U);
  EXPECT_EQ(card.shrunken_fences, 0U);
  EXPECT_TRUE(card.wrong.empty());
}

/// Four of six processes use a good way, two a bad one.
std::vector<std::string> ways(const std::string& good, const std::string& bad) {
  return {good, good, bad};
}

#ifdef HOLDFAST_WITH_SQLITE
// The test of the test: processes that use different stores exclude each other only by chance.
TEST(chaos_of_two_stores, is_seen_as_overlaps_and_by_the_fence) {
  harness::temp_dir dir;
  const auto card =
      storm({"two SQLite files", {"sqlite:" + dir.file("one"), "sqlite:" + dir.file("two")}, {}});
  EXPECT_GT(card.believed_overlaps, 0U);
  EXPECT_GT(card.refused, 0U);
  EXPECT_GT(card.told_late, 0U);
}

TEST(chaos_sqlite, nothing_overlaps_and_no_waiter_is_stuck) {
  harness::temp_dir dir;
  expect_sound({"SQLite", {"sqlite:" + dir.file("locks.db")}, {}});
}
#endif

#ifdef HOLDFAST_WITH_REDIS
const std::vector<std::string> forgets_nothing{"--appendonly", "yes", "--appendfsync", "always"};

std::string redis_at(int port) { return "redis://127.0.0.1:" + std::to_string(port) + impatient; }

TEST(chaos_redis, nothing_overlaps_and_no_waiter_is_stuck) {
  harness::redis_server server(forgets_nothing);
  fault_proxy proxy(server.port());
  const trouble hung_up{"hung up", [&] { server.ask({"CLIENT", "KILL", "TYPE", "normal"}); }};
  const trouble flushed{"scripts flushed", [&] { server.ask({"SCRIPT", "FLUSH"}); }};
  expect_sound({"Redis", ways(redis_at(server.port()), redis_at(proxy.port())),
                of_the_server(server) + of_the_network(proxy) + troubles{hung_up, flushed}});
}

TEST(chaos_redis_that_forgets, nothing_overlaps_at_the_fenced_resource_and_no_waiter_is_stuck) {
  harness::redis_server server;
  fault_proxy proxy(server.port());
  const trouble flushed{"flushed", [&] { server.ask({"FLUSHALL"}); }};
  expect_sound({.store = "Redis, emptied by each restart",
                .urls = ways(redis_at(server.port()), redis_at(proxy.port())),
                .troubles = of_the_server(server) + troubles{flushed},
                .two_may_believe = true});
}

void with_failovers(const std::string& store, const std::string& options) {
  harness::redis_sentinels fleet(500);
  const auto replication = [](const harness::redis_server& s, const std::string& field) {
    return s.field({"INFO", "replication"}, field);
  };
  const auto until_well = [&] {
    harness::eventually("one primary, and replicas of it", [&] {
      return replication(fleet.primary(), "role") == "master" &&
             replication(fleet.primary(), "connected_slaves") == "2";
    });
  };
  const auto fail_over = [&] {
    auto& before = fleet.primary();
    fleet.fail_over();
    before.start();
    before.ask({"REPLICAOF", "127.0.0.1", std::to_string(fleet.primary().port())});
    until_well();
  };
  harness::redis_server* stopped = nullptr;
  const trouble stop{"primary stopped", [&] { (stopped = &fleet.primary())->stop(); },
                     [&] { stopped->resume(), until_well(); }};
  const trouble hang_up{"hung up",
                        [&] { fleet.primary().ask({"CLIENT", "KILL", "TYPE", "normal"}); }};
  expect_sound({.store = store,
                .urls = {fleet.url(impatient + options)},
                .troubles = {{"primary killed", fail_over}, stop, hang_up},
                .two_may_believe = true});
}

TEST(chaos_redis_sentinels, nothing_overlaps_at_the_fenced_resource_and_no_waiter_is_stuck) {
  with_failovers("Redis behind sentinels", "");
}

TEST(chaos_redis_acknowledged, nothing_overlaps_at_the_fenced_resource_and_no_waiter_is_stuck) {
  with_failovers("Redis behind sentinels, ack=majority",
                 "&ack=majority&replicas=2&ack_timeout=300ms");
}

TEST(chaos_redis_cluster, nothing_overlaps_at_the_fenced_resource_and_no_waiter_is_stuck) {
  harness::redis_cluster cluster(1'000);
  const auto slot = cluster.slot_of("holdfast:{m}");
  const auto owner = [&]() -> harness::redis_server& { return cluster.owner(slot); };
  const auto replace = [&] {
    auto& before = owner();
    before.kill();
    harness::eventually("another owner", [&] { return cluster.is_served(slot); });
    before.start();
    cluster.until_well();
  };
  const auto move = [&] {
    for (const auto& n : cluster.nodes()) {
      if (n.get() == &owner() || n->field({"INFO", "replication"}, "role") != "master") continue;
      return cluster.move(slot, *n);
    }
  };
  harness::redis_server* stopped = nullptr;
  const trouble stop{"owner stopped", [&] { (stopped = &owner())->stop(); },
                     [&] { stopped->resume(), cluster.until_well(); }};
  expect_sound({.store = "Redis Cluster",
                .urls = {cluster.url(impatient)},
                .troubles = {{"owner killed", replace}, stop, {"slot moved", move}},
                .two_may_believe = true});
}
#endif

#ifdef HOLDFAST_WITH_POSTGRES
TEST(chaos_postgres, nothing_overlaps_and_no_waiter_is_stuck) {
  harness::postgres_server server;
  fault_proxy proxy(server.port());
  expect_sound(
      {"PostgreSQL",
       ways(server.url(impatient), harness::postgres_server::url_of(proxy.port(), impatient)),
       of_the_server(server) + of_the_network(proxy)});
}
#endif

#ifdef HOLDFAST_WITH_MARIADB
TEST(chaos_mariadb, nothing_overlaps_and_no_waiter_is_stuck) {
  harness::mariadb_server server;
  fault_proxy proxy(server.port());
  const auto at = [](int port) {
    return harness::mariadb_server::url_of(port) + "locks" + impatient;
  };
  expect_sound({"MariaDB", ways(at(server.port()), at(proxy.port())),
                of_the_server(server) + of_the_network(proxy)});
}
#endif

#ifdef HOLDFAST_WITH_MEMCACHED
TEST(chaos_memcached, nothing_overlaps_and_no_waiter_is_stuck) {
  harness::memcached_server server;
  fault_proxy proxy(server.port());
  const auto at = [](int port) {
    return "memcached://127.0.0.1:" + std::to_string(port) + impatient;
  };
  const trouble stopped{"server stopped", [&] { server.stop(); }, [&] { server.resume(); }};
  expect_sound({"memcached", ways(at(server.port()), at(proxy.port())),
                troubles{stopped} + of_the_network(proxy)});
}
#endif

/// Servers that form a quorum.
troubles of_the_group(harness::server_group& servers) {
  const auto any = std::make_shared<int>(0);
  const auto leader = [&servers, any] { return *any = std::max(servers.leader(), 0); };
  return {{"leader killed", [&servers, leader] { servers.kill(leader()); },
           [&servers, any] { servers.start(*any), servers.until_whole(); }},
          {"leader stopped", [&servers, leader] { servers.stop(leader()); },
           [&servers, any] { servers.resume(*any), servers.until_whole(); }},
          {"follower killed", [&servers, leader, any] { servers.kill(*any = (leader() + 1) % 3); },
           [&servers, any] { servers.start(*any), servers.until_whole(); }}};
}

constexpr const char* brief = "/locks?session=2s&command_timeout=500ms";

#ifdef HOLDFAST_WITH_ETCD
TEST(chaos_etcd, nothing_overlaps_and_no_waiter_is_stuck) {
  harness::etcd_cluster servers;
  fault_proxy proxy(servers.port(0));
  expect_sound({"etcd", ways(servers.url(brief), servers.url_at(proxy.port(), brief)),
                of_the_group(servers) + of_the_network(proxy), false, 2s});
}
#endif

#ifdef HOLDFAST_WITH_ZOOKEEPER
TEST(chaos_zookeeper, nothing_overlaps_and_no_waiter_is_stuck) {
  harness::zookeeper_ensemble servers;
  fault_proxy proxy(servers.port(0));
  expect_sound({"ZooKeeper", ways(servers.url(brief), servers.url_at(proxy.port(), brief)),
                of_the_group(servers) + of_the_network(proxy), false, 2s});
}
#endif

}  // namespace
