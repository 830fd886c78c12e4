#include <mutex>
#include <thread>
#include <vector>

#include "fixture.hpp"
#include "harness/opened_late.hpp"
#include "harness/redis_server.hpp"
#include "store/mariadb/user_lock.hpp"

// Tests that need a server of their own: crashes, clocks, and configuration.
namespace mariadb_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using harness::mariadb_server;
using holdfast::errc;
using holdfast::lease_state;

holdfast::session patient(const mariadb_server& server, const std::string& options = {}) {
  holdfast::session_options o;
  o.store_timeout = 10min;
  return holdfast::open(server.url() + "locks" + options, o);
}

/// By this value, the locks of connections distinguish two lives of the server.
std::string life_of(const mariadb_server& server) {
  const auto o = *holdfast::store::mariadb::read_options(
      *holdfast::base::parse_url(server.url() + "locks?mode=session"));
  const holdfast::store::mariadb::tables names{o.database};
  return (*holdfast::store::mariadb::user_lock_link::open(o, names))->life_of_server();
}

void await_use(const holdfast::session& s) {
  eventually("the server to be used again",
             [&] { return !outcome_of([&] { (void)s.show("m"); }).failed; });
}

TEST(mariadb_server_faults, a_server_that_crashes_and_comes_back_keeps_holder_and_waiter) {
  mariadb_server server;
  auto a = patient(server), b = patient(server), c = patient(server, "?mode=session&session=3s");
  holdfast::mutex first{a, "m", {.lease = 10min}}, second{b, "m"}, of_connection{c, "m"};
  auto held = first.acquire();
  const auto held_by_connection = of_connection.acquire();
  std::uint64_t next = 0;
  std::thread waiter([&] { next = second.acquire().fence(); });
  eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
  const auto life = life_of(server);
  server.shift_clock(2s);
  EXPECT_EQ(life_of(server), life) << "whatever its clock says";
  server.kill();
  EXPECT_EQ(outcome_of([&] { (void)a.show("m"); }).reason, errc::unavailable);
  const auto late = harness::opened_before([&] { server.start(); }, server.url() + "locks");
  await_use(a);
  EXPECT_NE(life_of(server), life) << "a connection's number is another one's now";
  EXPECT_EQ(held.state(), lease_state::held);
  EXPECT_FALSE(held.release());
  waiter.join();
  EXPECT_GT(next, held.fence());
  eventually("what went with its connection to be told",
             [&] { return held_by_connection.state() == lease_state::lost; });
}

TEST(mariadb_server_faults, fences_keep_their_order_when_clocks_are_set_and_read_only_is_named) {
  mariadb_server server;
  auto a = patient(server), b = patient(server);
  holdfast::mutex m{a, "m"}, rival{b, "m"};
  auto held = m.acquire();
  server.shift_clock(-1h);
  EXPECT_FALSE(rival.try_acquire()) << "set back under a holder: it keeps the lock";
  EXPECT_FALSE(held.release());
  auto next = rival.acquire();
  EXPECT_GT(next.fence(), held.fence());
  server.shift_clock(1h);
  auto third = m.try_acquire();
  ASSERT_TRUE(third) << "set forward, leases end";
  EXPECT_GT(third->fence(), next.fence());
  EXPECT_FALSE(third->release());

  const client admin{server.port()};
  admin.ask(
      "create user app@'%'; grant select, insert, update, delete on locks.* to app@'%'; "
      "set global read_only = on");
  std::string as_app = server.url() + "locks";
  as_app.replace(as_app.find("admin"), 5, "app");
  auto s = holdfast::open(as_app);
  holdfast::mutex other{s, "m"};
  EXPECT_EQ(outcome_of([&] { (void)other.try_lock(); }).reason, errc::read_only);
}

TEST(mariadb_server_faults,
     isolation_levels_idle_time_outs_and_no_prepared_statements_change_nothing) {
  mariadb_server server({"--transaction-isolation=SERIALIZABLE", "--autocommit=0"});
  int counter = 0;
  std::vector<std::jthread> all;
  for (int i = 0; i < 3; ++i) {
    all.emplace_back([&] {
      auto s = patient(server);
      holdfast::mutex m{s, "m"};
      for (int n = 0; n < 10; ++n) {
        const std::lock_guard guard{m};
        ++counter;
      }
    });
  }
  all.clear();
  EXPECT_EQ(counter, 30);

  const client admin{server.port()};
  admin.ask("set global max_prepared_stmt_count = 0");
  const auto executed = [&] {
    return std::stoi(
        admin.ask("select variable_value from information_schema.global_status where "
                  "variable_name = 'com_stmt_execute'"));
  };
  const auto before = executed();
  {
    auto s = patient(server);
    holdfast::mutex m{s, "m"};
    for (int n = 0; n < 4; ++n) m.lock(), m.unlock();
    EXPECT_EQ(executed(), before) << "not prepared, it goes as text";
    admin.ask("set global max_prepared_stmt_count = 1000");
    auto prepares = patient(server);
    holdfast::mutex same{prepares, "m"};
    for (int n = 0; n < 4; ++n) same.lock(), same.unlock();
    EXPECT_GT(executed(), before);
  }
  admin.ask("set global wait_timeout = 1");
  auto s = patient(server);
  holdfast::mutex m{s, "m"};
  EXPECT_TRUE(m.try_lock());
  eventually("no connection", [&] {
    return admin.ask(
               "select count(*) from information_schema.processlist where user = 'admin' and id "
               "<> connection_id()") == "0";
  });
  m.unlock();
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

// With connections=1 the lock is taken over the connection that has just committed.
TEST(mariadb_server_faults, what_follows_a_commit_is_committed_although_the_server_chains_them) {
  const mariadb_server server({"--completion-type=CHAIN"});
  const client admin{server.port()};
  auto s = holdfast::open(server.url() + "locks?connections=1");
  holdfast::mutex one{s, "one"}, other{s, "other"};
  (void)holdfast::multi_lock{one, other}.acquire();  // a transaction
  const auto held = one.acquire();
  EXPECT_EQ(admin.ask("select count(*) from locks.holdfast_locks where name = 'one'"), "1")
      << "not in a transaction that is still open";
}

TEST(mariadb_server_faults, limits_for_careless_users_leave_no_rows_and_hide_no_names) {
  const mariadb_server server;
  const client admin{server.port()};
  admin.ask(
      "set global sql_safe_updates = 1; set global sql_select_limit = 1; set global max_join_size "
      "= 1; set global sql_big_selects = 0");
  {
    auto s = patient(server);
    holdfast::mutex one{s, "one"}, other{s, "other"};
    const auto first = one.acquire(), second = other.acquire();
    EXPECT_EQ(s.names().size(), 2);
  }
  EXPECT_EQ(admin.ask("select count(*) from locks.holdfast_records"), "0");
}

TEST(mariadb_server_faults, a_binary_log_of_statements_is_refused_with_the_reason) {
  const mariadb_server server({"--log-bin", "--binlog-format=STATEMENT"});
  const auto refused = harness::outcome_of_opening(server.url() + "locks");
  EXPECT_EQ(refused.reason, errc::unsupported) << refused.text;
  EXPECT_TRUE(contains(refused.text, "binlog_format")) << refused.text;
  const client admin{server.port()};
  admin.ask("set global binlog_format = MIXED");
  auto s = patient(server);
  admin.ask("set global binlog_format = STATEMENT");
  holdfast::mutex m{s, "m"};
  EXPECT_TRUE(m.try_lock()) << "its connection has the format of before";
  m.unlock();
  auto late = patient(server);
  holdfast::mutex other{late, "other"};
  EXPECT_EQ(outcome_of([&] { (void)other.try_lock(); }).reason, errc::unsupported);
}

TEST(mariadb_server_faults, a_node_of_galera_is_refused_with_the_reason) {
  const mariadb_server node(
      {"--wsrep-on=ON", "--wsrep-cluster-address=gcomm://",
       "--wsrep-provider=/usr/lib/galera/libgalera_smm.so",
       "--wsrep-node-address=127.0.0.1:" + std::to_string(harness::free_port()),
       "--binlog-format=ROW"});
  for (const std::string options : {"", "?mode=session"}) {
    eventually("the node to be one", [&] {
      return harness::outcome_of_opening(node.url() + "locks" + options).reason ==
             errc::unsupported;
    });
  }
}

}  // namespace
}  // namespace mariadb_test
