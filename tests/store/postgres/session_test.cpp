#include <thread>

#include "fixture.hpp"
#include "harness/caught_signals.hpp"
#include "harness/keepalive.hpp"
#include "store/postgres/advisory.hpp"
#include "store/sql/command_line_rules.hpp"

// mode=session: the special properties of advisory locks. The rest is in the conformance suite.
namespace postgres_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using holdfast::errc;
using holdfast::lease_state;

class postgres_session : public postgres_store {
 protected:
  holdfast::session open(const std::string& options = {}) const {
    return postgres_store::open("&mode=session" + options);
  }
  /// The server process that holds the lock of a name.
  std::string holder(const std::string& name) const {
    return ask(
        "select pid from pg_locks where locktype = 'advisory' and granted and "
        "(classid::bigint << 32 | objid::bigint) = ('x' || left(encode(sha256('" +
        schema_ + "." + name + "'), 'hex'), 16))::bit(64)::bigint");
  }
  std::unique_ptr<holdfast::store::sql::lock_link> link(const std::string& options = {}) const {
    const auto o = *holdfast::store::postgres::read_options(
        *holdfast::base::parse_url(url("&mode=session" + options)));
    return std::move(*holdfast::store::postgres::advisory_link::open(o));
  }
  /// As the test's user, whose connection end_idle_connection() finds.
  holdfast::session open_as_user(const std::string& options = {}) const {
    return holdfast::open(url_of_user("&mode=session" + options));
  }
  void end_idle_connection() const {
    std::string pid;
    eventually("the connection to be idle", [&] {
      pid = ask("select pid from pg_stat_activity where state = 'idle' and usename = '" + user_ +
                "'");
      return !pid.empty();
    });
    end_connection(pid);
  }
  void end_connection(const std::string& pid) const {
    EXPECT_EQ(ask("select pg_terminate_backend(" + pid + ", 5000)"), "t");
  }
};

TEST_F(postgres_session, the_end_of_a_connection_frees_its_locks_and_is_reported_in_time) {
  auto a = open("&session=3s"), b = open();
  holdfast::mutex m{a, "m"}, rival{b, "m"};
  auto held = m.acquire();
  end_connection(holder("m"));
  const auto next = rival.acquire();
  EXPECT_GT(next.fence(), held.fence());
  eventually("the loss to be told", [&] { return held.state() == lease_state::lost; });
  EXPECT_EQ(held.release(), make_error_code(errc::lost));
  EXPECT_EQ(holder("m").empty(), false) << "the new holder's";
  EXPECT_TRUE(holdfast::mutex(a, "other").try_lock()) << "over a new connection";
}

TEST_F(postgres_session, a_waiter_whose_connection_ends_waits_again) {
  auto a = open(), b = open();
  holdfast::mutex first{a, "m"}, second{b, "m"};
  auto held = first.acquire();
  std::uint64_t got = 0;
  std::thread waiter([&] { got = second.acquire().fence(); });
  eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
  end_connection(
      ask("select pid from pg_locks where locktype = 'advisory' and not granted and "
          "objid = (select objid from pg_locks where locktype = 'advisory' and granted "
          "and pid = " +
          holder("m") + " limit 1)"));
  EXPECT_FALSE(held.release());
  waiter.join();
  EXPECT_GT(got, 0u);
}

TEST_F(postgres_session, the_end_of_a_lock_of_another_session_is_unknown) {
  auto a = open(), b = open();
  const auto held = holdfast::mutex(a, "m").acquire();
  EXPECT_FALSE(b.show("m").holders.at(0).expires_in);
  EXPECT_LE(a.show("m").holders.at(0).expires_in.value(), 1h);
}

TEST_F(postgres_session, an_abandoned_wait_leaves_no_queue_entry) {
  auto a = open(), b = open();
  holdfast::mutex first{a, "m"}, second{b, "m"};
  const auto held = first.acquire();
  EXPECT_FALSE(second.try_lock_for(20ms));
  eventually("its place is given up", [&] { return a.show("m").waiters.empty(); });
}

// An hour: a wait for an answer that cannot come would show.
TEST_F(postgres_session, a_wait_can_be_abandoned_when_the_shared_connection_has_ended) {
  auto a = open(), b = open_as_user("&command_timeout=3600s");
  holdfast::mutex first{a, "m"}, second{b, "m"}, other{b, "other"};
  const auto held = first.acquire();
  std::stop_source enough;
  std::thread waiter([&] {
    const auto ended = outcome_of([&] { (void)second.acquire(enough.get_token()); });
    EXPECT_EQ(ended.reason, errc::cancelled) << ended.text;
  });
  eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
  end_idle_connection();
  enough.request_stop();
  waiter.join();
  EXPECT_TRUE(other.try_lock());
  eventually("its place is given up", [&] { return a.show("m").waiters.empty(); });
}

TEST_F(postgres_session, show_uses_a_new_connection_when_the_old_one_has_ended) {
  auto s = open_as_user();
  end_idle_connection();
  EXPECT_EQ(s.show("m").holders.size(), 0U);
}

TEST_F(postgres_session, a_connection_whose_server_vanished_silently_breaks_in_time) {
  // A hold counts for a third of the session.
  harness::expect_keepalive(link("&session=12s")->fd(), 2s, 1s, 4s);
}

// Such as a profiler, or a program that counts its children.
TEST_F(postgres_session, a_caught_signal_ends_no_connection) {
  auto s = open();
  const auto held = holdfast::mutex(s, "a").acquire();
  holdfast::mutex other{s, "b"};
  const harness::caught_signals meanwhile;
  while (meanwhile.count() < 300 && !HasFailure()) {
    EXPECT_NO_THROW({ EXPECT_TRUE(other.try_lock()); });
    EXPECT_NO_THROW(other.unlock());
  }
  EXPECT_EQ(held.state(), lease_state::held);
}

TEST_F(postgres_session, time_outs_that_the_user_has_set_end_nothing) {
  (void)postgres_store::open();  // creates the tables, to which this user gets rights
  let_user_with("set idle_session_timeout = '200ms'");
  let_user_with("set lock_timeout = '10ms'");
  let_user_with("set statement_timeout = '100ms'");
  auto a = holdfast::open(url_of_user("&mode=session")), b = open();
  holdfast::mutex m{a, "m"}, rival{b, "m"};
  auto held = rival.acquire();
  std::thread waiter([&] { m.lock(); });
  eventually("a waiter", [&] { return b.show("m").waiters.size() == 1; });
  EXPECT_FALSE(rival.try_lock_for(250ms)) << "longer than all of them";
  eventually("the waiter alone", [&] { return b.show("m").waiters.size() == 1; });
  EXPECT_FALSE(held.release());
  waiter.join();
}

TEST_F(postgres_session, shared_locks_of_two_sessions_are_the_server_s) {
  auto a = open(), b = open();
  holdfast::shared_mutex m{a, "m"}, rival{b, "m"};
  auto first = m.acquire_shared();
  auto second = rival.try_acquire_shared();
  ASSERT_TRUE(second);
  EXPECT_FALSE(m.try_upgrade(first));
  second.reset();
  EXPECT_TRUE(m.try_upgrade(first));
  EXPECT_FALSE(rival.try_acquire_shared());
}

TEST_F(postgres_session, an_unsupported_call_is_refused_with_the_reason) {
  auto s = open();
  for (const auto& refused : {outcome_of([&] { holdfast::fair_mutex(s, "f"); }),
                              outcome_of([&] { holdfast::semaphore(s, "s", 2); }),
                              outcome_of([&] { holdfast::latch(s, "l", 2); }),
                              outcome_of([&] { (void)postgres_store::open("&mode=other"); })}) {
    EXPECT_TRUE(refused.reason == errc::unsupported || refused.reason == errc::invalid_argument)
        << refused.text;
  }
}

// The effect of a closed connection on the real server; the fakes of tests/store/sql cover the
// rest.
TEST_F(postgres_session, a_closed_connection_frees_its_locks) {
  const auto over = link();
  ASSERT_TRUE(*over->try_lock("m", holdfast::store::sql::lock_mode::exclusive));
  EXPECT_EQ(holder("m"), std::to_string(over->id()));
  over->drop();
  EXPECT_FALSE(over->usable());
  eventually("the lock to be free", [&] { return holder("m").empty(); });
}

TEST(postgres_session_pooler, a_pooler_in_between_is_seen_and_refused) {
  const harness::postgres_server server;
  const harness::pgbouncer pooler(server);
  const auto refused = harness::outcome_of_opening(pooler.url("?mode=session"));
  EXPECT_EQ(refused.reason, errc::unsupported);
  EXPECT_TRUE(contains(refused.text, "mode=lease")) << refused.text;
}

#ifdef HOLDFAST_TOOL
TEST_F(postgres_session, the_command_line_shows_a_lock_of_another_session_and_keeps_it) {
  sql_test::command_line_leaves_the_lock_of_another_session(url("&mode=session"));
}

TEST_F(postgres_session, the_command_line_sees_that_another_session_shares_a_lock) {
  auto elsewhere = open();
  holdfast::shared_mutex reads{elsewhere, "m"};
  const auto held = reads.acquire_shared();
  const harness::command_line tool(url("&mode=session"));
  EXPECT_EQ(tool({"try", "m", "-s"}).code, 0);
  EXPECT_EQ(tool({"try", "m", "-x"}).code, 75);
  EXPECT_NE(tool({"show", "m"}).out.find("m: shared_mutex"), std::string::npos);
}
#endif

}  // namespace
}  // namespace postgres_test
