#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "fixture.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/hung_store.hpp"
#include "harness/opened_late.hpp"
#include "harness/short_rules.hpp"
#include "store/postgres/opening.hpp"
#include "store/postgres/options.hpp"

// Tests that need a server of their own: restarts, clocks, logins, a standby, a pooler.
namespace postgres_test {
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using harness::postgres_server;
using holdfast::errc;

holdfast::session patient(const std::string& url) {
  holdfast::session_options o;
  o.store_timeout = 10min;
  return holdfast::open(url, o);
}

holdfast::session impatient(const std::string& url) {
  holdfast::session_options o;
  o.store_timeout = 300ms;
  return holdfast::open(url, o);
}

TEST(postgres_server_faults, a_server_that_crashes_and_comes_back_keeps_holder_and_waiter) {
  postgres_server server;
  auto a = patient(server.url()), b = patient(server.url());
  holdfast::mutex first{a, "m", {.lease = 10min}}, second{b, "m"};
  auto held = first.acquire();
  std::uint64_t next = 0;
  std::thread waiter([&] { next = second.acquire().fence(); });
  eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
  server.kill();
  {
    auto tried = outcome_of([&] { (void)a.show("m"); });
    EXPECT_EQ(tried.reason, errc::unavailable) << tried.text;
  }
  const auto late = harness::opened_before([&] { server.start(); }, server.url());
  eventually("the server to be used again",
             [&] { return !outcome_of([&] { (void)a.show("m"); }).failed; });
  EXPECT_EQ(held.state(), holdfast::lease_state::held);
  EXPECT_FALSE(held.release());
  waiter.join();
  EXPECT_GT(next, held.fence());
}

bool lives(const client& c) {
  try {
    return c.ask("select 1") == "1";
  } catch (const std::runtime_error&) {
    return false;
  }
}

bool lets_in(const postgres_server& server) {
  try {
    return lives(client(server.url()));
  } catch (const std::runtime_error&) {
    return false;
  }
}

// The server then ends all other backends, and restarts.
TEST(postgres_server_faults,
     a_backend_that_dies_of_kill_9_costs_neither_holder_nor_waiter_anything) {
  postgres_server server;
  auto a = patient(server.url()), b = patient(server.url("?application_name=b"));
  auto c = patient(server.url("?mode=session&session=3s"));
  holdfast::mutex first{a, "m", {.lease = 10min}}, second{b, "m"}, of_connection{c, "m"};
  auto held = first.acquire();
  const auto held_by_connection = of_connection.acquire();
  std::uint64_t next = 0;
  std::thread waiter([&] { next = second.acquire().fence(); });
  eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
  const client admin{server.url()};
  ::kill(
      std::stoi(admin.ask("select pid from pg_stat_activity where application_name = 'b' limit 1")),
      SIGKILL);
  eventually("connections to be ended", [&] { return !lives(admin); });
  // The server accepts nobody before the last of them has ended.
  eventually("all of them", [&] { return lets_in(server); });
  eventually("the server to be used again",
             [&] { return !outcome_of([&] { (void)a.show("m"); }).failed; });
  EXPECT_EQ(held.state(), holdfast::lease_state::held);
  EXPECT_FALSE(held.release());
  waiter.join();
  EXPECT_GT(next, held.fence());
  eventually("what went with its connection to be told",
             [&] { return held_by_connection.state() == holdfast::lease_state::lost; });
}

TEST(postgres_server_faults,
     a_stopped_server_is_unavailable_in_time_and_longer_than_a_lease_is_lost) {
  postgres_server server;
  auto s = impatient(server.url("?command_timeout=1s&listen=never"));
  holdfast::lock_options short_lease;
  short_lease.lease = 2s;
  holdfast::mutex m{s, "m", short_lease}, other{s, "other"};
  auto held = m.acquire();
  server.stop();
  const auto tried = outcome_of([&] { (void)other.try_lock(); });
  EXPECT_EQ(tried.reason, errc::unavailable);
  eventually("the loss", [&] { return held.state() == holdfast::lease_state::lost; });
  server.resume();
  eventually("the server to be used again",
             [&] { return !outcome_of([&] { (void)s.show("m"); }).failed; });
}

TEST(postgres_server_faults, clocks_of_the_server_that_are_set_change_no_order_of_fences) {
  postgres_server server;
  auto a = patient(server.url()), b = patient(server.url());
  holdfast::lock_options short_lease;
  short_lease.lease = 3s;
  holdfast::mutex m{a, "m"}, rival{b, "m", short_lease};
  auto held = m.acquire();
  auto last = held.fence();
  server.shift_clock(-1h);
  EXPECT_FALSE(rival.try_acquire()) << "set back under a holder: it keeps the lock";
  held.extend();
  EXPECT_FALSE(held.release());
  held = rival.acquire();
  EXPECT_GT(held.fence(), last);
  last = held.fence();
  server.shift_clock(1h);
  auto next = m.try_acquire();
  ASSERT_TRUE(next) << "set forward, leases end";
  EXPECT_GT(next->fence(), last);
  eventually("the loss to be told", [&] { return held.state() == holdfast::lease_state::lost; });
}

TEST(postgres_server_faults, the_time_of_the_server_is_not_guessed_after_its_clock_was_set) {
  postgres_server server;
  auto s = patient(server.url());
  holdfast::mutex m{s, "m"};
  for (int i = 0; i < 3; ++i) m.lock(), m.unlock();
  server.shift_clock(1h);
  const auto held = m.acquire();
  EXPECT_EQ(client(server.url()).ask("select expires > clock_timestamp() from holdfast_locks"),
            "t");
}

// The connection that is made for the last sweep is announced to a listener that is still there. A
// session that ends gives up after 0.2 s, and leaves the rows to others: a busy machine sometimes
// takes longer, but not each time.
TEST(postgres_server_faults, a_session_that_ends_after_a_restart_sweeps_its_names) {
  postgres_server server;
  eventually("a sweep", [&] {
    {
      auto s = patient(server.url());
      holdfast::mutex m{s, "m"};
      m.lock(), m.unlock();
      server.end();
      server.start();
    }
    return client(server.url()).ask("select count(*) from holdfast_records") == "0";
  });
}

TEST(postgres_server_faults, a_standby_is_read_only_and_a_list_of_hosts_finds_the_primary) {
  postgres_server primary;
  postgres_server standby(primary, {});
  const auto refused = harness::outcome_of_opening(standby.url());
  EXPECT_EQ(refused.reason, errc::read_only);
  EXPECT_TRUE(contains(refused.text, "target_session_attrs")) << refused.text;
  const std::string both = "postgres://postgres@127.0.0.1:" + std::to_string(standby.port()) +
                           ",127.0.0.1:" + std::to_string(primary.port()) + "/postgres";
  auto s = holdfast::open(both + "?target_session_attrs=read-write");
  holdfast::mutex m{s, "m"};
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

TEST(postgres_server_faults,
     a_list_whose_servers_have_changed_places_again_is_tried_from_its_start) {
  postgres_server primary;
  postgres_server standby(primary, {});
  const auto o = *holdfast::store::postgres::read_options(
      *holdfast::base::parse_url("postgres://postgres@127.0.0.1:" + std::to_string(primary.port()) +
                                 ",127.0.0.1:" + std::to_string(standby.port()) + "/postgres"));
  *o.server.answered_last = 1;  // when that one was the primary
  const auto deadline = holdfast::boot_clock::now() + 60s;
  EXPECT_FALSE(holdfast::store::postgres::connect(o.server, deadline)) << "it only reads";
  const auto again = holdfast::store::postgres::connect(o.server, deadline);
  EXPECT_TRUE(again) << again.error().what;
}

/// A service that libpq knows by its file, beside hosts of another cluster in the environment.
class postgres_services : public testing::Test {
 protected:
  postgres_services() {
    std::ofstream(server_.file("services"))
        << "[locks]\nhost=127.0.0.1\nuser=postgres\nport=" << server_.port() << '\n';
    ::setenv("PGSERVICEFILE", server_.file("services").c_str(), 1);
    ::setenv("PGHOST", "127.0.0.1,127.0.0.1", 1);
    ::setenv("PGPORT", ("1," + std::to_string(other_.port())).c_str(), 1);
  }
  ~postgres_services() override {
    for (const auto* name : {"PGSERVICEFILE", "PGHOST", "PGPORT"}) ::unsetenv(name);
  }
  postgres_server server_, other_;
};

TEST_F(postgres_services, are_at_the_hosts_of_the_file_whichever_host_is_first) {
  const auto o = *holdfast::store::postgres::read_options(
      *holdfast::base::parse_url("postgres:///postgres?service=locks"));
  for (const std::size_t first : {0U, 1U}) {
    *o.server.answered_last = first;
    const auto made =
        holdfast::store::postgres::connect(o.server, holdfast::boot_clock::now() + 60s);
    ASSERT_TRUE(made) << made.error().what;
    EXPECT_EQ((*made)->port(), std::to_string(server_.port()));
  }
}

/// Passwords where libpq looks for them.
class postgres_logins : public testing::Test {
 protected:
  postgres_logins() {
    client(server_.url())
        .ask("create role app login password 'hunter2'; grant all on schema public to app");
    server_.let_in("host all app 127.0.0.1/32 scram-sha-256");
    server_.reload();
    eventually("the rule to be there",
               [&] { return harness::outcome_of_opening(url_).reason == errc::not_permitted; });
  }
  ~postgres_logins() override {
    ::unsetenv("PGPASSWORD");
    ::unsetenv("PGPASSFILE");
  }
  postgres_server server_;
  const std::string url_ = postgres_server::url_of(server_.port(), "", "app");
};

TEST_F(postgres_logins, a_password_comes_from_the_sources_of_libpq_and_is_never_shown) {
  ::setenv("PGPASSWORD", "wrong", 1);
  const auto refused = harness::outcome_of_opening(url_);
  EXPECT_EQ(refused.reason, errc::not_permitted);
  EXPECT_TRUE(contains(refused.text, ".pgpass")) << refused.text;
  EXPECT_FALSE(contains(refused.text, "wrong")) << refused.text;
  ::setenv("PGPASSWORD", "hunter2", 1);
  EXPECT_NO_THROW((void)holdfast::open(url_));
  ::unsetenv("PGPASSWORD");

  const harness::temp_dir dir;
  const std::string file = dir.file("pgpass");
  std::ofstream(file) << "127.0.0.1:*:*:app:hunter2\n";
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  EXPECT_NO_THROW((void)holdfast::open(url_ + "?passfile=" + file));
  EXPECT_NO_THROW((void)holdfast::open(postgres_server::url_of(server_.port(), "", "app:hunter2")));
}

/// A pooler in transaction mode, with two connections to the server.
class postgres_pooler : public testing::Test {
 protected:
  postgres_server server_;
  harness::pgbouncer pooler_{server_, 2};
};

TEST_F(postgres_pooler, behind_a_pooler_locks_exclude_each_other_and_no_session_listens) {
  int counter = 0;
  std::vector<std::thread> all;
  for (int i = 0; i < 3; ++i) {
    all.emplace_back([&] {
      auto s = patient(pooler_.url());
      EXPECT_FALSE(s.can().notifications);
      holdfast::mutex m{s, "m"};
      for (int n = 0; n < 6; ++n) {
        const std::lock_guard guard{m};
        ++counter;
      }
    });
  }
  for (auto& t : all) t.join();
  EXPECT_EQ(counter, 18);
  const client direct{server_.url()};
  EXPECT_EQ(direct.ask("select count(*) from pg_locks where locktype = 'advisory'"), "0");
}

// Behind it, a session sets no search_path.
TEST_F(postgres_pooler, operators_that_fit_better_than_those_of_the_server_do_not_stop_its_clock) {
  client(server_.url())
      .ask(
          "create schema s; create function s.stopped(numeric, integer) returns numeric language "
          "sql as 'select 1::numeric'; create operator s.* (leftarg = numeric, rightarg = integer, "
          "function = s.stopped); alter database postgres set search_path = s");
  harness::expect_short_rules({pooler_.url(), server_.url()});
}

TEST_F(postgres_pooler, calls_end_at_their_limit_while_it_hangs) {
  harness::fault_proxy proxy(pooler_.port());
  harness::calls_end_at_their_limit_while_it_hangs(
      harness::hang(proxy),
      postgres_server::url_of(proxy.port(), "?connect_timeout=3600s&command_timeout=3600s"),
      pooler_.url());
}

TEST_F(postgres_pooler, tries_time_out_while_it_hangs) {
  harness::fault_proxy proxy(pooler_.port());
  harness::tries_time_out_while_it_hangs(
      harness::hang(proxy), postgres_server::url_of(proxy.port(), "?command_timeout=300ms"));
}

TEST_F(postgres_pooler, a_server_that_is_named_for_listening_sends_notifications_past_the_pooler) {
  std::string direct =
      "postgres://postgres%40127.0.0.1:" + std::to_string(server_.port()) + "/postgres";
  const std::string url = pooler_.url("?listen=" + direct);
  auto a = patient(url), b = patient(url);
  EXPECT_TRUE(a.can().notifications);
  holdfast::mutex first{a, "m"}, second{b, "m"};
  first.lock();
  std::thread waiter([&] { second.lock(), second.unlock(); });
  eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
  first.unlock();
  waiter.join();
}

TEST_F(postgres_pooler, batches_and_contended_rows_work_behind_it_as_well) {
  auto s = patient(pooler_.url());
  std::vector<std::unique_ptr<holdfast::mutex>> all;
  std::vector<holdfast::lease> held;
  holdfast::lock_options short_lease;
  short_lease.lease = 3s;
  for (int i = 0; i < 20; ++i) {
    all.push_back(std::make_unique<holdfast::mutex>(s, "m" + std::to_string(i), short_lease));
    held.push_back(all.back()->acquire());
  }
  const auto first = held.front().remaining();
  eventually("time goes on", [&] { return held.front().remaining() < first - 300ms; });
  eventually("a renewal", [&] { return held.front().remaining() > first - 300ms; });
  const auto is_held = [](const auto& l) { return l.state() == holdfast::lease_state::held; };
  eventually("all to be held", [&] { return std::all_of(held.begin(), held.end(), is_held); });
}

}  // namespace
}  // namespace postgres_test
