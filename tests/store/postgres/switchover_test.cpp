#include <thread>

#include "fixture.hpp"

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

}  // namespace
}  // namespace postgres_test
