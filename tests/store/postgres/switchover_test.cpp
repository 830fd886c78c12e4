#include <atomic>
#include <functional>
#include <thread>

#include "fixture.hpp"
#include "harness/fault_proxy.hpp"

// A primary that has become read only, while another server takes over: no request may continue to
// use it.
namespace postgres_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using harness::postgres_server;
using holdfast::errc;
using holdfast::lease_state;

class postgres_switchover : public testing::Test {
 protected:
  /// The URL with a list of hosts.
  std::string both(const std::string& options = {}) const {
    return "postgres://postgres@127.0.0.1:" + std::to_string(old_.port()) +
           ",127.0.0.1:" + std::to_string(now_.port()) +
           "/postgres?target_session_attrs=read-write" + options;
  }
  static void only_read(const postgres_server& server, bool so = true) {
    const std::string wanted = so ? "on" : "off";
    client(server.url()).ask("alter system set default_transaction_read_only = " + wanted);
    server.reload();
    eventually("the setting to count", [&] {
      return client(server.url()).ask("show default_transaction_read_only") == wanted;
    });
  }
  static holdfast::session opened(const std::string& url, std::chrono::milliseconds patience) {
    holdfast::session_options o;
    o.store_timeout = patience;
    return holdfast::open(url, o);
  }

  postgres_server old_, now_;
};

TEST_F(postgres_switchover, locks_of_sessions_and_rows_are_at_the_new_primary_afterwards) {
  auto s = opened(both("&mode=session&session=3s"), 60s);
  auto idle = opened(both("&mode=session&session=3600s"), 60s), rows = opened(both(), 60s);
  holdfast::mutex m{s, "m"}, other{idle, "other"}, row{rows, "row"};
  row.lock(), row.unlock();
  auto at_home = holdfast::open(now_.url());
  const auto held = m.acquire();
  only_read(old_);
  EXPECT_TRUE(other.try_lock()) << "the connection of all leads to the new primary now";
  EXPECT_EQ(client(now_.url()).ask("select count(*) from pg_locks where locktype = 'advisory'"),
            "1");
  eventually("the loss to be told", [&] { return held.state() == lease_state::lost; });
  EXPECT_TRUE(row.try_lock());
  EXPECT_EQ(at_home.show("row").holders.size(), 1U);
}

TEST_F(postgres_switchover, a_wait_continues_while_no_host_of_a_list_accepts_writes) {
  (void)holdfast::open(now_.url());  // as if the tables had been replicated
  auto s = opened(both("&listen=never"), 60s);
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  only_read(old_);
  only_read(now_);
  EXPECT_EQ(harness::outcome_of_opening(old_.url("?mode=session")).reason, errc::read_only);
  EXPECT_EQ(harness::outcome_of([&] { (void)opened(both(), 100ms); }).reason, errc::unavailable);
  const auto refused = outcome_of([&] { (void)m.try_lock(); });
  EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
  EXPECT_FALSE(refused.unknown) << refused.text;
  bool got = false;
  std::thread waiter([&] { got = m.try_lock_for(60s); });
  only_read(now_, false);
  waiter.join();
  EXPECT_TRUE(got);
}

// As under SIGSTOP, or behind a firewall that drops packets: the server neither refuses nor
// answers.
TEST_F(postgres_switchover, a_host_of_a_list_that_is_silent_is_passed_over) {
  old_.stop();
  for (const std::string mode : {"", "&mode=session"}) {
    SCOPED_TRACE(mode);
    const auto refused = outcome_of([&] {
      auto s = opened(both("&connect_timeout=2s" + mode), 60s);
      EXPECT_TRUE(holdfast::mutex(s, "m").try_lock());
    });
    EXPECT_FALSE(refused.failed) << refused.text;
  }
  old_.resume();
}

// An hour to connect: a wait for the silent host first would show.
TEST_F(postgres_switchover, a_connection_is_tried_first_at_the_host_that_answered_last) {
  only_read(old_);
  auto s = opened(both("&connect_timeout=3600s"), 60s);
  holdfast::mutex m{s, "m"};
  old_.stop();
  client(now_.url())
      .ask(
          "select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = "
          "'holdfast'");
  EXPECT_FALSE(outcome_of([&] { m.lock(), m.unlock(); }).failed);
  old_.resume();
}

// A load balancer that leads new connections to the promoted standby, and leaves the present ones
// at the former primary, which continues to write (HAProxy does so by default). Both servers count
// the versions of a row from the same number, so a guess could remove the hold of another session.
TEST(postgres_split, a_session_with_a_connection_to_the_new_primary_leaves_the_former_one) {
  const postgres_server old;
  harness::fault_proxy address(old.port());
  auto s = holdfast::open(postgres_server::url_of(address.port(), "?connections=2&listen=never"));
  holdfast::mutex m{s, "m"}, busy{s, "busy"}, also{s, "also"};
  for (holdfast::mutex* const one : {&m, &busy, &also}) one->lock(), one->unlock();
  const postgres_server now(old, {});
  client(now.url()).ask("select pg_promote()");
  address.with(
      [&](harness::relay& r) { r.lead_to({"127.0.0.1", static_cast<std::uint16_t>(now.port())}); });
  auto there = holdfast::open(now.url());
  holdfast::mutex of_another{there, "m"};
  const auto held = of_another.acquire();

  const client other(old.url());
  other.ask("begin; select 1 from holdfast_records where name = 'busy' for update");
  std::thread blocked([&] { (void)outcome_of([&] { (void)busy.try_lock(); }); });
  eventually("the connection to the former primary to be in use", [&] {
    return client(old.url()).ask("select count(*) from pg_locks where not granted") != "0";
  });
  EXPECT_TRUE(also.try_lock()) << "over a new connection";
  other.ask("rollback");
  blocked.join();
  EXPECT_FALSE(m.try_lock());
  EXPECT_EQ(there.show("also").holders.size(), 1U);
  EXPECT_EQ(held.state(), lease_state::held);
}

// The former primary has lost its synchronous standby, which was promoted. It has committed the
// grant on its own disk, and shows it to everybody once the wait for the standby has ended.
class postgres_standby : public testing::TestWithParam<std::string> {};

TEST_P(postgres_standby, that_lacks_a_grant_keeps_it_from_counting_although_the_wait_was_ended) {
  postgres_server old;
  const postgres_server now(old, {});
  const client admin(old.url());
  admin.ask("alter system set synchronous_standby_names = '*'");
  old.reload();
  eventually("the standby to count", [&] {
    return admin.ask("select count(*) from pg_stat_replication where sync_state = 'sync'") == "1";
  });
  admin.ask("alter role postgres set client_min_messages = error");
  holdfast::session_options impatient;
  impatient.store_timeout = 1s;
  auto s = holdfast::open(old.url("?command_timeout=1s&listen=never"), impatient);
  holdfast::mutex m{s, "m"}, x{s, "x"}, y{s, "y"};
  holdfast::multi_lock all{x, y};
  m.lock(), m.unlock();
  client(now.url()).ask("select pg_promote()");
  for (const auto& attempt : {std::function<bool()>([&] { return m.try_lock(); }),
                              std::function<bool()>([&] { return all.try_lock(); })}) {
    std::atomic<bool> ends{false};
    std::thread operators([&] {
      while (!ends) {
        admin.ask("select " + GetParam() +
                  "(pid), pg_sleep(0.01) from pg_stat_activity where wait_event = 'SyncRep'");
      }
    });
    bool got = false;
    const auto failed = outcome_of([&] { got = attempt(); });
    ends = true;
    operators.join();
    EXPECT_FALSE(got);
    EXPECT_EQ(failed.reason, errc::unavailable) << failed.text;
    EXPECT_TRUE(failed.unknown) << failed.text;
  }
  auto there = holdfast::open(now.url());
  EXPECT_TRUE(holdfast::mutex(there, "m").try_lock());
  old.kill();
}

INSTANTIATE_TEST_SUITE_P(by, postgres_standby,
                         testing::Values("pg_cancel_backend", "pg_terminate_backend"),
                         [](const auto& of) { return of.param; });

}  // namespace
}  // namespace postgres_test
