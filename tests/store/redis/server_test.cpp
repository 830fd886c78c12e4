#include <sys/stat.h>

#include <thread>

#include "fixture.hpp"

// What the server does to us, by the names that it has for it.
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using redis_test::contains;
using redis_test::outcome_of;

class redis_faults : public testing::Test {
 protected:
  holdfast::session open(const std::string& options = {}) {
    return holdfast::open(server_.url(options));
  }
  /// For calls that keep trying while the store is away.
  holdfast::session impatient(const std::string& options = {}) {
    holdfast::session_options o;
    o.store_timeout = 300ms;
    return holdfast::open(server_.url(options), o);
  }
  harness::redis_server server_;
};

TEST_F(redis_faults, nothing_is_left_behind_when_nobody_holds_or_waits) {
  auto a = open(), b = open();
  holdfast::mutex first{a, "m"}, second{b, "m"};
  holdfast::semaphore permits{a, "s", 3};
  holdfast::shared_mutex rw{a, "rw"};
  first.lock();
  std::thread waiter([&] { second.lock(), second.unlock(); });
  harness::eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
  EXPECT_NE(server_.ask({"DBSIZE"}), "0");
  first.unlock();
  waiter.join();
  {
    auto p = permits.acquire(2);
  }
  rw.lock_shared(), rw.unlock_shared();
  rw.lock(), rw.unlock();
  harness::eventually("an empty server", [&] { return server_.ask({"DBSIZE"}) == "0"; });
}

TEST_F(redis_faults, what_a_dead_session_held_does_not_stay) {
  auto s = open();
  holdfast::lock_options short_lease;
  short_lease.lease = 200ms;
  short_lease.renew = false;
  holdfast::mutex m{s, "m", short_lease};
  auto lease = m.acquire();
  harness::eventually("an empty server", [&] { return server_.ask({"DBSIZE"}) == "0"; });
}

TEST_F(redis_faults, fences_grow_although_nothing_is_kept) {
  auto s = open();
  holdfast::mutex m{s, "m"};
  std::uint64_t last = 0;
  for (int i = 0; i < 200; ++i) {
    if (i % 50 == 49) server_.ask({"FLUSHALL"});
    auto lease = m.acquire();
    ASSERT_GT(lease.fence(), last);
    last = lease.fence();
  }
}

TEST_F(redis_faults, noscript_is_repaired_without_anybody_noticing) {
  auto s = open();
  holdfast::mutex m{s, "m"};
  m.lock();
  server_.ask({"SCRIPT", "FLUSH"});
  m.unlock();
  server_.ask({"SCRIPT", "FLUSH"});
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

TEST_F(redis_faults, a_server_that_was_restarted_is_used_again) {
  auto s = open();
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  server_.kill();
  server_.start();
  EXPECT_TRUE(m.try_lock_for(10s));
  m.unlock();
}

TEST_F(redis_faults, a_closed_idle_connection_costs_the_caller_nothing) {
  auto s = open();
  holdfast::mutex m{s, "m"};
  m.lock();
  server_.ask({"CLIENT", "KILL", "TYPE", "normal"});
  EXPECT_NO_THROW(m.unlock());
  EXPECT_TRUE(m.try_lock());
  server_.ask({"CLIENT", "KILL", "TYPE", "normal"});
  EXPECT_TRUE(s.show("m").holders.size() == 1);
  m.unlock();
}

TEST_F(redis_faults, a_waiter_whose_subscription_was_cut_is_still_served) {
  auto a = open(), b = open();
  holdfast::mutex first{a, "m"}, second{b, "m"};
  first.lock();
  std::thread waiter([&] { second.lock(), second.unlock(); });
  harness::eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
  server_.ask({"CLIENT", "KILL", "TYPE", "pubsub"});
  first.unlock();
  waiter.join();
}

TEST_F(redis_faults, flushall_under_a_holder_is_told_to_the_holder) {
  auto s = open();
  holdfast::mutex m{s, "m"};
  auto lease = m.acquire();
  const auto before = lease.fence();
  server_.ask({"FLUSHALL"});
  EXPECT_EQ(outcome_of([&] { lease.extend(); }).reason, errc::lost);
  EXPECT_TRUE(lease.lost().stop_requested());
  EXPECT_GT(m.acquire().fence(), before);
}

TEST_F(redis_faults, a_key_of_somebody_else_is_left_alone) {
  auto s = open();
  server_.ask({"RPUSH", "holdfast:{list}", "theirs"});
  server_.ask({"SET", "holdfast:{text}", "theirs"});
  server_.ask({"SET", "holdfast:{newer}", "hf9 something"});
  server_.ask({"SET", "holdfast:{torn}", "hf1 mutex 1 5 1 0 0 9999999999999999 0 zz"});
  const auto reason = [&](const char* name) {
    return outcome_of([&] { (void)holdfast::mutex(s, name).try_lock(); }).reason;
  };
  EXPECT_EQ(reason("list"), errc::foreign_data);
  EXPECT_EQ(reason("text"), errc::foreign_data);
  EXPECT_EQ(reason("newer"), errc::newer_format);
  EXPECT_EQ(reason("torn"), errc::corrupt);
  EXPECT_EQ(outcome_of([&] { holdfast::latch(s, "text", 1).count_down(); }).reason,
            errc::foreign_data);
  EXPECT_EQ(server_.ask({"GET", "holdfast:{text}"}), "theirs");
  EXPECT_EQ(server_.ask({"LRANGE", "holdfast:{list}", "0", "-1"}), "theirs");
}

TEST_F(redis_faults, a_latch_and_a_mutex_cannot_share_a_name) {
  auto s = open();
  holdfast::latch l{s, "a", 2};
  l.count_down();
  EXPECT_EQ(outcome_of([&] { (void)holdfast::mutex(s, "a").try_lock(); }).reason,
            errc::kind_mismatch);
  holdfast::mutex m{s, "b"};
  m.lock();
  EXPECT_EQ(outcome_of([&] { holdfast::latch(s, "b", 2).count_down(); }).reason,
            errc::kind_mismatch);
  m.unlock();
}

TEST_F(redis_faults, a_full_server_refuses_locks_and_still_lets_go) {
  auto s = open();
  holdfast::mutex m{s, "m"}, other{s, "other"};
  auto lease = m.acquire();
  server_.ask({"CONFIG", "SET", "maxmemory", "1"});
  const auto refused = outcome_of([&] { (void)other.try_lock(); });
  EXPECT_EQ(refused.reason, errc::no_space) << refused.text;
  EXPECT_TRUE(contains(refused.text, "maxmemory")) << refused.text;
  EXPECT_FALSE(lease.release());
  server_.ask({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_TRUE(other.try_lock());
  other.unlock();
}

TEST_F(redis_faults, a_full_server_renews_nothing_and_forgets_nothing) {
  auto s = open();
  auto lease = holdfast::mutex(s, "m").acquire();
  server_.ask({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(outcome_of([&] { lease.extend(1s); }).reason, errc::no_space);
  EXPECT_EQ(s.show("m").holders.size(), 1U);
  server_.ask({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(redis_faults, a_full_server_hands_over_to_the_one_who_waits) {
  auto s = open();
  holdfast::fair_mutex m{s, "m"};
  auto lease = m.acquire();
  auto next = async_acquire(m).future();
  harness::eventually("it waits", [&] { return s.show("m").waiters.size() == 1; });
  server_.ask({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_FALSE(lease.release());
  EXPECT_TRUE(next.get());
  server_.ask({"CONFIG", "SET", "maxmemory", "0"});
}

TEST(redis_misconf, a_server_that_cannot_save_is_told_as_read_only) {
  const harness::redis_server server({"--dbfilename", "a-folder", "--save", "3600 1"});
  ASSERT_EQ(::mkdir(server.file("a-folder").c_str(), 0700), 0);  // where the file should go
  auto s = holdfast::open(server.url());
  server.ask({"SET", "x", "y"});
  server.ask({"BGSAVE"});
  harness::eventually("a failed save", [&] {
    return contains(server.ask({"INFO", "persistence"}), "rdb_last_bgsave_status:err");
  });
  const auto refused = outcome_of([&] { (void)holdfast::mutex(s, "m").try_lock(); });
  EXPECT_EQ(refused.reason, errc::read_only) << refused.text;
  EXPECT_TRUE(contains(refused.text, "disk")) << refused.text;
}

TEST_F(redis_faults, a_server_that_became_a_replica_is_unavailable_and_may_come_back) {
  auto s = impatient();
  holdfast::mutex m{s, "m"};
  server_.ask({"REPLICAOF", "127.0.0.1", std::to_string(harness::free_port())});
  const auto refused = outcome_of([&] { (void)m.try_lock_for(200ms); });
  EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
  EXPECT_TRUE(contains(refused.text, "READONLY") || contains(refused.text, "replica"))
      << refused.text;
  server_.ask({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(m.try_lock_for(10s));
  m.unlock();
}

TEST_F(redis_faults, a_stopped_server_is_unavailable_within_the_command_timeout) {
  auto s = impatient("?command_timeout=200ms&connect_timeout=200ms");
  holdfast::mutex m{s, "m"};
  m.lock();
  server_.stop();
  const auto refused = outcome_of([&] { (void)s.show("m"); });
  server_.resume();
  EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
  EXPECT_TRUE(refused.retryable);
  harness::eventually("the server again",
                      [&] { return !outcome_of([&] { (void)s.show("m"); }).failed; });
  EXPECT_EQ(s.show("m").holders.size(), 1u);
  m.unlock();
}

TEST_F(redis_faults, a_busy_server_is_unavailable_and_comes_back) {
  auto s = impatient("?command_timeout=2s");
  server_.ask({"CONFIG", "SET", "busy-reply-threshold", "50"});
  std::thread busy([&] { server_.ask({"EVAL", "while true do end", "0"}); });
  harness::eventually("a busy server", [&] { return contains(server_.ask({"PING"}), "BUSY"); });
  const auto refused = outcome_of([&] { (void)holdfast::mutex(s, "m").try_lock(); });
  server_.ask({"SCRIPT", "KILL"});
  busy.join();
  EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
  EXPECT_TRUE(contains(refused.text, "SCRIPT KILL")) << refused.text;
  EXPECT_TRUE(holdfast::mutex(s, "m").try_lock_for(5s));
}

TEST_F(redis_faults, a_dead_server_is_unavailable_in_time_and_used_when_it_is_back) {
  auto s = impatient();
  holdfast::mutex m{s, "m"};
  m.lock(), m.unlock();
  server_.kill();
  const auto refused = outcome_of([&] { m.lock(); });
  EXPECT_EQ(refused.reason, errc::unavailable);
  EXPECT_TRUE(contains(refused.text, "is the server running")) << refused.text;
  server_.start();
  EXPECT_TRUE(m.try_lock_for(10s));
  m.unlock();
}

TEST_F(redis_faults, a_grant_comes_with_its_notice_and_not_with_the_next_look) {
  auto a = open(), b = open();
  holdfast::mutex first{a, "m"}, second{b, "m"};
  int looked = 0;
  for (int i = 0; i < 20; ++i) {
    first.lock();
    std::thread waiter([&] { second.lock(), second.unlock(); });
    harness::eventually("a waiter", [&] { return a.show("m").waiters.size() == 1; });
    const auto before = b.store_operations();
    first.unlock();
    waiter.join();
    // One release, one renewal that claims the grant; a look would be one more.
    looked += b.store_operations() - before > 2 ? 1 : 0;
  }
  EXPECT_LT(looked, 5);
}

}  // namespace
