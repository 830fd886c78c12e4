#include "tool/doctor_facts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tool/doctor_names.hpp"
#include "tool/exit_code.hpp"

// The meaning of settings and names, without a server.
namespace holdfast::tool {

using namespace std::chrono_literals;

namespace {

using pairs = std::vector<std::pair<std::string, std::string>>;

store::facts facts_of(const pairs& all) {
  store::facts facts;
  for (const auto& [name, value] : all) facts.push_back({"", name, value});
  return facts;
}

/// The findings of a topic.
findings about(const std::string& topic, const findings& all) {
  findings some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some),
               [&](const finding& f) { return f.topic == topic; });
  return some;
}

/// There is one finding of that topic, with that level and a remedy.
void expect_one(const findings& all, const std::string& topic, severity level) {
  const auto found = about(topic, all);
  ASSERT_EQ(found.size(), 1U) << topic;
  EXPECT_EQ(found[0].level, level) << topic << ": " << found[0].message;
  EXPECT_FALSE(found[0].message.empty());
  EXPECT_TRUE(level == severity::ok || !found[0].remedy.empty()) << found[0].message;
}

void expect(const std::string& url, const pairs& facts, const std::string& topic, severity level) {
  SCOPED_TRACE(url);
  expect_one(judge_facts(url, facts_of(facts)), topic, level);
}

void expect_nothing(const std::string& url, const pairs& facts, const std::string& topic) {
  EXPECT_TRUE(about(topic, judge_facts(url, facts_of(facts))).empty()) << url << ": " << topic;
}

}  // namespace

TEST(doctor_facts, redis_that_may_drop_locks_is_a_problem_only_where_memory_is_limited) {
  const auto policy = [](const std::string& p, const std::string& limit) {
    return pairs{{"maxmemory_policy", p}, {"maxmemory", limit}};
  };
  expect("redis://h", policy("allkeys-lru", "1000"), "eviction", severity::problem);
  expect("redis://h", policy("allkeys-lru", "0"), "eviction", severity::note);
  expect("redis://h", policy("noeviction", "1000"), "eviction", severity::ok);
  auto dropped = policy("volatile-ttl", "1000");
  dropped.emplace_back("evicted_keys", "7");
  EXPECT_EQ(about("eviction", judge_facts("redis://h", facts_of(dropped))).size(), 2U);
}

TEST(doctor_facts, redis_that_keeps_nothing_on_disk_forgets) {
  expect("redis://h", {{"aof_enabled", "0"}}, "persistence", severity::warning);
  expect("redis://h", {{"aof_enabled", "1"}}, "persistence", severity::ok);
  expect("redis://h", {{"rdb_last_bgsave_status", "err"}}, "persistence", severity::problem);
  expect("redis://h", {{"aof_last_write_status", "err"}}, "persistence", severity::problem);
  expect("redis://h", {{"loading", "1"}}, "persistence", severity::warning);
  expect_nothing("redis://h", {{"rdb_last_bgsave_status", "ok"}}, "persistence");
}

TEST(doctor_facts, replicas_of_redis_are_judged_by_whether_grants_wait_for_them) {
  const auto replicas = [](const std::string& n) {
    return pairs{{"role", "master"}, {"connected_slaves", n}};
  };
  expect("redis://h", replicas("2"), "replicas", severity::note);
  expect("redis://h?ack=1", replicas("2"), "replicas", severity::ok);
  expect("redis://h?ack=1", replicas("0"), "replicas", severity::problem);
  expect_nothing("redis://h", replicas("0"), "replicas");
}

TEST(doctor_facts, replicas_are_judged_by_the_value_of_ack_and_not_by_its_letters) {
  const auto replicas = [](const std::string& n) {
    return pairs{{"role", "master"}, {"connected_slaves", n}};
  };
  for (const char* does_not_wait : {"redis://h?ack=any", "redis://h?prefix=back=1"}) {
    expect_nothing(does_not_wait, replicas("0"), "replicas");
    expect(does_not_wait, replicas("2"), "replicas", severity::note);
  }
}

TEST(doctor_facts, a_scheme_in_capital_letters_is_the_same_store) {
  expect("Redis://h", {{"aof_enabled", "0"}}, "persistence", severity::warning);
}

TEST(doctor_facts, settings_without_a_judgement_are_no_all_clear) {
  expect("file:/etc/holdfast/store", {{"aof_enabled", "0"}}, "settings", severity::note);
  expect_nothing("other:here", {}, "settings");
}

TEST(doctor_facts, each_node_of_a_cluster_is_judged_separately_and_named) {
  const store::facts two{{"a:1", "aof_enabled", "1"}, {"b:2", "aof_enabled", "0"}};
  const auto found = about("persistence", judge_facts("redis+cluster://a", two));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].level, severity::ok);
  EXPECT_EQ(found[1].level, severity::warning);
  EXPECT_TRUE(found[1].message.starts_with("b:2: ")) << found[1].message;
}

TEST(doctor_facts, a_user_without_rights_sees_which_settings_are_unknown) {
  expect("redis://h", {{"denied", "INFO"}}, "settings", severity::note);
}

TEST(doctor_facts, postgres_is_judged_by_its_settings_for_disk_and_standbys) {
  expect("postgres://h", {{"fsync", "off"}}, "persistence", severity::problem);
  expect("postgres://h", {{"fsync", "on"}, {"synchronous_commit", "off"}}, "persistence",
         severity::warning);
  expect("postgres://h", {{"fsync", "on"}, {"synchronous_commit", "on"}}, "persistence",
         severity::ok);
  expect("postgres://h", {{"replicas", "1"}}, "replicas", severity::note);
  expect_nothing("postgres://h", {{"replicas", "1"}, {"synchronous_standby_names", "*"}},
                 "replicas");
  expect("postgres://h", {{"connections", "80"}, {"max_connections", "100"}}, "connections",
         severity::warning);
  expect_nothing("postgres://h", {{"connections", "79"}, {"max_connections", "100"}},
                 "connections");
  expect("postgres://h", {{"pooler", "on"}}, "pooler", severity::warning);
  expect_nothing("postgres://h?listen=auto", {{"pooler", "on"}}, "pooler");
}

TEST(doctor_facts, mariadb_is_judged_by_its_settings_for_the_disk) {
  const std::string flush = "innodb_flush_log_at_trx_commit";
  expect("mariadb://h", {{flush, "2"}}, "persistence", severity::warning);
  expect("mysql://h", {{flush, "1"}}, "persistence", severity::ok);
  expect("mariadb://h", {{"read_only", "ON"}}, "rights", severity::problem);
  expect("mariadb://h", {{"log_bin", "ON"}}, "replicas", severity::note);
  expect_nothing("mariadb://h", {{"log_bin", "ON"}, {"rpl_semi_sync_master_enabled", "ON"}},
                 "replicas");
}

TEST(doctor_facts, a_right_that_only_sweeps_need_is_a_problem_if_it_is_missing) {
  for (const std::string store : {"postgres", "mariadb"}) {
    SCOPED_TRACE(store);
    for (const std::string right : {"delete on holdfast_records", "update on holdfast_meta"}) {
      const auto found =
          about("rights", judge_facts(store + "://h", facts_of({{"missing_right", right}})));
      ASSERT_EQ(found.size(), 1U);
      EXPECT_EQ(found[0].level, severity::problem);
      EXPECT_EQ(found[0].code, exit_code::not_permitted);
      EXPECT_TRUE(found[0].message.find(right) != std::string::npos) << found[0].message;
      EXPECT_TRUE(found[0].message.find("stay in the table") != std::string::npos);
      EXPECT_TRUE(found[0].remedy.find("grant " + right) != std::string::npos) << found[0].remedy;
      const bool refuses = found[0].message.find("multi_lock") != std::string::npos;
      EXPECT_EQ(refuses, right.starts_with("delete")) << found[0].message;
    }
    expect_nothing(store + "://h", {{"max_connections", "100"}}, "rights");
  }
}

TEST(doctor_facts, other_stores_are_judged_by_the_locks_that_they_can_lose) {
  expect("sqlite:a", {{"synchronous", "off"}}, "persistence", severity::warning);
  expect("sqlite:a", {{"network", "allow"}}, "file system", severity::warning);
  expect_nothing("sqlite:a", {{"synchronous", "normal"}, {"network", "refuse"}}, "persistence");
  expect("memcached://h", {{"evictions", "on"}}, "eviction", severity::warning);
  expect("memcached://h", {{"evictions", "on"}, {"evicted", "3"}}, "eviction", severity::problem);
  expect_nothing("memcached://h", {{"evictions", "off"}, {"evicted", "0"}}, "eviction");
  expect("memcached://h", {{"version", "1.6"}}, "persistence", severity::note);
  expect("zookeeper://h", {{"session_ms", "4000"}, {"session_ms_asked", "30000"}}, "session",
         severity::warning);
  expect_nothing("zookeeper://h", {{"session_ms", "4000"}, {"session_ms_asked", "4000"}},
                 "session");
  expect("zookeeper://h", {{"server", "h:2181"}}, "version", severity::note);
  expect("etcd://h", {{"leader", "none"}}, "quorum", severity::problem);
  expect("etcds://h", {{"members_named", "1"}}, "quorum", severity::note);
  expect("etcd://h", {{"alarm", "NOSPACE"}}, "alarm", severity::problem);
}

namespace {

const std::chrono::system_clock::time_point noon{1'000'000s};

participant someone(std::chrono::nanoseconds for_so_long, const std::string& host = "here",
                    std::uint32_t pid = 1) {
  participant p;
  p.host = host;
  p.pid = pid;
  p.since = noon - std::chrono::duration_cast<std::chrono::microseconds>(for_so_long);
  p.expires_in = 20s;
  return p;
}

listed_name name_with(std::vector<participant> holders, std::vector<participant> waiters) {
  listed_name n;
  n.info.name = "job";
  n.info.kind = "mutex";
  n.info.holders = std::move(holders);
  n.info.waiters = std::move(waiters);
  return n;
}

findings judged(const std::vector<listed_name>& names) {
  return judge_names(names, {noon, 5min, "here", [](std::uint32_t pid) { return pid < 100; }});
}

}  // namespace

TEST(doctor_names, a_wait_as_long_as_the_limit_is_stuck_and_a_shorter_one_is_not) {
  expect_one(judged({name_with({someone(1h)}, {someone(5min)})}), "stuck", severity::warning);
  EXPECT_TRUE(about("stuck", judged({name_with({someone(1h)}, {someone(299s)})})).empty());
  EXPECT_TRUE(about("stuck", judged({name_with({someone(1h)}, {})})).empty());
}

TEST(doctor_names, waiters_for_leadership_a_notification_or_others_are_not_stuck) {
  for (const char* kind : {"election", "condition_variable", "latch", "barrier"}) {
    auto n = name_with({someone(100h)}, {someone(50h)});
    n.info.kind = kind;
    EXPECT_TRUE(about("stuck", judged({n})).empty()) << kind;
  }
}

TEST(doctor_names, a_holder_that_has_died_on_this_machine_left_its_lock_behind) {
  expect_one(judged({name_with({someone(1s, "here", 100)}, {})}), "leftover", severity::warning);
  for (const auto& alive :
       {someone(1s), someone(1s, "there", 100), someone(1s, "here", 0), someone(1s, "", 100)}) {
    EXPECT_TRUE(about("leftover", judged({name_with({alive}, {})})).empty());
  }
}

TEST(doctor_names, a_holder_that_the_store_sees_dead_is_a_note_and_nothing_to_do) {
  auto dead = someone(1s, "here", 100);
  dead.died = true;
  const auto found = judged({name_with({dead}, {})});
  EXPECT_TRUE(about("leftover", found).empty());
  ASSERT_EQ(about("died", found).size(), 1U);
  EXPECT_EQ(about("died", found)[0].level, severity::note);
  EXPECT_TRUE(about("died", found)[0].remedy.empty());
}

TEST(doctor_names, an_entry_that_this_user_may_not_read_is_no_damage) {
  listed_name bad;
  bad.error = "NOPERM";
  bad.not_permitted = true;
  EXPECT_EQ(about("unreadable", judged({bad}))[0].remedy, "give this user the right to read it");
}

TEST(doctor_names, an_entry_that_cannot_be_read_is_named) {
  listed_name bad;
  bad.info.name = "x\ny";
  bad.error = "the record is damaged";
  const auto found = judged({bad});
  expect_one(found, "unreadable", severity::warning);
  EXPECT_EQ(about("unreadable", found)[0].message.find('\n'), std::string::npos);
}

TEST(doctor_names, many_of_a_kind_are_counted_and_not_listed) {
  const auto found = about("stuck", judged({25, name_with({someone(1h)}, {someone(10min)})}));
  ASSERT_EQ(found.size(), 11U);
  EXPECT_EQ(found.back().message, "and 15 more");
}

}  // namespace holdfast::tool
