#include <thread>

#include "fixture.hpp"
#include "harness/concurrently.hpp"
#include "harness/keepalive.hpp"
#include "store/mariadb/user_lock.hpp"
#include "store/sql/command_line_rules.hpp"

// mode=session: the special properties of GET_LOCK. The rest is in the conformance suite.
namespace mariadb_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using holdfast::errc;
using holdfast::lease_state;

class mariadb_session : public mariadb_store {
 protected:
  holdfast::session open(const std::string& options = {}) const {
    return mariadb_store::open("?mode=session" + options);
  }
  std::unique_ptr<holdfast::store::sql::lock_link> link(const std::string& options = {}) const {
    const auto o = *holdfast::store::mariadb::read_options(
        *holdfast::base::parse_url(url("?mode=session" + options)));
    return std::move(*holdfast::store::mariadb::user_lock_link::open(o, names_));
  }
  const holdfast::store::mariadb::tables names_{database_};

  /// Ends the idle connection of this test's user.
  void end_idle_connection() const {
    std::string id;
    eventually("the connection to be idle", [&] {
      id =
          ask("select id from information_schema.processlist where command = 'Sleep' and user = '" +
              user_ + "'");
      return !id.empty();
    });
    ask("kill " + id);
  }
  /// The connection that holds the lock of a name.
  std::string holder(const std::string& name) const {
    return ask("select is_used_lock(sha2('" + database_ + "." + name + "', 256))");
  }
};

TEST_F(mariadb_session, the_end_of_a_connection_frees_its_locks_and_is_reported_in_time) {
  auto a = open("&session=3s"), b = open();
  holdfast::mutex m{a, "m"}, rival{b, "m"};
  auto held = m.acquire();
  ask("kill " + holder("m"));
  const auto next = rival.acquire();
  EXPECT_GT(next.fence(), held.fence());
  eventually("the loss to be told", [&] { return held.state() == lease_state::lost; });
  EXPECT_EQ(held.release(), make_error_code(errc::lost));
  EXPECT_TRUE(holdfast::mutex(a, "other").try_lock()) << "over a new connection";
}

// The effect of a closed connection on the real server; the fakes of tests/store/sql cover the
// rest.
TEST_F(mariadb_session, a_closed_connection_frees_its_locks) {
  const auto over = link();
  ASSERT_TRUE(*over->try_lock("m", holdfast::store::sql::lock_mode::exclusive));
  EXPECT_EQ(holder("m"), std::to_string(over->id()));
  over->drop();
  EXPECT_FALSE(over->usable());
  eventually("the lock to be free", [&] { return holder("m").empty(); });
}

TEST_F(mariadb_session, names_that_differ_only_beyond_64_bytes_or_in_case_are_two_locks) {
  auto a = open(), b = open();
  const std::string common(200, 'n');
  for (const auto& [one, other] :
       {std::pair{common + "1", common + "2"}, std::pair<std::string, std::string>{"m", "M"}}) {
    holdfast::mutex first{a, one}, second{b, other};
    const auto held = first.acquire();
    EXPECT_TRUE(second.try_lock()) << other;
  }
}

TEST_F(mariadb_session, a_waiter_whose_connection_ends_waits_again) {
  auto a = open(), b = open();
  holdfast::mutex first{a, "m"}, second{b, "m"};
  auto held = first.acquire();
  auto waiter = harness::concurrently([&] { return second.acquire().fence(); });
  std::string id;
  eventually("a waiting connection", [&] {
    id =
        ask("select id from information_schema.processlist where state = 'User lock' and info "
            "like concat('%', hex('" +
            database_ + ".m'), '%')");
    return !id.empty();
  });
  ask("kill " + id);
  EXPECT_FALSE(held.release());
  EXPECT_GT(waiter.get(), 0u);
}

TEST_F(mariadb_session, time_outs_that_the_user_has_end_nothing) {
  (void)mariadb_store::open();  // creates the database, to which this user gets rights
  let_user(" with max_statement_time 0.1");
  auto a = holdfast::open(url_of_user("?mode=session")), b = open();
  holdfast::mutex m{a, "m"}, rival{b, "m"};
  auto held = rival.acquire();
  std::thread waiter([&] { m.lock(), m.unlock(); });
  eventually("a waiter", [&] { return b.show("m").waiters.size() == 1; });
  EXPECT_FALSE(rival.try_lock_for(250ms)) << "longer than that";
  eventually("the waiter alone", [&] { return b.show("m").waiters.size() == 1; });
  EXPECT_FALSE(held.release());
  waiter.join();
}

TEST_F(mariadb_session, an_abandoned_wait_leaves_no_queue_entry) {
  auto a = open(), b = open();
  holdfast::mutex first{a, "m"}, second{b, "m"};
  const auto held = first.acquire();
  EXPECT_FALSE(second.try_lock_for(20ms));
  eventually("its place is given up", [&] { return a.show("m").waiters.empty(); });
}

// An hour: a wait for an answer that cannot come would show.
TEST_F(mariadb_session, a_wait_can_be_abandoned_when_the_shared_connection_has_ended) {
  auto a = open(), b = holdfast::open(url_of_user("?mode=session&command_timeout=3600s"));
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

TEST_F(mariadb_session, show_uses_a_new_connection_when_the_old_one_has_ended) {
  auto s = holdfast::open(url_of_user("?mode=session"));
  end_idle_connection();
  EXPECT_EQ(s.show("m").holders.size(), 0U);
}

TEST_F(mariadb_session, a_connection_whose_server_vanished_silently_breaks_in_time) {
  // A hold counts for a third of the session.
  harness::expect_keepalive(link("&session=12s")->fd(), 2s, 1s, 4s);
}

TEST_F(mariadb_session, a_waiter_that_gets_no_connection_polls_again) {
  auto a = open(), b = open("&connections=1");
  holdfast::mutex first{a, "m"}, second{b, "m"};
  auto held = first.acquire();
  std::uint64_t got = 0;
  std::thread waiter([&] { got = second.acquire().fence(); });
  eventually("it waits without a place", [&] { return b.show("m").waiters.size() == 1; });
  EXPECT_EQ(a.show("m").waiters.size(), 0u);
  EXPECT_FALSE(held.release());
  waiter.join();
  EXPECT_GT(got, 0u);
}

TEST_F(mariadb_session, an_unsupported_call_is_refused_with_the_reason) {
  auto s = open();
  for (const auto& refused : {outcome_of([&] { holdfast::fair_mutex(s, "f"); }),
                              outcome_of([&] { holdfast::shared_mutex(s, "r"); }),
                              outcome_of([&] { holdfast::semaphore(s, "s", 2); }),
                              outcome_of([&] { holdfast::latch(s, "l", 2); })}) {
    EXPECT_EQ(refused.reason, errc::unsupported) << refused.text;
  }
}

#ifdef HOLDFAST_TOOL
TEST_F(mariadb_session, the_command_line_shows_a_lock_of_another_session_and_keeps_it) {
  sql_test::command_line_leaves_the_lock_of_another_session(url("?mode=session"));
}
#endif

}  // namespace
}  // namespace mariadb_test
