#include <random>
#include <thread>

#include "fixture.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/hung_store.hpp"
#include "harness/seed.hpp"
#include "harness/wire_cost.hpp"
#include "store/mariadb/link.hpp"

// Faults of the server, by the server's own names, and of the network.
namespace mariadb_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using harness::relay;
using harness::way;
using holdfast::errc;

TEST_F(mariadb_store, connections_that_are_killed_cost_neither_holder_nor_waiter_anything) {
  (void)open();
  let_user();
  auto a = holdfast::open(url_of_user()), b = holdfast::open(url_of_user());
  holdfast::mutex m{a, "m"}, rival{b, "m"};
  auto held = m.acquire();
  std::uint64_t next = 0;
  std::thread waiter([&] { next = rival.acquire().fence(); });
  eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
  for (int i = 0; i < 3; ++i) ask("kill user " + user_);
  EXPECT_EQ(held.state(), holdfast::lease_state::held);
  EXPECT_FALSE(held.release());
  waiter.join();
  EXPECT_GT(next, held.fence());
}

TEST_F(mariadb_store, a_table_that_is_altered_meanwhile_costs_no_call_and_no_connection) {
  (void)open();
  let_user();
  auto s = holdfast::open(url_of_user("?connections=1"));
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  const auto connection = [&] {
    return ask(
        "select group_concat(id order by id) from information_schema.processlist where user = '" +
        user_ + "'");
  };
  const auto before = connection();
  EXPECT_FALSE(before.empty());
  for (int n = 0; n < 8; ++n) {
    if (n > 3) ask("alter table " + table("holdfast_records") + " add index (version)");
    m.lock();
    EXPECT_EQ(s.show("m").holders.size(), 1U);
    m.unlock();
  }
  EXPECT_EQ(connection(), before);
}

TEST_F(mariadb_store, a_row_locked_by_another_session_is_unavailable_and_the_error_names_the_view) {
  auto s = impatient("?command_timeout=3s");
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  const client other{port()};
  other.ask("begin; select * from " + table("holdfast_records") + " for update");
  const auto refused = outcome_of([&] { m.lock(); });
  EXPECT_EQ(refused.reason, errc::unavailable);
  EXPECT_TRUE(contains(refused.text, "innodb_trx")) << refused.text;
  const auto tried = outcome_of([&] { (void)m.try_lock(); });
  EXPECT_EQ(tried.reason, errc::unavailable);
  EXPECT_FALSE(tried.unknown) << tried.text;
  other.ask("rollback");
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

// A statement that only the client gives up may still be carried out.
TEST_F(mariadb_store, a_wait_for_a_row_ends_at_the_server_before_its_request_ends) {
  namespace my = holdfast::store::mariadb;
  const auto in = [](auto time) { return holdfast::boot_clock::now() + time; };
  auto s = open();
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  const client other{port()};
  other.ask("begin; select * from " + table("holdfast_records") + " for update");
  const my::tables names{database_};
  const auto over = std::move(*my::link::open(
      *my::read_options(*holdfast::base::parse_url(url("?command_timeout=1h"))), names));
  const std::string_view name = "m";
  const auto rows = over->read({&name, 1}, in(1h));
  ASSERT_TRUE(rows);
  const holdfast::store::sql::replacement wanted{
      .name = name, .there = true, .version = rows->front().version, .record = "[]"};
  const auto refused = over->replace({&wanted, 1}, in(8s));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(contains(refused.error().what, "1205")) << refused.error().what;
  EXPECT_TRUE(over->did_nothing());
  EXPECT_TRUE(over->usable());
  other.ask("rollback");
  EXPECT_TRUE(over->replace({&wanted, 1}, in(1h)));
}

// By default the server waits for a table for a day.
TEST_F(mariadb_store, a_table_that_stays_locked_is_unavailable_and_nothing_was_done) {
  auto s = impatient("?command_timeout=3s");
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  const client other{port()};
  other.ask("lock tables " + table("holdfast_records") + " read");
  const auto refused = outcome_of([&] { (void)m.try_lock(); });
  EXPECT_EQ(refused.reason, errc::unavailable);
  EXPECT_TRUE(contains(refused.text, "1205")) << refused.text;
  EXPECT_FALSE(refused.unknown) << refused.text;
  other.ask("unlock tables");
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

TEST_F(mariadb_store, a_user_with_one_connection_gets_an_error_when_it_is_in_use) {
  (void)open();
  let_user(" with max_user_connections 1");
  auto s = holdfast::open(url_of_user());
  const auto refused = harness::outcome_of_opening(url_of_user());
  EXPECT_EQ(refused.reason, errc::unavailable);
  EXPECT_TRUE(contains(refused.text, "max_connections")) << refused.text;
}

TEST_F(mariadb_store, a_statement_time_out_of_the_server_is_named) {
  (void)open();
  let_user(" with max_statement_time 0.2");
  auto s = holdfast::open(url_of_user());
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  const client other{port()};
  other.ask("begin; select * from " + table("holdfast_records") + " for update");
  const auto refused = outcome_of([&] { (void)m.try_lock(); });
  EXPECT_EQ(refused.reason, errc::unavailable);
  EXPECT_TRUE(contains(refused.text, "max_statement_time")) << refused.text;
  EXPECT_FALSE(refused.unknown) << refused.text;
  other.ask("rollback");
}

TEST_F(mariadb_store, one_connection_serves_a_thousand_operations_of_many_threads) {
  auto s = open("?connections=1");
  std::vector<std::thread> all;
  std::atomic<int> inside[3] = {};
  for (unsigned i = 0; i < 8; ++i) {
    all.emplace_back([&, i] {
      std::mt19937_64 random(harness::seed() + i);
      for (int n = 0; n < 125; ++n) {
        const auto which = random() % 3;
        holdfast::mutex m{s, "m" + std::to_string(which)};
        if (random() % 4 == 0) {
          if (!m.try_lock()) continue;
        } else {
          m.lock();
        }
        EXPECT_EQ(++inside[which], 1);
        --inside[which];
        m.unlock();
      }
    });
  }
  for (auto& t : all) t.join();
  EXPECT_EQ(s.names().size(), 0U);
}

TEST_F(mariadb_store, sessions_that_write_the_same_row_at_once_all_get_their_turn) {
  (void)open();
  std::vector<std::thread> all;
  for (int i = 0; i < 6; ++i) {
    all.emplace_back([&] {
      auto s = open();
      holdfast::latch l{s, "l", 120};
      for (int n = 0; n < 20; ++n) l.count_down();
    });
  }
  for (auto& t : all) t.join();
  EXPECT_EQ(ask("select count(*) from " + table("holdfast_locks") +
                " where name = 'l' and "
                "json_value(record, '$[3]') = '0'"),
            "1");
}

TEST_F(mariadb_store, logins_and_addresses_that_are_wrong_are_refused_without_the_password) {
  std::string secret = url();
  secret.replace(secret.find("admin@"), 6, "nobody:hunter2@");
  const auto refused = harness::outcome_of_opening(secret);
  EXPECT_EQ(refused.reason, errc::not_permitted);
  EXPECT_FALSE(contains(refused.text, "hunter2")) << refused.text;
  for (const char* option : {"?connections=0", "?command_timeout=x", "?tls=maybe", "?shcema=x"}) {
    EXPECT_EQ(outcome_of([&] { (void)open(option); }).reason, errc::invalid_argument) << option;
  }
  for (const char* address : {"mariadb:h/d", "mariadb://h", "mysql://h:0/d", "mysql://h,i/d"}) {
    EXPECT_EQ(harness::outcome_of_opening(address).reason, errc::invalid_argument) << address;
  }
}

TEST_F(mariadb_store, a_locked_account_and_an_expired_password_are_not_permitted) {
  (void)open();
  const std::string user = user_ + "@'%'";
  for (const auto* state : {" account lock", " account unlock password expire"}) {
    ask("alter user " + user + state);
    const auto refused = harness::outcome_of_opening(url_of_user());
    EXPECT_EQ(refused.reason, errc::not_permitted) << refused.text;
  }
}

class mariadb_network : public mariadb_store {
 protected:
  holdfast::session behind(const std::string& options = {}) {
    holdfast::session_options o;
    o.store_timeout = 60s;
    return holdfast::open(harness::mariadb_server::url_of(proxy_.port()) + database_ + options, o);
  }
  std::vector<holdfast::participant> holders() { return direct_.show("m").holders; }

  harness::fault_proxy proxy_{port()};
  holdfast::session direct_ = open();
};

TEST_F(mariadb_network, a_free_lock_costs_one_round_trip_to_acquire_and_one_to_release) {
  const auto s = behind();
  EXPECT_EQ(harness::round_trips_of_a_free_lock(proxy_, s), 2U);
}

TEST_F(mariadb_network, an_answer_cut_at_any_byte_leaves_one_grant_and_no_other) {
  auto s = behind();
  holdfast::mutex m{s, "m"}, rival{direct_, "m"};
  for (std::size_t byte = 0; byte < 200; byte += 9) {
    proxy_.with([&](relay& r) { r.cut_after(way::down, byte); });
    auto held = m.acquire();
    const auto seen = holders();
    ASSERT_EQ(seen.size(), 1U) << byte;
    EXPECT_EQ(seen[0].fence, held.fence()) << byte;
    proxy_.with([&](relay& r) { r.cut_after(way::down, byte); });
    EXPECT_FALSE(held.release()) << byte;
    EXPECT_TRUE(rival.try_acquire()) << "nobody is left behind, byte " << byte;
  }
}

// Nobody else writes the row, so every request over the network is a guess.
TEST_F(mariadb_network, a_truncated_answer_to_a_guess_does_not_count) {
  auto s = behind();
  holdfast::mutex m{s, "m"};
  std::uint64_t last = 0;
  for (std::size_t byte = 0; byte < 60; ++byte) {
    for (int n = 0; n < 2; ++n) m.lock(), m.unlock();
    proxy_.with([&](relay& r) { r.cut_after(way::down, byte); });
    auto held = m.acquire();
    EXPECT_GT(held.fence(), last) << byte;
    last = held.fence();
    const auto seen = holders();
    ASSERT_EQ(seen.size(), 1U) << byte;
    EXPECT_EQ(seen[0].fence, last) << byte;
    EXPECT_FALSE(held.release()) << byte;
    EXPECT_TRUE(holders().empty()) << byte;
  }
}

TEST_F(mariadb_network, calls_end_at_their_limit_while_the_server_hangs) {
  harness::calls_end_at_their_limit_while_it_hangs(
      harness::hang(proxy_),
      harness::mariadb_server::url_of(proxy_.port()) + database_ +
          "?connect_timeout=3600s&command_timeout=3600s",
      harness::mariadb_server::url_of(port()) + database_);
}

TEST_F(mariadb_network, tries_time_out_while_the_server_hangs) {
  for (const std::string mode : {"", "&mode=session"}) {
    SCOPED_TRACE(mode);
    harness::tries_time_out_while_it_hangs(
        harness::hang(proxy_), harness::mariadb_server::url_of(proxy_.port()) + database_ +
                                   "?command_timeout=300ms" + mode);
  }
}

TEST_F(mariadb_network, calls_for_locks_of_a_connection_end_at_their_limit_too) {
  const std::string rest = database_ + "?mode=session";
  harness::calls_end_at_their_limit_while_it_hangs(
      harness::hang(proxy_),
      harness::mariadb_server::url_of(proxy_.port()) + rest +
          "&connect_timeout=3600s&command_timeout=3600s",
      harness::mariadb_server::url_of(port()) + rest);
}

// Otherwise the request would last for both time-outs together.
TEST_F(mariadb_network, a_connection_is_not_awaited_by_a_request_without_enough_time) {
  namespace my = holdfast::store::mariadb;
  auto o = *my::read_options(*holdfast::base::parse_url(
      harness::mariadb_server::url_of(proxy_.port()) + database_ + "?connect_timeout=9s"));
  const my::tables names{database_};
  proxy_.with([](relay& r) { r.stall(way::down); });
  const auto refused = my::link::open(o, names, holdfast::boot_clock::now() + 1500ms);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::timed_out) << "of a longer attempt this says nothing";
  EXPECT_TRUE(contains(refused.error().what, "in the 1 s that were left")) << refused.error().what;
  proxy_.heal();
  EXPECT_TRUE(my::link::open(o, names, holdfast::boot_clock::now() + 1h));
}

// The limits of the client library restart with each statement, and with each piece of an answer.
TEST_F(mariadb_network, an_answer_is_awaited_until_the_deadline_of_its_request) {
  namespace my = holdfast::store::mariadb;
  const auto in = [](auto time) { return holdfast::boot_clock::now() + time; };
  const auto o = *my::read_options(*holdfast::base::parse_url(
      harness::mariadb_server::url_of(proxy_.port()) + database_ + "?command_timeout=3600s"));
  const my::tables names{database_};
  const std::string_view name = "m";
  const holdfast::store::sql::replacement guess{
      .name = name, .there = true, .version = 1, .record = "[]", .assumed_now = 1};
  for (const bool prepared : {false, true}) {
    const auto over = std::move(*my::link::open(o, names));
    for (int i = 0; prepared && i < 2; ++i) EXPECT_TRUE(over->replace({&guess, 1}, in(1h)));
    // The statement sets the server's time-out for locks, in text. Then it is used again.
    if (prepared) EXPECT_TRUE(over->replace({&guess, 1}, in(2600ms)));
    EXPECT_TRUE(over->read({&name, 1}, in(1h)));
    proxy_.with([](relay& r) { r.stall(way::down); });
    const auto why = prepared ? over->replace({&guess, 1}, in(100ms)).error()
                              : over->read({&name, 1}, in(100ms)).error();
    EXPECT_EQ(why.code, errc::unavailable);
    EXPECT_TRUE(contains(why.what, "did not answer")) << why.what;
    EXPECT_FALSE(over->usable());
    EXPECT_FALSE(over->did_nothing());
    proxy_.heal();
  }
}

// The request needs a connection that is there already: a time-out before that would cost it.
TEST_F(mariadb_network, a_commit_whose_answer_never_comes_has_an_unknown_outcome) {
  auto s = behind("?command_timeout=2s");
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  proxy_.with([](relay& r) { r.stall(way::down); });
  const auto tried = outcome_of([&] { (void)m.try_lock(); });
  EXPECT_EQ(tried.reason, errc::unavailable);
  EXPECT_TRUE(tried.unknown) << tried.text;
  EXPECT_TRUE(contains(tried.text, "did not answer in command_timeout")) << tried.text;
  proxy_.heal();
  eventually("what it may have got to be given back", [&] { return holders().empty(); });
}

}  // namespace
}  // namespace mariadb_test
