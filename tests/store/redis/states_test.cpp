#include <atomic>
#include <thread>

#include "fixture.hpp"
#include "harness/fake_redis.hpp"
#include "session/session_impl.hpp"

// States of the server: loading, without its replicas or its primary, asleep, stopped, with a clock
// that jumps.
namespace {

using namespace std::chrono_literals;
using harness::eventually;
using harness::redis_server;
using holdfast::errc;
using redis_test::contains;
using redis_test::outcome;
using redis_test::outcome_of;

/// For calls that keep trying while the store is away.
holdfast::session impatient(const std::string& url) {
  holdfast::session_options o;
  o.store_timeout = 300ms;
  return holdfast::open(url, o);
}

outcome trying(holdfast::session& s) {
  return outcome_of([&] { (void)holdfast::mutex(s, "m").try_lock(); });
}

void expect_unavailable(const outcome& o, const std::string& word) {
  EXPECT_EQ(o.reason, errc::unavailable) << o.text;
  EXPECT_TRUE(o.retryable);
  EXPECT_TRUE(contains(o.text, word)) << o.text;
}

void await_waiters(const holdfast::session& s, std::size_t n) {
  eventually("waiters", [&] { return s.show("m").waiters.size() == n; });
}

TEST(redis_states, a_server_that_loads_its_data_is_unavailable_until_it_is_done) {
  redis_server server(
      {"--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"});
  auto s = impatient(server.url());
  server.may_stay("k:*", "so many that they take long to be read");
  server.ask({"DEBUG", "POPULATE", "100000", "k", "100"});  // takes minutes to load
  server.save_and_end();
  server.start_loading();
  expect_unavailable(trying(s), "reading its data");
  expect_unavailable(harness::outcome_of_opening(server.url()), "reading its data");
  server.ask({"CONFIG", "SET", "key-load-delay", "0"});
  EXPECT_TRUE(holdfast::mutex(s, "m").try_lock_for(60s));
}

TEST(redis_states, a_primary_without_enough_replicas_is_unavailable_until_it_has_them) {
  const redis_server server;
  auto s = impatient(server.url());
  server.ask({"CONFIG", "SET", "min-replicas-to-write", "1"});
  expect_unavailable(trying(s), "min-replicas-to-write");
  std::thread patient([&] { EXPECT_TRUE(holdfast::mutex(s, "n").try_lock_for(60s)); });
  server.ask({"CONFIG", "SET", "min-replicas-to-write", "0"});
  patient.join();
}

TEST(redis_states, a_replica_that_has_lost_its_primary_is_unavailable) {
  const redis_server server({"--replica-serve-stale-data", "no"});
  auto s = impatient(server.url());
  server.ask({"REPLICAOF", "127.0.0.1", std::to_string(harness::free_port())});
  expect_unavailable(trying(s), "primary");
  server.ask({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(holdfast::mutex(s, "m").try_lock_for(60s));
}

TEST(redis_states, errors_of_a_primary_and_of_a_script_are_reported_alike) {
  const auto reason_for = [](const std::string& error) {
    const harness::fake_redis server([&](const harness::fake_redis::words& w) {
      return w[0] == "EVALSHA" ? "-" + error + "\r\n" : std::string();
    });
    auto s = impatient(server.url("?command_timeout=500ms"));
    return trying(s).reason;
  };
  // As Redis 7 reports it, and as earlier versions wrap the error of a script's command.
  for (const std::string before :
       {"", "ERR Error running script (call to f_01): @user_script:1: -"}) {
    for (const std::string word : {"MASTERDOWN", "NOREPLICAS", "READONLY"}) {
      EXPECT_EQ(reason_for(before + word + " some reason"), errc::unavailable) << before << word;
    }
    EXPECT_EQ(reason_for(before + "MISCONF some reason"), errc::read_only) << before;
    EXPECT_EQ(reason_for(before + "OOM command not allowed"), errc::no_space) << before;
  }
}

// A demoted server that does not reach its primary answers this for as long as that lasts, or until
// it has copied and loaded all of the data. The address may lead to another server by now.
TEST(redis_states, a_replica_that_has_lost_its_primary_is_left_as_any_other_replica) {
  const std::string in_a_script = "ERR Error running script (call to f_01): @user_script:1: -";
  for (const std::string& error :
       {std::string("MASTERDOWN some reason"), in_a_script + "MASTERDOWN some reason",
        std::string("READONLY some reason"), in_a_script + "READONLY some reason",
        std::string("LOADING Redis is loading the dataset in memory")}) {
    std::atomic<int> calls{0};
    const harness::fake_redis server([&](const harness::fake_redis::words& w) {
      calls += w[0] == "HELLO" ? 1 : 0;
      return w[0] == "EVALSHA" ? "-" + error + "\r\n" : std::string();
    });
    auto s = impatient(server.url("?command_timeout=500ms"));
    const int opened = calls;
    eventually("it is called again after " + error, [&] {
      EXPECT_EQ(trying(s).reason, errc::unavailable);
      return calls > opened;
    });
  }
}

// As the renewals of a session that waits at a barrier and holds a lock: the question comes first.
TEST(redis_states, a_replica_that_answers_a_question_and_refuses_the_write_behind_it_is_left) {
  const redis_server server;
  auto s = holdfast::open(server.url());
  holdfast::store::permits_command take, question;
  take.verb = holdfast::store::permits_verb::acquire;
  take.owner = question.owner = {1, 1};
  take.lease_us = 60'000'000;
  ASSERT_TRUE(s.impl()->permits("m", take));
  question.verb = take.verb = holdfast::store::permits_verb::renew;
  question.wait = true;
  const holdfast::store::named_command batch[]{{"b", question}, {"m", take}};
  const auto clients = [&] { return server.ask({"CLIENT", "LIST", "TYPE", "normal"}); };
  server.ask({"REPLICAOF", "127.0.0.1", std::to_string(harness::free_port())});
  const auto all = clients();
  ASSERT_NE(all.find("name=holdfast"), std::string::npos) << all;
  const auto before = all.substr(all.rfind("id=", all.find("name=holdfast")), 8);
  const auto replies = s.impl()->permits(batch);
  EXPECT_TRUE(replies[0]) << "a replica answers it";
  EXPECT_FALSE(replies[1]);
  (void)s.impl()->permits(batch);
  eventually("the connection is closed",
             [&] { return clients().find(before) == std::string::npos; });
}

// The script had written nothing, or the server would not have ended it.
TEST(redis_states, a_killed_script_has_done_nothing) {
  const harness::fake_redis server([&](const harness::fake_redis::words& w) {
    return w[0] != "EVALSHA" ? std::string()
                             : "-ERR Script killed by user with SCRIPT KILL... script: 01, on "
                               "@user_script:1.\r\n";
  });
  auto s = impatient(server.url("?command_timeout=30s"));  // without an answer nothing is known
  const auto o = trying(s);
  EXPECT_EQ(o.reason, errc::unavailable) << o.text;
  EXPECT_FALSE(o.unknown) << o.text;
}

TEST(redis_states, a_server_asleep_is_unavailable_within_the_command_timeout_and_used_afterwards) {
  const redis_server server;
  auto s = impatient(server.url("?command_timeout=500ms"));
  holdfast::mutex m{s, "m"};
  m.lock();
  outcome o;
  eventually("a call during a sleep", [&] {
    std::atomic<bool> over{false};
    std::thread sleeper([&] {
      server.ask({"DEBUG", "SLEEP", "1"});
      over = true;
    });
    while (!o.failed && !over) o = outcome_of([&] { (void)s.show("m"); });
    sleeper.join();
    return o.failed;
  });
  expect_unavailable(o, "did not answer within 500 ms");
  eventually("the server again", [&] { return !outcome_of([&] { (void)s.show("m"); }).failed; });
  EXPECT_EQ(s.show("m").holders.size(), 1U);
  EXPECT_NO_THROW(m.unlock());
}

/// A server with one holder and one waiter, of two sessions.
class redis_pair : public testing::Test {
 protected:
  explicit redis_pair(std::chrono::milliseconds lease = 30s) : first_(a_, "m", {.lease = lease}) {
    held_ = first_.acquire();
    waiting_ = std::thread([&] {
      auto got = second_.acquire();
      next_fence_ = got.fence();
    });
    await_waiters(a_, 1);
  }
  ~redis_pair() override {
    if (waiting_.joinable()) waiting_.join();
  }

  /// Stops the server until a command has failed, as a long stop does.
  void stop_beyond_the_timeout() {
    server_.stop();
    eventually("a failed command", [&] { return outcome_of([&] { (void)a_.show("m"); }).failed; });
  }

  redis_server server_;
  const std::string url_ = server_.url("?command_timeout=500ms");
  holdfast::session a_ = holdfast::open(url_), b_ = holdfast::open(url_);
  holdfast::mutex first_;
  holdfast::mutex second_{b_, "m"};
  holdfast::lease held_;
  std::thread waiting_;
  std::atomic<std::uint64_t> next_fence_{0};
};

TEST_F(redis_pair, a_server_stopped_for_a_while_changes_nothing_for_holder_and_waiter) {
  const auto fence = held_.fence();
  stop_beyond_the_timeout();
  EXPECT_NE(held_.state(), holdfast::lease_state::lost);
  server_.resume();
  eventually("the server again", [&] { return !outcome_of([&] { (void)a_.show("m"); }).failed; });
  held_.extend();
  EXPECT_EQ(held_.fence(), fence);
  await_waiters(a_, 1);
  EXPECT_FALSE(held_.release());
  waiting_.join();
  EXPECT_GT(next_fence_, fence);
}

TEST_F(redis_pair, a_flushed_server_reports_losses_to_holders_and_serves_waiters) {
  const auto fence = held_.fence();
  server_.ask({"FLUSHALL"});
  waiting_.join();  // it polls by itself within a second
  EXPECT_GT(next_fence_, fence) << "the counter was lost, the fence was not";
  EXPECT_EQ(outcome_of([&] { held_.extend(); }).reason, errc::lost);
  EXPECT_EQ(held_.state(), holdfast::lease_state::lost);
}

TEST_F(redis_pair, a_clock_of_the_server_set_forward_ends_leases_and_fences_grow) {
  const auto fence = held_.fence();
  server_.shift_clock(1h);
  waiting_.join();
  EXPECT_GT(next_fence_, fence);
  EXPECT_EQ(outcome_of([&] { held_.extend(); }).reason, errc::lost);
}

TEST_F(redis_pair, a_clock_of_the_server_set_back_keeps_leases_and_fences_grow) {
  const auto fence = held_.fence();
  server_.shift_clock(-1h);
  held_.extend();
  EXPECT_EQ(held_.fence(), fence);
  EXPECT_FALSE(held_.release());
  waiting_.join();
  EXPECT_GT(next_fence_, fence);
}

// Its last fence was that time, and the next ones must be greater.
TEST(redis_states,
     a_name_used_while_the_clock_was_far_ahead_is_remembered_until_then_and_no_other) {
  redis_server server;
  auto s = holdfast::open(server.url());
  holdfast::mutex m{s, "m"}, other{s, "other"};
  server.shift_clock(1h);
  auto greatest = m.acquire().fence();
  for (const auto shift : {0s, 10s, 20s}) {
    server.shift_clock(shift);
    const auto fence = m.acquire().fence();
    EXPECT_GT(fence, greatest) << shift.count() << " s";
    greatest = fence;
    (void)other.acquire();
  }
  EXPECT_EQ(server.ask({"DBSIZE"}), "2");
  server.shift_clock(30s);
  EXPECT_EQ(server.ask({"EXISTS", "holdfast:{m}"}), "1");
  EXPECT_EQ(server.ask({"EXISTS", "holdfast:{other}"}), "0") << "it is idle, and has no such fence";
  server.shift_clock(2h);
  EXPECT_EQ(server.ask({"EXISTS", "holdfast:{m}"}), "0");
}

class redis_short_lease : public redis_pair {
 protected:
  /// From now on: the fixture holds the lock for as long as the preparation takes.
  void hold_for_a_moment() { held_.extend(2s); }
};

TEST_F(redis_short_lease, a_server_stopped_longer_than_a_lease_means_lost_before_it_goes_on) {
  const auto fence = held_.fence();
  hold_for_a_moment();
  server_.stop();
  eventually("the loss, without the server", [&] { return held_.lost().stop_requested(); });
  EXPECT_EQ(next_fence_, 0U) << "nobody can have got it";
  server_.resume();
  waiting_.join();
  EXPECT_GT(next_fence_, fence);
}

}  // namespace
