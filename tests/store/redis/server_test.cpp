#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fixture.hpp"
#include "session/session_impl.hpp"

// Faults of the server, by the server's own names.
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

TEST_F(redis_faults, nothing_is_left_behind_without_holders_or_waiters) {
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

TEST_F(redis_faults, the_locks_of_a_dead_session_do_not_stay) {
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

TEST_F(redis_faults, noscript_is_repaired_unnoticed) {
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

TEST_F(redis_faults, flushall_under_a_holder_is_reported_as_a_loss) {
  auto s = open();
  holdfast::mutex m{s, "m"};
  auto lease = m.acquire();
  const auto before = lease.fence();
  server_.ask({"FLUSHALL"});
  EXPECT_EQ(outcome_of([&] { lease.extend(); }).reason, errc::lost);
  EXPECT_TRUE(lease.lost().stop_requested());
  EXPECT_GT(m.acquire().fence(), before);
}

// A cache evicts single keys. A name that several may hold keeps no count that nobody lowers.
TEST_F(redis_faults, a_key_that_is_evicted_alone_is_a_loss_unless_it_contains_waiters_only) {
  for (const std::string key : {"", ":d", ":q", ":p", ":l"}) {
    SCOPED_TRACE(key);
    const bool of_waiters = key == ":q" || key == ":p";
    auto a = open(), b = open();
    holdfast::semaphore here{a, "several", 3}, there{b, "several", 3};
    auto held = here.acquire(3);
    std::thread waiter([&] { EXPECT_TRUE(there.acquire(2)); });
    harness::eventually("a waiter", [&] { return a.show("several").waiters.size() == 1; });
    server_.ask({"DEL", "holdfast:{several}" + key});
    if (of_waiters) {
      EXPECT_NO_THROW(held.extend());
    } else {
      EXPECT_EQ(outcome_of([&] { held.extend(); }).reason, errc::lost);
    }
    (void)held.release();
    waiter.join();
    EXPECT_TRUE(here.acquire(3));
    EXPECT_TRUE(a.names().empty());
  }
}

TEST_F(redis_faults, a_barrier_of_which_a_key_is_evicted_begins_anew) {
  for (const char* const key : {"", ":d", ":q", ":p", ":l"}) {
    SCOPED_TRACE(key);
    {
      holdfast::barrier two{open(), "all", 3};
      auto first = two.arrive();
      auto second = two.arrive();
      server_.ask({"DEL", std::string("holdfast:{all}") + key});
    }
    holdfast::barrier all{open(), "all", 3};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back([&] { all.arrive_and_wait(); });
    for (auto& t : threads) t.join();
  }
}

TEST_F(redis_faults, the_queue_of_a_lost_record_does_not_come_back_with_the_next_one) {
  const auto key = [](const char* part) { return std::string("holdfast:{m}") + part; };
  const char* const parts[] = {":d", ":q", ":p", ":l"};
  auto s = open(), other = open();
  holdfast::fair_mutex m{s, "m"}, next{other, "m"};
  // A single waiter is a part of the record, and has no queue.
  const auto waiters = [&] {
    std::vector<std::future<holdfast::result<holdfast::lease>>> all;
    for (std::size_t i = 1; i <= 2; ++i) {
      all.push_back(async_acquire(next).future());
      harness::eventually("it waits", [&] { return s.show("m").waiters.size() == i; });
    }
    return all;
  };
  auto held = m.acquire();
  auto before = waiters();
  for (const char* const part : parts) server_.ask({"COPY", key(part), key(part) + "-kept"});
  EXPECT_FALSE(held.release());
  for (auto& one : before) EXPECT_FALSE(one.get().value().release());
  server_.ask({"DEL", key("")});
  for (const char* const part : parts) {
    server_.ask({"DEL", key(part)});
    if (server_.ask({"EXISTS", key(part) + "-kept"}) == "1")
      server_.ask({"RENAME", key(part) + "-kept", key(part)});
  }
  held = m.acquire();
  auto after = waiters();
  EXPECT_FALSE(held.release());
  for (auto& one : after) EXPECT_TRUE(one.get());
}

TEST_F(redis_faults, a_reader_with_a_short_lease_does_not_shorten_redisson_s_lock_for_the_others) {
  const auto reading = [&](std::chrono::seconds lease) {
    holdfast::lock_options options;
    options.lease = lease;
    holdfast::shared_mutex m{open("?dialect=redisson"), "rw", {options}};
    return m.acquire_shared();
  };
  const auto first = reading(30s), second = reading(5s);
  EXPECT_GT(std::stoll(server_.ask({"PTTL", "rw"})), 10'000);
}

TEST_F(redis_faults, a_note_longer_than_any_of_ours_is_not_transferred) {
  auto s = open();
  const std::string note(10'000'000, 'x');
  server_.ask(
      {"SET", "holdfast:{one}",
       "hf1 mutex 1 5 1 0 0 0 0 00000000000000010000000000000001 5 5 8999999999999999 5 0 - " +
           note,
       "PX", "60000"});
  EXPECT_EQ(outcome_of([&] { (void)s.show("one"); }).reason, errc::corrupt);
  holdfast::semaphore several{s, "several", 3};
  const auto held = several.acquire(1);
  const std::string key = "holdfast:{several}:d";
  const auto fields = server_.ask({"HGETALL", key});
  ASSERT_NE(fields, "");
  const auto owner = fields.substr(0, fields.find(' '));
  server_.ask({"HSET", key, owner, "h 1 7 5 0 - h 1 p " + note});
  const auto before = std::stoll(server_.field({"INFO", "stats"}, "total_net_output_bytes"));
  EXPECT_EQ(s.show("several").holders.size(), 1U);
  const auto after = std::stoll(server_.field({"INFO", "stats"}, "total_net_output_bytes"));
  EXPECT_LT(after - before, 1'000'000);
}

TEST_F(redis_faults, a_key_of_another_program_is_left_alone) {
  auto s = open();
  server_.ask({"RPUSH", "holdfast:{list}", "theirs"});
  server_.ask({"SET", "holdfast:{text}", "theirs"});
  server_.ask({"SET", "holdfast:{newer}", "hf9 something"});
  server_.ask({"SET", "holdfast:{torn}", "hf1 mutex 1 5 1 0 0 9999999999999999 0 zz"});
  for (const std::string torn : {"hf1 ", "hf1 mutex", "hf1 latch 3", "hf1 rate_limiter 1", "hf1 ?"})
    server_.ask({"SET", "holdfast:{" + torn + "}", torn});
  const auto reason = [&](const char* name) {
    return outcome_of([&] { (void)holdfast::mutex(s, name).try_lock(); }).reason;
  };
  EXPECT_EQ(reason("list"), errc::foreign_data);
  EXPECT_EQ(reason("text"), errc::foreign_data);
  EXPECT_EQ(reason("newer"), errc::newer_format);
  EXPECT_EQ(reason("torn"), errc::corrupt);
  for (const std::string torn : {"hf1 ", "hf1 mutex", "hf1 ?"}) {
    EXPECT_EQ(reason(torn.c_str()), errc::corrupt) << torn;
  }
  const auto arriving = [&](const char* name) {
    return outcome_of([&] { holdfast::latch(s, name, 1).count_down(); }).reason;
  };
  const auto taking = [&](const char* name) {
    return outcome_of([&] { (void)holdfast::rate_limiter(s, name, {{.tokens = 5}}).try_take(); })
        .reason;
  };
  for (const char* const torn : {"hf1 ", "hf1 mutex", "hf1 latch 3", "hf1 ?"}) {
    EXPECT_EQ(arriving(torn), errc::corrupt) << torn;
  }
  for (const char* const torn : {"hf1 ", "hf1 mutex", "hf1 rate_limiter 1", "hf1 ?"}) {
    EXPECT_EQ(taking(torn), errc::corrupt) << torn;
  }
  EXPECT_EQ(arriving("newer"), errc::newer_format);
  EXPECT_EQ(taking("newer"), errc::newer_format);
  EXPECT_EQ(outcome_of([&] { holdfast::latch(s, "text", 1).count_down(); }).reason,
            errc::foreign_data);
  EXPECT_EQ(server_.ask({"GET", "holdfast:{text}"}), "theirs");
  EXPECT_EQ(server_.ask({"LRANGE", "holdfast:{list}", "0", "-1"}), "theirs");
}

TEST_F(redis_faults, one_unreadable_entry_hides_no_other_entry) {
  auto s = open();
  auto held = holdfast::mutex(s, "good").acquire();
  server_.ask({"RPUSH", "holdfast:{list}", "theirs"});
  server_.ask({"SET", "holdfast:{text}", "theirs"});
  server_.ask({"SET", "holdfast:{newer}", "hf9 something"});
  server_.ask({"SET", "holdfast:{torn}", "hf1 mutex"});
  server_.ask({"SET", "holdfast:{odd\nname}", std::string(1'000'000, 'x')});
  server_.ask({"SET", "holdfast:{\xff}", "theirs"});
  server_.ask({"SET", "holdfast:{}", "theirs"});
  const std::vector<std::string> all{"good", "list", "newer", "odd\nname", "text", "torn", "\xff"};
  EXPECT_EQ(s.names(), all);
  EXPECT_EQ(s.show("good").holders.size(), 1U);
  const auto reason = [&](const char* name) {
    return outcome_of([&] { (void)s.show(name); }).reason;
  };
  EXPECT_EQ(reason("list"), errc::foreign_data);
  EXPECT_EQ(reason("text"), errc::foreign_data);
  EXPECT_EQ(reason("newer"), errc::newer_format);
  EXPECT_EQ(reason("torn"), errc::corrupt);
}

TEST_F(redis_faults, a_bucket_of_impossible_numbers_is_corrupt_and_left_alone) {
  auto s = open();
  holdfast::rate_limiter r{s, "r", {{.tokens = 5, .per = 1h, .name = "all"}}};
  ASSERT_TRUE(r.try_take());
  const auto key = [&] {
    const auto found = server_.ask({"KEYS", "holdfast:{r}:b:*"});
    EXPECT_FALSE(found.empty());
    return found;
  }();
  const auto good = server_.ask({"GET", key});
  ASSERT_EQ(good.size(), 56U);
  const auto spoil = [&](std::size_t number, double by) {
    std::string bad = good;
    std::memcpy(bad.data() + 8 * number, &by, sizeof by);
    return bad;
  };
  constexpr auto inf = std::numeric_limits<double>::infinity();
  std::vector<std::string> bad{"", "short", good + "x"};
  for (std::size_t number = 0; number < 7; ++number) {
    for (const double by : {std::nan(""), inf, -inf, -1.0, 0.5, 1e300}) {
      bad.push_back(spoil(number, by));
    }
  }
  for (std::size_t number = 3; number < 7; ++number) bad.push_back(spoil(number, 0));
  for (const auto& b : bad) {
    server_.ask({"SET", key, b});
    const auto o = outcome_of([&] { (void)r.try_take(); });
    EXPECT_EQ(o.reason, errc::corrupt) << o.text;
    EXPECT_EQ(server_.ask({"GET", key}), b);
  }
}

TEST_F(redis_faults, one_unreadable_bucket_hides_no_other_bucket) {
  auto s = open();
  holdfast::rate_limiter r{s, "r", {{.tokens = 5, .per = 1h, .by = {"client"}, .name = "each"}}};
  ASSERT_TRUE(r.try_take(1, {{"client", "good"}}));
  ASSERT_TRUE(r.try_take(1, {{"client", "bad"}}));
  const auto bad = server_.ask({"KEYS", "holdfast:{r}:b:*bad*"});
  ASSERT_NE(bad, "") << server_.ask({"KEYS", "*"});
  const auto sent = [&] {
    return std::stoll(server_.field({"INFO", "stats"}, "total_net_output_bytes"));
  };
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"SET", bad, "short"},
        std::vector<std::string>{"SET", bad, std::string(5'000'000, 'x')},
        std::vector<std::string>{"RPUSH", bad, "theirs"}}) {
    server_.ask({"DEL", bad});
    server_.ask(words);
    const auto before = sent();
    const auto all = s.buckets("r");
    EXPECT_LT(sent() - before, 1'000'000) << "nobody is sent what is longer than any of ours";
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].rule, "each");
    EXPECT_EQ(all[0].key, std::vector<std::string>{"bad"});
    EXPECT_NE(all[0].error, "");
    EXPECT_EQ(all[1].key, std::vector<std::string>{"good"});
    EXPECT_EQ(all[1].error, "");
    EXPECT_EQ(all[1].remaining, 4U);
    EXPECT_EQ(s.buckets("r", 1).at(0).key, all[0].key) << "also where few are asked for";
  }
  server_.ask({"DEL", bad});
}

TEST_F(redis_faults, a_record_of_impossible_numbers_is_corrupt_and_left_alone) {
  auto s = open();
  const auto others = open();
  const auto held = holdfast::mutex(others, "mutex").acquire();
  const auto permit = holdfast::semaphore(others, "semaphore", 2).acquire();
  holdfast::latch(others, "latch", 99).count_down();
  // A limiter's record ends when all of its buckets are full: not during this test.
  const holdfast::rate_rule limit{.tokens = 99, .per = 1h};
  ASSERT_TRUE(holdfast::rate_limiter(others, "limiter", {limit}).try_take());
  const std::vector<std::pair<std::string, std::function<void()>>> all{
      {"mutex", [&] { (void)holdfast::mutex(s, "mutex").try_acquire(); }},
      {"mutex", [&] { (void)holdfast::mutex(s, "mutex").try_acquire_for(1ms); }},
      {"semaphore", [&] { (void)holdfast::semaphore(s, "semaphore", 2).try_acquire(); }},
      {"latch", [&] { holdfast::latch(s, "latch", 99).count_down(); }},
      {"limiter", [&] { (void)holdfast::rate_limiter(s, "limiter", {limit}).try_take(); }}};
  for (const auto& [name, use] : all) {
    const auto key = "holdfast:{" + name + "}";
    const auto good = server_.ask({"GET", key});
    ASSERT_NE(good, "") << name;
    std::vector<std::string> words;
    std::istringstream reads(good);
    for (std::string word; reads >> word;) words.push_back(word);
    int refused = 0;
    for (std::size_t number = 2; number < words.size(); ++number) {
      if (words[number].find_first_not_of("0123456789") != std::string::npos) continue;
      for (const std::size_t digits : {std::size_t{20}, std::size_t{400}}) {
        std::string bad = words[0];
        for (std::size_t i = 1; i < words.size(); ++i)
          bad += ' ' + (i == number ? std::string(digits, '9') : words[i]);
        SCOPED_TRACE(bad);
        server_.ask({"SET", key, bad});
        const auto o = outcome_of(use);
        if (!o.failed) continue;
        ++refused;
        EXPECT_TRUE(o.reason == errc::corrupt || o.reason == errc::kind_mismatch ||
                    o.reason == errc::capacity_mismatch)
            << o.text;
        EXPECT_EQ(server_.ask({"GET", key}), bad);
      }
    }
    EXPECT_GT(refused, 0) << name;
    server_.ask({"SET", key, good, "PX", "60000"});
  }
}

TEST_F(redis_faults, a_shared_name_expires_also_when_all_its_users_have_died) {
  auto s = open();
  const auto asks = [&](std::uint64_t number) {
    holdfast::store::permits_command c;
    c.verb = holdfast::store::permits_verb::acquire;
    c.owner = {7, number};
    c.kind = holdfast::store::kind::semaphore;
    c.capacity = c.weight = 2;
    c.wait = true;
    c.lease_us = c.queue_lease_us = 60'000'000;
    c.peer = "nobody";
    return s.impl()->permits("s", c).value().outcome;
  };
  using holdfast::store::permits_outcome;
  EXPECT_EQ(asks(1), permits_outcome::granted);
  EXPECT_EQ(asks(2), permits_outcome::queued);
  EXPECT_EQ(asks(3), permits_outcome::queued);
  holdfast::store::permits_command c;
  c.verb = holdfast::store::permits_verb::release;
  c.owner = {7, 1};
  EXPECT_EQ(s.impl()->permits("s", c).value().outcome, permits_outcome::done);
  EXPECT_EQ(s.show("s").holders.size(), 1U);
  EXPECT_EQ(server_.keys_for_ever(), "");
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

/// A name whose users have all died: its record outlives them.
class redis_dead_users : public redis_faults {
 protected:
  using kind = holdfast::store::kind;
  static constexpr std::chrono::microseconds lease = 10s;

  void asks(kind what, std::uint32_t capacity, std::uint64_t owner, bool waits = false) {
    holdfast::store::permits_command c;
    c.verb = holdfast::store::permits_verb::acquire;
    c.owner = {7, owner};
    c.kind = what;
    c.capacity = capacity;
    c.wait = waits;
    c.lease_us = c.queue_lease_us = lease.count();
    c.peer = "nobody";
    (void)session_.impl()->permits("m", c).value();
  }
  /// The name is in use, so another kind does not fit; a moment later it is free.
  void expect_used_until_they_end() {
    EXPECT_EQ(session_.names().size(), 1u);
    EXPECT_EQ(outcome_of([&] { arrive(); }).reason, errc::kind_mismatch);
    EXPECT_EQ(outcome_of([&] { take(); }).reason, errc::kind_mismatch);
    server_.shift_clock(lease + 1s);
    EXPECT_TRUE(session_.names().empty()) << "nobody has it";
  }
  void arrive() { holdfast::latch(session_, "m", 1).count_down(); }
  void take() {
    holdfast::rate_limiter limiter(session_, "m", {{.tokens = 5, .per = 1h}});
    EXPECT_TRUE(limiter.try_take());
  }

  const holdfast::session session_ = open("?command_timeout=60s");
};

TEST_F(redis_faults, show_and_names_keep_the_history_of_the_leaders) {
  auto s = open(), other = open();
  {
    const auto first = holdfast::election{s, "e"}.campaign();
  }
  const std::string history = "holdfast:{e}:l";
  const auto before = server_.ask({"ZRANGE", history, "0", "-1", "WITHSCORES"});
  ASSERT_NE(before, "");
  EXPECT_TRUE(other.show("e").holders.empty());
  EXPECT_TRUE(other.names().empty());
  EXPECT_EQ(server_.ask({"ZRANGE", history, "0", "-1", "WITHSCORES"}), before);
}

TEST_F(redis_faults, arrivals_at_a_latch_that_is_over_are_no_leaders_of_an_election) {
  auto s = open();
  holdfast::latch all{s, "e", 30};
  for (int i = 0; i < 20; ++i) all.count_down();
  all.remove();
  const auto leader = holdfast::election{s, "e"}.campaign();
  EXPECT_EQ(server_.ask({"ZCARD", "holdfast:{e}:l"}), "1");
}

// docs/security.md has these rights.
TEST_F(redis_faults, a_read_only_user_sees_names_that_are_free) {
  server_.ask({"ACL",
               "SETUSER",
               "watcher",
               "on",
               ">pw",
               "~holdfast:*",
               "&holdfast:inbox:*",
               "+hello",
               "+auth",
               "+select",
               "+ping",
               "+info",
               "+evalsha",
               "+script|load",
               "+subscribe",
               "+time",
               "+scan",
               "+get",
               "+getrange",
               "+mget",
               "+hget",
               "+hmget",
               "+zrange",
               "+zrangebyscore",
               "+zrank",
               "+zscore"});
  auto s = open();
  {
    const auto held = holdfast::mutex{s, "m"}.acquire();
  }
  {
    const auto leads = holdfast::election{s, "e"}.campaign();
  }
  auto watcher = holdfast::open("redis://watcher:pw@127.0.0.1:" + std::to_string(server_.port()));
  EXPECT_TRUE(watcher.show("m").holders.empty());
  EXPECT_TRUE(watcher.show("e").holders.empty());
  EXPECT_TRUE(watcher.show("never").holders.empty());
  EXPECT_TRUE(watcher.names().empty());
}

TEST_F(redis_dead_users, of_a_semaphore_leave_its_name_for_a_latch) {
  asks(kind::semaphore, 5, 1);
  asks(kind::semaphore, 5, 2);
  expect_used_until_they_end();
  arrive();
  EXPECT_EQ(session_.names().size(), 1u) << "the latch";
}

TEST_F(redis_dead_users,
       of_a_semaphore_leave_its_name_for_a_limiter_which_may_be_a_semaphore_again) {
  asks(kind::semaphore, 5, 1);
  expect_used_until_they_end();
  take();
  EXPECT_EQ(session_.names().size(), 1u) << "the limiter";
  server_.shift_clock(2h);
  holdfast::semaphore s{session_, "m", 5};
  EXPECT_TRUE(s.try_acquire(5)) << "nothing of the first one is left";
}

TEST_F(redis_dead_users, of_a_mutex_with_a_waiter_leave_its_name_for_others) {
  asks(kind::mutex, 1, 1);
  asks(kind::mutex, 1, 2, true);
  expect_used_until_they_end();
  take();
}

TEST_F(redis_dead_users, of_a_mutex_with_waiters_leave_its_name_for_others) {
  for (std::uint64_t owner = 1; owner < 4; ++owner) asks(kind::mutex, 1, owner, owner > 1);
  expect_used_until_they_end();
  arrive();
}

// The holder is dead, and the waiter lives: it is still a semaphore.
TEST_F(redis_dead_users, leave_a_name_to_its_waiters) {
  for (const auto what : {kind::semaphore, kind::mutex}) {
    server_.ask({"FLUSHALL"});
    server_.shift_clock(0s);
    const std::uint32_t capacity = what == kind::mutex ? 1 : 5;
    asks(what, capacity, 1);
    server_.shift_clock(lease / 2);
    for (std::uint64_t owner = 2; owner < 8; ++owner) asks(what, capacity, owner, true);
    server_.shift_clock(lease + 1s);
    EXPECT_EQ(session_.names().size(), 1u);
    EXPECT_EQ(outcome_of([&] { arrive(); }).reason, errc::kind_mismatch);
    EXPECT_EQ(outcome_of([&] { take(); }).reason, errc::kind_mismatch);
  }
}

TEST_F(redis_faults, a_full_server_refuses_locks_and_accepts_releases) {
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

TEST_F(redis_faults, a_full_server_hands_over_to_the_waiter) {
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

TEST_F(redis_faults, a_full_server_answers_holders_and_waiters) {
  using holdfast::store::permits_outcome;
  auto s = open();
  for (const bool several : {false, true}) {
    const std::string name = several ? "several" : "one";
    const auto command = [&](holdfast::store::permits_verb verb, std::uint64_t number) {
      holdfast::store::permits_command c;
      c.verb = verb;
      c.owner = {7, number};
      c.kind = several ? holdfast::store::kind::semaphore : holdfast::store::kind::mutex;
      c.capacity = c.weight = several ? 2 : 1;
      c.wait = true;
      c.lease_us = c.queue_lease_us = 60'000'000;
      const std::string peer = "peer-" + std::to_string(number);
      c.peer = peer;
      return s.impl()->permits(name, c);
    };
    const auto ask = [&](std::uint64_t number) {
      return command(holdfast::store::permits_verb::acquire, number);
    };
    const auto refuses = [&](std::uint64_t number) {
      const auto answer = ask(number);
      return !answer && answer.error().code == errc::no_space;
    };
    const auto let_go = [&](std::uint64_t number) {
      return command(holdfast::store::permits_verb::release, number).value().outcome;
    };
    ASSERT_EQ(ask(1).value().outcome, permits_outcome::granted);
    for (const std::uint64_t waits : {std::uint64_t{2}, std::uint64_t{3}}) {
      ASSERT_EQ(ask(waits).value().outcome, permits_outcome::queued);
    }
    server_.ask({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_EQ(ask(1).value().outcome, permits_outcome::granted);
    EXPECT_EQ(ask(2).value().outcome, permits_outcome::queued);
    EXPECT_EQ(ask(3).value().outcome, permits_outcome::queued);
    EXPECT_TRUE(refuses(4));
    EXPECT_EQ(let_go(1), permits_outcome::done);
    const auto second = ask(2).value();  // it was notified, and claims the lock
    EXPECT_EQ(second.outcome, permits_outcome::granted);
    EXPECT_EQ(second.expires_at - second.now_at, 60'000'000);
    EXPECT_EQ(ask(3).value().outcome, permits_outcome::queued);  // alone by now
    EXPECT_EQ(let_go(2), permits_outcome::done);
    EXPECT_EQ(ask(3).value().outcome, permits_outcome::granted);
    EXPECT_EQ(let_go(3), permits_outcome::done);
    server_.ask({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_TRUE(s.show(name).holders.empty());
  }
}

TEST(redis_misconf, a_server_that_cannot_save_is_reported_as_read_only) {
  const harness::redis_server server({"--dbfilename", "a-folder", "--save", "3600 1"});
  ASSERT_EQ(::mkdir(server.file("a-folder").c_str(), 0700), 0);  // in the place of the file
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
  const auto refused = outcome_of([&] { m.lock(); });
  EXPECT_EQ(refused.reason, errc::unavailable) << refused.text;
  EXPECT_TRUE(contains(refused.text, "READONLY") || contains(refused.text, "replica"))
      << refused.text;
  server_.ask({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(m.try_lock_for(10s));
  m.unlock();
}

TEST_F(redis_faults, a_stopped_server_is_unavailable_within_the_command_timeout) {
  auto s = impatient("?command_timeout=500ms");
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

TEST_F(redis_faults, a_grant_comes_with_its_notification_and_not_with_the_next_poll) {
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
    // One release, one renewal that claims the grant; a poll would be one more.
    looked += b.store_operations() - before > 2 ? 1 : 0;
  }
  EXPECT_LT(looked, 5);
}

}  // namespace
