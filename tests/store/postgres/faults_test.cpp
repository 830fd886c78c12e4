#include <random>
#include <thread>

#include "fixture.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/forwarding_clock.hpp"
#include "harness/hung_store.hpp"
#include "harness/seed.hpp"
#include "harness/threads_at_rest.hpp"
#include "harness/wire_cost.hpp"
#include "session/session_impl.hpp"
#include "store/postgres/listener.hpp"
#include "store/postgres/opening.hpp"
#include "store/postgres/postgres.hpp"
#include "store/sql/notification_text.hpp"
#include "store/sql/own_notifications.hpp"

// Faults of the server, by the server's own names, and of the network.
namespace postgres_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using harness::relay;
using harness::way;
using holdfast::errc;

/// One lock with a holder and a waiter.
class couple {
 public:
  couple(holdfast::session a, holdfast::session b) : holder_(a, "m"), waiter_(b, "m"), a_(a) {
    held_ = holder_.acquire();
    thread_ = std::thread([this] {
      auto got = waiter_.acquire();
      next_fence_ = got.fence();
    });
    eventually("a waiter", [&] { return a_.show("m").waiters.size() == 1; });
  }
  ~couple() {
    if (thread_.joinable()) held_ = {}, thread_.join();
  }
  void check_held() const { EXPECT_EQ(held_.state(), holdfast::lease_state::held); }
  void hand_over() {
    EXPECT_FALSE(held_.release());
    thread_.join();
    EXPECT_GT(next_fence_, held_.fence());
  }

 private:
  holdfast::mutex holder_, waiter_;
  holdfast::session a_;
  holdfast::lease held_;
  std::uint64_t next_fence_ = 0;
  std::thread thread_;
};

TEST_F(postgres_store, backends_that_are_killed_cost_neither_holder_nor_waiter_anything) {
  couple two(open("&application_name=" + schema_), open("&application_name=" + schema_));
  for (int i = 0; i < 3; ++i) {
    ask("select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = '" +
        schema_ + "'");
  }
  two.check_held();
  two.hand_over();
}

TEST_F(postgres_store, connections_that_the_server_ends_when_idle_are_replaced_unnoticed) {
  (void)open();
  let_user_with("set idle_session_timeout = '700ms'");
  auto s = holdfast::open(url_of_user("&listen=never"));
  holdfast::mutex m{s, "m"};
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(m.try_lock());
    eventually("no connection", [&] {
      return ask("select count(*) from pg_stat_activity where usename = '" + user_ + "'") == "0";
    });
    m.unlock();
  }
}

TEST_F(postgres_store, serializable_transactions_by_default_change_nothing) {
  (void)open();
  for (const std::string level : {"serializable", "repeatable read"}) {
    let_user_with("set default_transaction_isolation = '" + level + "'");
    int counter = 0;
    std::vector<std::thread> all;
    for (int i = 0; i < 4; ++i) {
      all.emplace_back([&] {
        auto s = holdfast::open(url_of_user());
        holdfast::mutex m{s, "m"};
        for (int n = 0; n < 20; ++n) {
          const std::lock_guard guard{m};
          ++counter;
        }
      });
    }
    for (auto& t : all) t.join();
    EXPECT_EQ(counter, 80) << level;
  }
}

TEST_F(postgres_store,
       a_row_locked_by_another_session_is_unavailable_and_the_error_names_the_view) {
  auto s = impatient("&command_timeout=1500ms");
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  const client other{base_};
  other.ask("begin");
  other.ask("select * from " + table("holdfast_records") + " for update");
  const auto refused = outcome_of([&] { m.lock(); });
  EXPECT_EQ(refused.reason, errc::unavailable);
  EXPECT_TRUE(contains(refused.text, "pg_stat_activity")) << refused.text;
  const auto tried = outcome_of([&] { (void)m.try_lock(); });
  EXPECT_EQ(tried.reason, errc::unavailable);
  EXPECT_FALSE(tried.unknown) << tried.text;
  other.ask("rollback");
  EXPECT_TRUE(m.try_lock_for(60s));
  m.unlock();
}

TEST_F(postgres_store, a_statement_timeout_of_the_server_is_named) {
  (void)open();
  let_user_with("set statement_timeout = '100ms'");
  auto s = holdfast::open(url_of_user());
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  const client other{base_};
  other.ask("begin");
  other.ask("select * from " + table("holdfast_records") + " for update");
  const auto refused = outcome_of([&] { (void)m.try_lock(); });
  EXPECT_EQ(refused.reason, errc::unavailable);
  EXPECT_TRUE(contains(refused.text, "statement_timeout")) << refused.text;
  EXPECT_FALSE(refused.unknown) << refused.text;
  other.ask("rollback");
}

TEST_F(postgres_store, a_read_only_user_gets_the_error_read_only) {
  (void)open();
  let_user_with("set default_transaction_read_only = on");
  auto s = holdfast::open(url_of_user());
  holdfast::mutex m{s, "m"};
  const auto refused = outcome_of([&] { m.lock(); });
  EXPECT_EQ(refused.reason, errc::read_only);
  EXPECT_TRUE(contains(refused.text, "default_transaction_read_only")) << refused.text;
}

TEST_F(postgres_store, too_many_connections_are_unavailable_and_the_error_names_the_limit) {
  (void)open();
  let_user_with("connection limit 1");
  auto s = holdfast::open(url_of_user("&listen=never"));
  const auto refused = outcome_of([&] {
    holdfast::mutex m{s, "m"};
    m.lock();
    (void)holdfast::open(url_of_user(), {.store_timeout = 0ms});
  });
  EXPECT_EQ(refused.reason, errc::unavailable);
  EXPECT_TRUE(contains(refused.text, "max_connections")) << refused.text;
}

TEST_F(postgres_store, one_connection_serves_a_thousand_operations_of_many_threads) {
  auto s = open("&connections=1&application_name=" + schema_);
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
  EXPECT_LE(std::stoi(ask("select count(*) from pg_stat_activity where application_name = '" +
                          schema_ + "'")),
            2);
}

TEST_F(postgres_store, an_uncontended_lock_costs_one_transaction_each_time_but_the_first) {
  const client watcher{base_};
  auto s = open();
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  const auto version = [&] {
    return std::stoll(ask("select version from " + table("holdfast_records")));
  };
  const auto before = version();
  for (int i = 0; i < 50; ++i) m.lock(), m.unlock();
  EXPECT_EQ(version() - before, 100) << "each lock and each unlock is one write";
}

TEST_F(postgres_store, no_message_has_the_password_in_it) {
  std::string secret = base_;
  secret.replace(secret.find("postgres@"), 9, "nobody:hunter2@");
  const auto refused = harness::outcome_of_opening(secret);
  EXPECT_TRUE(refused.failed);
  EXPECT_FALSE(contains(refused.text, "hunter2")) << refused.text;
  EXPECT_TRUE(contains(refused.text, "nobody")) << refused.text;
}

TEST_F(postgres_store, a_database_that_is_not_there_and_options_that_are_not_are_refused) {
  std::string elsewhere = base_.substr(0, base_.rfind('/')) + "/nowhere";
  EXPECT_EQ(harness::outcome_of_opening(elsewhere).reason, errc::invalid_argument);
  for (const char* option : {"&connections=0", "&connections=x", "&command_timeout=0",
                             "&schema=", "&listen=perhaps", "&sslmode=maybe", "&shcema=x"}) {
    EXPECT_EQ(outcome_of([&] { (void)open(option); }).reason, errc::invalid_argument) << option;
  }
  for (const char* address :
       {"postgres:host", "postgres://h:0/d", "postgres://h:99999/d", "postgres://::1/d"}) {
    EXPECT_EQ(harness::outcome_of_opening(address).reason, errc::invalid_argument) << address;
  }
}

TEST(postgres_opening, an_absent_server_is_reported_in_one_line) {
  const auto nobody = harness::outcome_of_opening("postgres://127.0.0.1:1/db");
  EXPECT_EQ(nobody.reason, errc::unavailable) << nobody.text;
  EXPECT_FALSE(contains(nobody.text, "\\x09")) << "no tab of libpq's: " << nobody.text;
  EXPECT_FALSE(contains(nobody.text, "\\x0a") || contains(nobody.text, "\n"))
      << "no line break of libpq's: " << nobody.text;
}

// ---- the network

class postgres_network : public postgres_store {
 protected:
  holdfast::session behind(const std::string& options = {}) {
    holdfast::session_options o;
    o.store_timeout = 60s;
    return holdfast::open(
        harness::postgres_server::url_of(proxy_.port(), "?schema=" + schema_ + options), o);
  }
  int port() const {
    const auto from = base_.rfind(':') + 1;
    return std::stoi(base_.substr(from, base_.find('/', from) - from));
  }
  std::vector<holdfast::participant> holders() { return direct_.show("m").holders; }

  harness::fault_proxy proxy_{port()};
  holdfast::session direct_ = open();
};

TEST_F(postgres_network, calls_end_at_their_limit_while_the_server_hangs) {
  const std::string rest = "?schema=" + schema_;
  harness::calls_end_at_their_limit_while_it_hangs(
      harness::hang(proxy_),
      harness::postgres_server::url_of(proxy_.port(),
                                       rest + "&connect_timeout=3600s&command_timeout=3600s"),
      harness::postgres_server::url_of(port(), rest));
}

TEST_F(postgres_network, tries_time_out_while_the_server_hangs) {
  for (const std::string mode : {"", "&mode=session"}) {
    SCOPED_TRACE(mode);
    harness::tries_time_out_while_it_hangs(
        harness::hang(proxy_),
        harness::postgres_server::url_of(proxy_.port(),
                                         "?schema=" + schema_ + "&command_timeout=300ms" + mode));
  }
}

TEST_F(postgres_network, calls_for_locks_of_a_connection_end_at_their_limit_too) {
  const std::string rest = "?schema=" + schema_ + "&mode=session";
  harness::calls_end_at_their_limit_while_it_hangs(
      harness::hang(proxy_),
      harness::postgres_server::url_of(proxy_.port(),
                                       rest + "&connect_timeout=3600s&command_timeout=3600s"),
      harness::postgres_server::url_of(port(), rest));
}

// The old primary lives on, and so does the connection for notifications.
TEST(postgres_failover, the_listener_follows_the_commands_to_another_server) {
  harness::postgres_server old, now;
  auto at_home = holdfast::open(now.url());
  auto held = holdfast::mutex(at_home, "m").acquire();
  holdfast::session_options patient;
  patient.store_timeout = 60s;
  auto s = holdfast::open("postgres://postgres@127.0.0.1:" + std::to_string(old.port()) +
                              ",127.0.0.1:" + std::to_string(now.port()) +
                              "/postgres?target_session_attrs=read-write",
                          patient);
  const std::string listening = "query like 'listen %'";
  const client at_the_old(old.url()), at_the_next(now.url());
  at_the_old.ask("alter system set default_transaction_read_only = on");
  old.reload();
  eventually("new connections are read only",
             [&] { return client(old.url()).ask("show default_transaction_read_only") == "on"; });
  at_the_old.ask("select pg_terminate_backend(pid) from pg_stat_activity where not " + listening +
                 " and pid <> pg_backend_pid() and backend_type = 'client backend'");
  EXPECT_EQ(at_the_old.ask("select count(*) from pg_stat_activity where " + listening), "1");
  std::thread waiter([&] { (void)holdfast::mutex(s, "m").acquire(); });
  eventually("its listener to be at the server of the commands", [&] {
    return at_the_next.ask("select count(*) from pg_stat_activity where " + listening) == "2";
  });
  EXPECT_FALSE(held.release());
  waiter.join();
}

TEST_F(postgres_network, a_free_lock_costs_one_round_trip_to_acquire_and_one_to_release) {
  const auto s = behind("&listen=never");
  EXPECT_EQ(harness::round_trips_of_a_free_lock(proxy_, s), 2U);
}

// The row is written in one or two round trips, and the notifications take one more.
TEST_F(postgres_network, a_barrier_notifies_all_its_participants_in_one_round_trip) {
  constexpr std::uint64_t participants = 32;
  const auto s = behind("&listen=never"), other = open();
  std::string sessions[] = {s.impl()->peer(), other.impl()->peer()};
  std::size_t last = 0;
  for (std::uint64_t i = 1; i <= participants; ++i) {
    holdfast::store::permits_command c{.verb = holdfast::store::permits_verb::acquire,
                                       .owner = {1, i},
                                       .kind = holdfast::store::kind::barrier,
                                       .capacity = participants};
    c.wait = true, c.lease_us = c.queue_lease_us = 60'000'000, c.peer = sessions[i % 2];
    const auto before = proxy_.count().round_trips;
    const bool opens =
        s.impl()->permits("all", c).value().outcome == holdfast::store::permits_outcome::granted;
    EXPECT_EQ(opens, i == participants);
    last = proxy_.count().round_trips - before;
  }
  EXPECT_LE(last, 4U);
}

// As behind a pooler.
TEST_F(postgres_network, a_session_that_does_not_listen_notifies_its_own_waiters) {
  const auto s = behind("&listen=never");
  const std::string peer = s.impl()->peer();
  const auto ask = [&](holdfast::store::permits_verb verb, std::uint64_t owner) {
    holdfast::store::permits_command c{.verb = verb, .owner = {1, owner}, .wait = true};
    c.lease_us = c.queue_lease_us = 60'000'000, c.peer = peer;
    return s.impl()->permits("m", c).value().outcome;
  };
  using enum holdfast::store::permits_verb;
  ask(acquire, 1), ask(acquire, 2);
  holdfast::engine::dispatcher::registration second(s.impl()->dispatcher(), {1, 2});
  EXPECT_EQ(ask(release, 1), holdfast::store::permits_outcome::done);
  const auto told = second.wait(holdfast::boot_clock::now() + 10s);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->what, holdfast::store::notification_kind::granted);
}

TEST_F(postgres_network, an_answer_cut_at_any_byte_leaves_one_grant_and_no_other) {
  auto s = behind("&listen=never");
  holdfast::mutex m{s, "m"}, rival{direct_, "m"};
  for (std::size_t byte = 0; byte < 200; byte += 7) {
    proxy_.with([&](relay& r) { r.cut_after(way::down, byte); });
    auto held = m.acquire();
    const auto seen = holders();
    ASSERT_EQ(seen.size(), 1U) << byte;
    EXPECT_EQ(seen[0].fence, held.fence()) << byte;
    proxy_.with([&](relay& r) { r.cut_after(way::down, byte); });
    EXPECT_FALSE(held.release()) << byte;
    EXPECT_TRUE(rival.try_acquire()) << "nobody is left behind, byte " << byte;
  }
  EXPECT_GT(proxy_.count().cut, 20U);
}

// The request needs a connection that is there already: a time-out before that would cost it.
TEST_F(postgres_network, a_commit_whose_answer_never_comes_has_an_unknown_outcome) {
  auto s = behind("&listen=never&command_timeout=2s");
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  proxy_.with([](relay& r) { r.stall(way::down); });
  const auto tried = outcome_of([&] { (void)m.try_lock(); });
  EXPECT_EQ(tried.reason, errc::unavailable);
  EXPECT_TRUE(tried.unknown) << tried.text;
  proxy_.heal();
  eventually("what it may have got to be given back", [&] { return holders().empty(); });
}

TEST_F(postgres_network, an_earlier_refusal_does_not_decide_an_unanswered_commit) {
  namespace pg = holdfast::store::postgres;
  const auto in = [](auto time) { return holdfast::boot_clock::now() + time; };
  const auto o = *pg::read_options(
      *holdfast::base::parse_url(harness::postgres_server::url_of(proxy_.port(), "")));
  const auto connected = pg::connect(o.server, in(1h));
  ASSERT_TRUE(connected);
  pg::wire& w = **connected;
  EXPECT_FALSE(w.ask({"select 1/0"}, in(1h)));
  EXPECT_TRUE(w.did_nothing());
  proxy_.with([](relay& r) { r.stall(way::down); });
  EXPECT_FALSE(w.ask({"select 1"}, in(100ms)));
  EXPECT_FALSE(w.did_nothing());
}

TEST_F(postgres_network, a_half_open_connection_costs_one_command_timeout_and_no_lock) {
  auto s = behind("&listen=never&command_timeout=2s");
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  auto held = m.acquire();
  proxy_.with([](relay& r) { r.half_open(); });
  const auto o = outcome_of([&] { (void)s.show("m"); });
  EXPECT_EQ(o.reason, errc::unavailable);
  EXPECT_TRUE(contains(o.text, "did not answer in time")) << o.text;
  held.extend();
  EXPECT_EQ(holders().size(), 1U);
  EXPECT_FALSE(held.release());
}

TEST_F(postgres_network, a_request_without_time_for_a_connection_reports_its_limit) {
  auto s = behind("&listen=never&command_timeout=300ms&connect_timeout=3600s");
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  proxy_.with([](relay& r) { r.stall(way::up), r.stall(way::down); });
  proxy_.cut();
  const auto late = outcome_of([&] { (void)m.try_acquire(); });
  EXPECT_EQ(late.reason, errc::unavailable) << late.text;
  EXPECT_TRUE(contains(late.text, "command_timeout")) << late.text;
  EXPECT_FALSE(contains(late.text, "connect_timeout")) << late.text;
  proxy_.heal();
}

TEST_F(postgres_network, a_waiter_whose_notification_is_lost_polls) {
  auto s = behind();
  holdfast::mutex first{direct_, "m"}, second{s, "m"};
  auto held = first.acquire();
  std::thread waiter([&] { second.lock(), second.unlock(); });
  eventually("a waiter", [&] { return direct_.show("m").waiters.size() == 1; });
  proxy_.cut();
  EXPECT_FALSE(held.release());
  waiter.join();
}

/// The machine's clock. Counts how often a system call begins to wait by it.
class counted_waits final : public harness::forwarding_clock {
 public:
  int waits() const { return waits_; }
  std::chrono::nanoseconds sleep_for(holdfast::boot_time until) const noexcept override {
    ++waits_;
    return forwarding_clock::sleep_for(until);
  }

 private:
  mutable std::atomic<int> waits_{0};
};

TEST_F(postgres_network, a_session_that_does_not_listen_keeps_a_thousand_notifications_by_itself) {
  namespace pg = holdfast::store::postgres;
  auto o = *pg::read_options(
      *holdfast::base::parse_url(harness::postgres_server::url_of(proxy_.port(), "?listen=never")));
  o.clock = &holdfast::real_clock();
  const auto store = pg::open_postgres(std::move(o)).value();
  sql_test::keeps_a_thousand_notifications_by_itself(*store);
}

TEST_F(postgres_network, a_notification_by_the_session_itself_wakes_its_thread) {
  namespace pg = holdfast::store::postgres;
  auto o = *pg::read_options(
      *holdfast::base::parse_url(harness::postgres_server::url_of(proxy_.port(), "?listen=never")));
  o.clock = &holdfast::real_clock();
  pg::listener inbox(o);
  ASSERT_TRUE(inbox.open());
  std::optional<holdfast::store::notification> heard;
  std::thread reader([&] { heard = inbox.receive(holdfast::boot_clock::now() + 3600s); });
  (void)harness::until_threads_rest();
  inbox.put({holdfast::store::notification_kind::granted, "m", {}, 1, 2, inbox.peer()});
  reader.join();
  if (!heard) heard = inbox.receive(holdfast::boot_clock::now());
  EXPECT_TRUE(heard && heard->name == "m");
}

// The listener checks its connection after 5 s of silence.
TEST_F(postgres_network, a_notification_behind_the_answer_to_a_ping_is_read_at_once) {
  namespace pg = holdfast::store::postgres;
  counted_waits time;
  auto o = *pg::read_options(*holdfast::base::parse_url(
      harness::postgres_server::url_of(proxy_.port(), "?command_timeout=3600s")));
  o.clock = &time;
  pg::listener inbox(o);
  inbox.follow((*pg::connect(o.server, holdfast::boot_clock::now() + 60s))->server());
  ASSERT_TRUE(inbox.open());
  proxy_.with([](relay& r) { r.stall(way::down); });
  std::optional<holdfast::store::notification> heard;
  std::thread reader([&] { heard = inbox.receive(holdfast::boot_clock::now() + 60s); });
  eventually("the answer to a ping", [&] { return proxy_.count().held > 0; });
  const auto answer = proxy_.count().held;
  std::string line = holdfast::store::sql::encode(
      {holdfast::store::notification_kind::granted, "m", {}, 1, 2, {}});
  line.pop_back();
  ask("select pg_notify('" + pg::channel_of(inbox.peer()) + "', '" + line + "')");
  eventually("what was published", [&] { return proxy_.count().held > answer; });
  eventually("it to wait on behind the ping", [&] { return time.waits() == 2; });
  proxy_.heal();  // both at once
  reader.join();
  EXPECT_TRUE(heard && heard->name == "m");
  EXPECT_EQ(time.waits(), 2) << "nothing else had to come";
}

/// Only the notifications go through the proxy. An hour to connect, so that a wait for that would
/// show.
class postgres_notifications : public postgres_network {
 protected:
  holdfast::session listening() {
    return open(
        "&connect_timeout=3600s&command_timeout=3600s&listen=postgres://postgres%40127.0.0.1:" +
        std::to_string(proxy_.port()) + "/postgres");
  }
};

TEST_F(postgres_notifications, that_cannot_be_restored_do_not_delay_a_waiter_beyond_its_deadline) {
  auto s = listening();
  holdfast::mutex first{direct_, "m"}, second{s, "m"};
  auto held = first.acquire();
  proxy_.with([](relay& r) { r.stall(way::down); });  // also for future connections
  proxy_.cut();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(second.try_acquire_for(100ms));
  proxy_.heal();
  std::thread waiter([&] { second.lock(), second.unlock(); });
  eventually("a waiter", [&] { return direct_.show("m").waiters.size() == 1; });
  EXPECT_FALSE(held.release());
  waiter.join();
}

// 5 s: the silence after which the connection is checked.
TEST_F(postgres_notifications, that_fall_silent_do_not_delay_a_waiter_beyond_its_deadline) {
  auto s = listening();
  holdfast::mutex first{direct_, "m"}, second{s, "m"};
  const auto held = first.acquire();
  proxy_.with([](relay& r) { r.half_open(); });
  EXPECT_FALSE(second.try_acquire_for(5500ms));
  EXPECT_FALSE(second.try_acquire_for(100ms));
}

}  // namespace
}  // namespace postgres_test
