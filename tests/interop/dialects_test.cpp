#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <holdfast/holdfast.hpp>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "harness/eventually.hpp"
#include "harness/failing.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/redis_server.hpp"
#include "session/session_impl.hpp"

// The layouts of other programs, seen from the server.
namespace interop_test {
namespace {

using namespace std::chrono_literals;
using harness::contains;
using harness::outcome_of;
using holdfast::errc;
using holdfast::lease;
using holdfast::mutex;

class warnings final : public holdfast::observer {
 public:
  void on_event(const holdfast::event& e) override {
    if (e.kind == holdfast::event_kind::warning) text += e.detail;
  }
  std::string text;
};

class dialects : public testing::Test {
 protected:
  holdfast::session open(const std::string& dialect, holdfast::session_options o = {}) const {
    if (dialect.starts_with("setnx")) server_.may_stay("*", "the time of setnx is a key for ever");
    if (dialect.ends_with("fenced"))
      server_.may_stay("redisson_lock_token:*", "so that the tokens grow");
    return holdfast::open(server_.url("?dialect=" + dialect), std::move(o));
  }
  std::string ask(const std::vector<std::string>& words) const { return server_.ask(words); }
  /// Microseconds since 1970 on the server's clock.
  long long server_time() const {
    const auto t = ask({"TIME"});
    const auto space = t.find(' ');
    return std::stoll(t.substr(0, space)) * 1'000'000 + std::stoll(t.substr(space + 1));
  }

  harness::redis_server server_;
};

// ---- redlock

TEST_F(dialects, redlock_is_the_plain_key_with_a_token_and_an_end) {
  const auto session = open("redlock");
  lease held = mutex(session, "orders:1", {.lease = 10s}).acquire();
  EXPECT_EQ(ask({"GET", "orders:1"}).substr(0, 8), held.short_id());
  const auto left = std::stoi(ask({"PTTL", "orders:1"}));
  EXPECT_GT(left, 5'000);
  EXPECT_LE(left, 10'000);
  EXPECT_EQ(ask({"SET", "orders:1", "theirs", "NX", "PX", "1000"}), "nil");
  EXPECT_EQ(ask({"DBSIZE"}), "1") << "nothing else is left on the server";
  EXPECT_FALSE(held.release());
  EXPECT_EQ(ask({"EXISTS", "orders:1"}), "0");
}

TEST_F(dialects, redlock_of_another_program_keeps_us_out_until_its_end_and_is_never_removed) {
  const auto session = open("redlock");
  mutex orders(session, "orders");
  ASSERT_EQ(ask({"SET", "orders", "theirs", "NX", "PX", "100000"}), "OK");
  EXPECT_FALSE(orders.try_lock());
  EXPECT_FALSE(orders.try_lock_for(20ms));
  EXPECT_EQ(session.show("orders").holders.at(0).reason, "theirs");
  EXPECT_EQ(session.force_release("orders"), 0u) << "it is theirs";
  EXPECT_EQ(ask({"GET", "orders"}), "theirs");
  ask({"PEXPIRE", "orders", "1"});
  orders.lock();
  orders.unlock();
}

TEST_F(dialects, redlock_that_another_program_took_is_lost_and_left_to_it) {
  const auto session = open("redlock");
  for (const bool extends : {true, false}) {
    lease held = mutex(session, "orders").acquire();
    ask({"SET", "orders", "theirs"});
    if (extends) {
      EXPECT_EQ(outcome_of([&] { held.extend(); }).reason, errc::lost);
    } else {
      EXPECT_EQ(held.release(), make_error_code(errc::lost));
    }
    EXPECT_EQ(ask({"GET", "orders"}), "theirs");
    ask({"DEL", "orders"});
  }
}

// A renewal shortens a lease again that somebody has extended.
TEST_F(dialects, redlock_is_renewed_like_any_lease) {
  const auto session = open("redlock");
  const lease held = mutex(session, "orders", {.lease = 6s}).acquire();
  ask({"PEXPIRE", "orders", "1000000"});
  harness::eventually("renewed", [&] {
    const auto left = std::stoi(ask({"PTTL", "orders"}));
    return left > 0 && left <= 6'000;
  });
}

TEST_F(dialects, a_key_is_the_unchanged_name_after_the_prefix_of_the_url) {
  const auto session = holdfast::open(server_.url("?dialect=redlock&prefix=mutex:"));
  const lease held = mutex(session, "a {b} %c").acquire();
  EXPECT_EQ(ask({"EXISTS", "mutex:a {b} %c"}), "1");
}

// ---- existing keys

TEST_F(dialects, a_key_of_another_layout_is_named_and_left_as_it_is) {
  ask({"RPUSH", "list", "x"});
  ask({"SET", "page", "<html>"});
  ask({"SET", "time", "1700000000"});
  ask({"SET", "token", "theirs", "PX", "100000"});
  ask({"HSET", "user", "name", "ann"});
  ask({"HSET", "rw", "mode", "read"});
  ask({"HSET", "java", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1"});
  (void)mutex(holdfast::open(server_.url()), "ours").acquire();
  const std::string all = ask({"DEBUG", "DIGEST"});
  const std::vector<std::tuple<std::string, std::string, std::string>> wrong{
      {"redlock", "list", "list"},
      {"redlock", "user", "hash"},
      {"redlock", "time", "1700000000"},
      {"redlock", "java", "hash"},
      {"redlock", "holdfast:{ours}", "record"},
      {"redisson", "list", "list"},
      {"redisson", "page", "string"},
      {"redisson", "user", "name"},
      {"redisson", "rw", "read-write"},
      {"redisson", "token", "string"},
      {"setnx", "list", "list"},
      {"setnx", "page", "<html>"},
      {"setnx", "token", "theirs"},
      {"setnx", "java", "hash"}};
  for (const auto& [dialect, name, found] : wrong) {
    const auto session = open(dialect);
    const auto refused = outcome_of([&] { mutex(session, name).lock(); });
    EXPECT_EQ(refused.reason, errc::kind_mismatch) << dialect << " " << name;
    EXPECT_TRUE(contains(refused.text, found)) << refused.text;
  }
  EXPECT_EQ(ask({"DEBUG", "DIGEST"}), all);
}

// Nobody has a use for the whole of it either.
TEST_F(dialects, a_value_longer_than_any_of_a_lock_is_not_transferred) {
  const std::string page(3'000'000, 'x'), digits(3'000'000, '1');
  const auto used_as = [](auto use) {
    return [use](const holdfast::session& s) { (void)outcome_of([&] { use(s); }); };
  };
  const auto lock = used_as([](const auto& s) { (void)mutex(s, "m").try_lock(); });
  const auto fair = used_as([](const auto& s) { (void)holdfast::fair_mutex(s, "m").try_lock(); });
  const auto show = used_as([](const auto& s) { (void)s.show("m"); });
  const auto read =
      used_as([](const auto& s) { (void)holdfast::shared_mutex(s, "m").try_lock_shared(); });
  const auto permit =
      used_as([](const auto& s) { (void)holdfast::semaphore(s, "m", 3).try_acquire(); });
  const auto latch = used_as([](const auto& s) { holdfast::latch(s, "m", 3).count_down(); });
  const auto take = used_as([](const auto& s) {
    (void)holdfast::rate_limiter(s, "m", {{.tokens = 5, .per = 1s}}).try_take();
  });
  using words = std::vector<std::string>;
  const std::vector<std::tuple<std::string, std::vector<words>,
                               std::vector<std::function<void(const holdfast::session&)>>>>
      all{{"redlock", {{"SET", "m", page, "PX", "100000"}}, {lock, show}},
          {"redlock", {{"SET", "m", digits}}, {lock, show}},
          {"setnx", {{"SET", "m", page}}, {lock, show}},
          {"setnx", {{"SET", "m", digits}}, {lock, show}},
          {"redisson", {{"SET", "m", page}}, {lock, fair, read, permit, latch, take, show}},
          {"redisson", {{"HSET", "m", page, "1"}}, {lock, fair, show}},
          {"redisson", {{"HSET", "m", digits + ":1", "1"}}, {lock, fair, show}},
          {"redisson", {{"HSET", "m", "mode", "read", page, "1"}}, {lock, read, show}},
          {"redisson", {{"HSET", "m", "mode", "write", page, "1"}}, {lock, read, show}},
          {"redisson",
           {{"RPUSH", "redisson_lock_queue:{m}", page},
            {"ZADD", "redisson_lock_timeout:{m}", "9999999999999", page}},
           {fair}},
          {"redisson",
           {{"SET", "m", "1"}, {"ZADD", "{m}:timeout", "9999999999999", page}},
           {permit, show}},
          {"redisson", {{"HSET", "m", "rate", page, "interval", "1", "type", "0"}}, {take}},
          {"redisson",
           {{"HSET", "m", "rate", "5", "interval", "1000", "type", "0"},
            {"SET", "{m}:value", page}},
           {take}},
          {"redisson&redisson_lock=fenced", {{"SET", "redisson_lock_token:{m}", page}}, {lock}}};
  for (const auto& [dialect, made_by, uses] : all) {
    const auto session = open(dialect);
    ask({"FLUSHALL"});
    for (const auto& one : made_by) ASSERT_FALSE(ask(one).starts_with("-")) << one[0];
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const auto sent = [&] {
        return std::stoll(server_.field({"INFO", "stats"}, "total_net_output_bytes"));
      };
      const auto before = sent();
      uses[i](session);
      EXPECT_LT(sent() - before, 1'000'000) << dialect << ' ' << made_by[0][0] << ", use " << i;
    }
  }
  ask({"FLUSHALL"});
}

TEST_F(dialects, a_primitive_that_a_dialect_lacks_is_refused_by_name) {
  for (const std::string dialect : {"redlock", "redisson", "setnx"}) {
    const auto session = open(dialect);
    for (const auto& refused : {outcome_of([&] { holdfast::election(session, "a"); }),
                                outcome_of([&] { holdfast::barrier(session, "a", 2); }),
                                outcome_of([&] { (void)session.names(); })}) {
      EXPECT_EQ(refused.reason, errc::unsupported) << refused.text;
      EXPECT_TRUE(contains(refused.text, "dialect=" + dialect)) << refused.text;
    }
    EXPECT_FALSE(session.can().fences);
  }
  for (const std::string dialect : {"redlock", "setnx"}) {
    const auto session = open(dialect);
    for (const auto& refused : {outcome_of([&] { holdfast::fair_mutex(session, "a"); }),
                                outcome_of([&] { holdfast::rate_limiter(session, "a", {{}}); }),
                                outcome_of([&] { holdfast::counting_semaphore(session, "a", 2); }),
                                outcome_of([&] { holdfast::expiring_semaphore(session, "a", 2); }),
                                outcome_of([&] { holdfast::shared_mutex(session, "a"); }),
                                outcome_of([&] { holdfast::latch(session, "a", 2); })}) {
      EXPECT_EQ(refused.reason, errc::unsupported) << refused.text;
      EXPECT_TRUE(contains(refused.text, "dialect=" + dialect)) << refused.text;
    }
  }
}

TEST_F(dialects, options_that_do_not_fit_are_refused) {
  for (const char* bad : {"?dialect=redlok", "?dialect=redlock&ack=all", "?setnx_unit=ms",
                          "?redisson_lock=fenced", "?dialect=redisson&redisson_lock=fair",
                          "?dialect=setnx&setnx_unit=h", "?dialect=redisson&setnx_unit=ms"}) {
    EXPECT_EQ(harness::outcome_of_opening(server_.url(bad)).reason, errc::invalid_argument) << bad;
  }
}

/// Texts that Lua reads as numbers, and texts that nobody does.
const std::vector<std::string> no_numbers{
    "nan", "-nan", "inf", "-inf", "abc", "1e300", "0x10", "-7.5", "99999999999999999999"};

/// Data that somebody has damaged, and a call that uses it. BAD stands for a text that is not a
/// number.
struct damaged {
  const char* what;
  const char* dialect;
  std::vector<std::vector<std::string>> made_by;
  void (*use)(const holdfast::session&);
  std::vector<std::string> with = no_numbers;
};

void use_mutex(const holdfast::session& s) { (void)mutex(s, "m").try_acquire(); }
void use_fair_mutex(const holdfast::session& s) {
  (void)holdfast::fair_mutex(s, "m").try_acquire();
}
void use_semaphore(const holdfast::session& s) {
  (void)holdfast::semaphore(s, "m", 3).try_acquire();
}
void use_permit(const holdfast::session& s) {
  (void)holdfast::expiring_semaphore(s, "m", 3).try_acquire(60s);
}
void use_latch(const holdfast::session& s) { holdfast::latch(s, "m", 3).count_down(); }
void use_limiter(const holdfast::session& s) {
  (void)holdfast::rate_limiter(s, "m", {{.tokens = 5}}).try_take(5);
}
void use_limiter_s_refund(const holdfast::session& s) {
  holdfast::rate_limiter(s, "m", {{.tokens = 5}}).refund(1);
}

const std::string dead_owner = "0000000000000007000000000000000b";
const std::vector<std::string> limiter{"HSET", "m", "rate",          "5", "interval", "1000",
                                       "type", "0", "keepAliveTime", "0"};
const std::vector<std::string> no_times{"inf", "1e300"};
const std::vector<std::string> no_requests{"", "x", "\x05too", "\xff"};

const std::vector<damaged>& all_damaged() {
  static const std::vector<damaged> all{
      {"the time of an end", "setnx", {{"SET", "m", "BAD"}}, use_mutex},
      {"a token",
       "redisson&redisson_lock=fenced",
       {{"SET", "redisson_lock_token:{m}", "BAD"}},
       use_mutex},
      {"when a waiter is given up",
       "redisson",
       {{"RPUSH", "redisson_lock_queue:{m}", "theirs:1"},
        {"ZADD", "redisson_lock_timeout:{m}", "BAD", "theirs:1"}},
       use_fair_mutex,
       no_times},
      {"how many permits are free", "redisson", {{"SET", "m", "BAD"}}, use_semaphore},
      {"how many permits are free, of those that expire",
       "redisson",
       {{"SET", "m", "BAD"}},
       use_permit},
      {"how many our holders have",
       "redisson",
       {{"SET", "m", "2"}, {"HSET", "{m}:holdfast:permits", "held", "BAD"}},
       use_semaphore},
      {"of how many that is",
       "redisson",
       {{"SET", "m", "2"}, {"HSET", "{m}:holdfast:permits", "held", "1", "capacity", "BAD"}},
       use_semaphore},
      {"how many a dead holder of ours had",
       "redisson",
       {{"SET", "m", "2"},
        {"HSET", "{m}:holdfast:permits", "held", "1", "capacity", "3", dead_owner, "BAD"},
        {"ZADD", "{m}:holdfast:ends", "1", dead_owner}},
       use_semaphore},
      {"more than all have",
       "redisson",
       {{"SET", "m", "2"},
        {"HSET", "{m}:holdfast:permits", "held", "1", "capacity", "3", dead_owner, "BAD"},
        {"ZADD", "{m}:holdfast:ends", "1", dead_owner}},
       use_semaphore,
       {"2"}},
      {"when a holder of ours ends",
       "redisson",
       {{"SET", "m", "2"},
        {"HSET", "{m}:holdfast:permits", "held", "1", "capacity", "3", dead_owner, "1"},
        {"ZADD", "{m}:holdfast:ends", "BAD", dead_owner}},
       use_semaphore,
       no_times},
      {"a count of arrivals", "redisson", {{"SET", "m", "BAD"}}, use_latch},
      {"from how many is counted", "redisson", {{"SET", "{m}:holdfast", "BAD"}}, use_latch},
      {"a rate", "redisson", {limiter, {"HSET", "m", "rate", "BAD"}}, use_limiter},
      {"an interval", "redisson", {limiter, {"HSET", "m", "interval", "BAD"}}, use_limiter},
      {"how long a limiter is kept",
       "redisson",
       {limiter, {"HSET", "m", "keepAliveTime", "BAD"}},
       use_limiter},
      {"what is left of a rate", "redisson", {limiter, {"SET", "{m}:value", "BAD"}}, use_limiter},
      {"a request that has ended",
       "redisson",
       {limiter, {"SET", "{m}:value", "0"}, {"ZADD", "{m}:permits", "1", "BAD"}},
       use_limiter,
       no_requests},
      {"a request",
       "redisson",
       {limiter, {"SET", "{m}:value", "0"}, {"ZADD", "{m}:permits", "900000000000000", "BAD"}},
       use_limiter,
       no_requests},
      {"a request beside one that is given back",
       "redisson",
       {limiter, {"SET", "{m}:value", "0"}, {"ZADD", "{m}:permits", "900000000000000", "BAD"}},
       use_limiter_s_refund,
       no_requests},
      {"the time of a request",
       "redisson",
       {limiter,
        {"SET", "{m}:value", "5"},
        {"ZADD", "{m}:permits", "BAD", std::string("\1x\1\0\0\0", 6)}},
       use_limiter,
       no_times},
  };
  return all;
}

TEST_F(dialects, a_value_of_impossible_numbers_is_named_and_left_alone) {
  for (const auto& one : all_damaged()) {
    const auto session = open(one.dialect);
    for (const auto& bad : one.with) {
      SCOPED_TRACE(one.what + std::string(": ") + bad);
      ask({"FLUSHALL"});
      for (auto words : one.made_by) {
        std::replace(words.begin(), words.end(), std::string("BAD"), bad);
        ASSERT_FALSE(ask(words).starts_with("-"));
      }
      const auto before = ask({"DEBUG", "DIGEST"});
      const auto refused = outcome_of([&] { one.use(session); });
      EXPECT_EQ(refused.reason, errc::kind_mismatch) << refused.text;
      EXPECT_TRUE(contains(refused.text, "'m'")) << refused.text;
      EXPECT_EQ(ask({"DEBUG", "DIGEST"}), before);
    }
  }
  ask({"FLUSHALL"});
}

// A script that looked for all their entries would block the server, and could not be ended.
TEST_F(dialects, a_reader_beside_one_with_an_impossible_count_writes_nothing) {
  const auto session = open("redisson");
  for (const std::string times : {"nan", "inf", "abc", "1e300", "-1", "100001", "1000000000000"}) {
    SCOPED_TRACE(times);
    ask({"FLUSHALL"});
    ask({"HSET", "m", "mode", "read", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", times});
    ask({"PEXPIRE", "m", "1000000"});
    holdfast::shared_mutex m(session, "m");
    auto held = m.acquire_shared();
    const auto before = ask({"DEBUG", "DIGEST"});
    const auto refused = outcome_of([&] { (void)m.try_upgrade(held); });
    EXPECT_EQ(refused.reason, errc::kind_mismatch) << refused.text;
    EXPECT_TRUE(contains(refused.text, "'m'") && contains(refused.text, times)) << refused.text;
    EXPECT_EQ(held.release(), make_error_code(errc::kind_mismatch));
    EXPECT_EQ(ask({"DEBUG", "DIGEST"}), before);
  }
  ask({"FLUSHALL"});
}

TEST_F(dialects, a_key_of_ours_without_an_expiry_is_found_among_keys_of_others) {
  server_.may_stay("*", "this test looks at what that means");
  const auto write = [&](const std::string& key) {
    ask({"EVAL", "return redis.call('SET', KEYS[1], 1)", "1", key});
  };
  write("theirs");
  EXPECT_EQ(server_.keys_for_ever(), "");
  write("{theirs}:holdfast:ends");
  EXPECT_TRUE(contains(server_.keys_for_ever(), "{theirs}:holdfast:ends"))
      << server_.keys_for_ever();
  ask({"DEL", "{theirs}:holdfast:ends"});
}

// ---- setnx

TEST_F(dialects, setnx_holds_the_time_of_its_end_and_no_other) {
  const auto watcher = std::make_shared<warnings>();
  const auto session = open("setnx", {.observer = watcher});
  EXPECT_TRUE(contains(watcher->text, "clock")) << watcher->text;
  const auto before = server_time();
  lease held = mutex(session, "orders", {.lease = 10s}).acquire();
  const auto ends = std::stoll(ask({"GET", "orders"})) * 1'000'000;
  EXPECT_GE(ends, before + 9'000'000);
  EXPECT_LE(ends, server_time() + 11'000'000);
  EXPECT_EQ(ask({"PTTL", "orders"}), "-1");
  EXPECT_EQ(ask({"SETNX", "orders", "1"}), "0");
  EXPECT_FALSE(held.release());
  EXPECT_EQ(ask({"EXISTS", "orders"}), "0");
}

TEST_F(dialects, setnx_that_has_ended_is_taken_over_and_otherwise_awaited) {
  const auto session = open("setnx&setnx_unit=ms");
  mutex orders(session, "orders", {.lease = 5s});
  ask({"SETNX", "orders", std::to_string(server_time() / 1'000 + 60'000)});
  EXPECT_FALSE(orders.try_lock_for(20ms));
  ask({"SET", "orders", std::to_string(server_time() / 1'000 - 1)});
  EXPECT_TRUE(orders.try_lock());
  EXPECT_GT(std::stoll(ask({"GET", "orders"})), server_time() / 1'000);
  orders.unlock();
}

TEST_F(dialects, setnx_that_was_taken_over_is_not_released_by_the_former_holder) {
  const auto session = open("setnx");
  lease held = mutex(session, "orders").acquire();
  const auto theirs = std::to_string(server_time() / 1'000'000 + 777);
  ask({"GETSET", "orders", theirs});
  EXPECT_EQ(held.release(), make_error_code(errc::lost));
  EXPECT_EQ(ask({"GET", "orders"}), theirs);
}

TEST_F(dialects, setnx_whose_renewal_was_carried_out_without_an_answer_is_still_held) {
  harness::fault_proxy network(server_.port());
  server_.may_stay("orders", "the time of setnx is a key for ever");
  const auto url = "redis://127.0.0.1:" + std::to_string(network.port()) + "?dialect=setnx";
  for (const bool milliseconds : {true, false}) {
    const auto session = holdfast::open(url + (milliseconds ? "&setnx_unit=ms" : ""));
    lease held = mutex(session, "orders", {.renew = false}).acquire();
    const auto before = ask({"GET", "orders"});
    for (int i = 0; i < 3; ++i) {
      network.with([](auto& relay) { relay.cut_after(harness::way::down, 0); });
      EXPECT_NO_THROW(held.extend());
    }
    EXPECT_GT(network.count().cut, 0u) << "no answer was lost";
    EXPECT_GE(std::stoll(ask({"GET", "orders"})), std::stoll(before));
    EXPECT_FALSE(held.release());
    EXPECT_EQ(ask({"EXISTS", "orders"}), "0");
  }
}

TEST_F(dialects, setnx_that_is_renewed_ends_little_later_than_its_lease) {
  const auto session = open("setnx");
  lease held = mutex(session, "orders", {.lease = 10s, .renew = false}).acquire();
  for (int i = 0; i < 20; ++i) held.extend();
  const auto ends = std::stoll(ask({"GET", "orders"})) * 1'000'000;
  EXPECT_GE(ends, server_time() + 5'000'000);
  EXPECT_LE(ends, server_time() + 13'000'000);
}

// The first of its two faults: a client with a fast clock finds the lease ended.
TEST_F(dialects, setnx_lets_a_client_with_a_fast_clock_steal_a_lock_that_is_held) {
  const auto session = open("setnx");
  lease held = mutex(session, "orders", {.lease = 10s}).acquire();
  const long long its_clock = server_time() / 1'000'000 + 3'600;
  ASSERT_EQ(ask({"SETNX", "orders", std::to_string(its_clock + 11)}), "0");
  ASSERT_LT(std::stoll(ask({"GET", "orders"})), its_clock) << "so it thinks that it has ended";
  const auto before = std::stoll(ask({"GETSET", "orders", std::to_string(its_clock + 11)}));
  EXPECT_LT(before, its_clock) << "and that it has it: two are in";
  EXPECT_EQ(outcome_of([&] { held.extend(); }).reason, errc::lost) << "which we notice, too late";
}

// The second fault: two clients find it ended. The one that comes second with GETSET does not get
// the lock, but its time is in the key, and the winner cannot release it.
TEST_F(dialects, setnx_lets_a_loser_write_over_the_winner_s_time) {
  const auto session = open("setnx");
  ask({"SET", "orders", "1000"});
  const auto seen_by_both = ask({"GET", "orders"});
  lease held = mutex(session, "orders").acquire();
  const auto its_time = std::to_string(server_time() / 1'000'000 + 61);
  EXPECT_NE(ask({"GETSET", "orders", its_time}), seen_by_both) << "so it knows that it lost";
  EXPECT_EQ(held.release(), make_error_code(errc::lost));
  EXPECT_EQ(ask({"GET", "orders"}), its_time) << "nobody's lock, until that time";
}

// ---- redisson

TEST_F(dialects, redisson_is_a_hash_of_its_owner_with_an_end) {
  const auto session = open("redisson");
  holdfast::recursive_mutex orders(session, "orders", {.lease = 10s});
  orders.lock();
  orders.lock();
  EXPECT_EQ(ask({"TYPE", "orders"}), "hash");
  EXPECT_EQ(ask({"HVALS", "orders"}), "1") << "what is counted in the process costs nothing";
  EXPECT_GT(std::stoi(ask({"PTTL", "orders"})), 5'000);
  const std::string owner = ask({"HKEYS", "orders"});
  EXPECT_TRUE(owner.size() == 34 && owner.ends_with(":1")) << owner;
  orders.unlock();
  EXPECT_EQ(ask({"EXISTS", "orders"}), "1");
  orders.unlock();
  EXPECT_EQ(ask({"EXISTS", "orders"}), "0");
  EXPECT_EQ(ask({"DBSIZE"}), "0");
}

TEST_F(dialects, redisson_of_another_program_is_awaited_on_its_channel) {
  ask({"HSET", "orders", "8743c9c0-0795-4907-87fd-6c719a6b4586:17", "2"});
  ask({"PEXPIRE", "orders", "1000000"});
  const auto session = open("redisson");
  mutex orders(session, "orders");
  EXPECT_FALSE(orders.try_lock());
  std::thread waiter([&] { orders.lock(), orders.unlock(); });
  harness::eventually("somebody listens", [&] {
    return ask({"PUBSUB", "NUMSUB", "redisson_lock__channel:{orders}"}) ==
           "redisson_lock__channel:{orders} 1";
  });
  // Both in one script, as Redisson does it: a waiter that polls between them listens no longer.
  constexpr const char* release =
      "redis.call('DEL', KEYS[1]) return redis.call('PUBLISH', KEYS[2], ARGV[1])";
  EXPECT_EQ(ask({"EVAL", release, "2", "orders", "redisson_lock__channel:{orders}", "0"}), "1");
  waiter.join();
  EXPECT_EQ(ask({"EXISTS", "orders"}), "0");
}

// The counter of Java's lockAndGetToken().
TEST_F(dialects, redisson_s_token_of_a_fenced_lock_is_the_fence_as_it_is) {
  const auto session = open("redisson&redisson_lock=fenced");
  ask({"SET", "redisson_lock_token:{orders}", "41"});
  mutex orders(session, "orders");
  {
    lease held = orders.acquire();
    EXPECT_EQ(held.fence(), 42u);
    held.extend();
    EXPECT_EQ(held.fence(), 42u);
    EXPECT_EQ(ask({"GET", "redisson_lock_token:{orders}"}), "42");
    EXPECT_FALSE(orders.try_acquire());
  }
  ask({"INCR", "redisson_lock_token:{orders}"});
  EXPECT_EQ(orders.acquire().fence(), 44u) << "Java had it in between";
  ask({"SET", "redisson_lock_token:{orders}", "page"});
  const auto refused = outcome_of([&] { orders.lock(); });
  EXPECT_EQ(refused.reason, errc::kind_mismatch) << refused.text;
  EXPECT_EQ(ask({"EXISTS", "orders"}), "0");
}

// Every turn is one of the store's, with a token of its own.
TEST_F(dialects, redisson_s_fenced_lock_is_not_handed_over_inside_the_process) {
  const auto session = open("redisson&redisson_lock=fenced");
  mutex orders(session, "orders");
  std::vector<std::uint64_t> fences;
  std::vector<std::jthread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      for (int n = 0; n < 5; ++n) {
        const lease held = orders.acquire();
        fences.push_back(held.fence());
      }
    });
  }
  workers.clear();
  for (std::size_t i = 0; i < fences.size(); ++i) EXPECT_EQ(fences[i], i + 1);
  EXPECT_EQ(ask({"GET", "redisson_lock_token:{orders}"}), "20");
}

TEST_F(dialects, a_lock_without_fences_has_none_after_a_hand_over_inside_the_process_either) {
  const auto session = open("redisson");
  mutex orders(session, "orders", {.local_time = 20s});
  std::optional<lease> held = orders.acquire();
  EXPECT_EQ(held->fence(), 0u);
  auto next = async_acquire(orders).future();
  const auto before = session.store_operations();
  const auto line = session.impl()->local_queue_of("orders");
  harness::eventually("in line", [&] { return line->waiting() == 1; });
  held.reset();
  const lease theirs = next.get().value();
  EXPECT_EQ(session.store_operations(), before) << "handed over in the process";
  EXPECT_EQ(theirs.fence(), 0u);
}

TEST_F(dialects, redisson_that_another_program_holds_now_is_lost_and_left_to_it) {
  const auto session = open("redisson");
  lease held = mutex(session, "orders").acquire();
  ask({"DEL", "orders"});
  ask({"HSET", "orders", "8743c9c0-0795-4907-87fd-6c719a6b4586:17", "1"});
  EXPECT_EQ(held.release(), make_error_code(errc::lost));
  EXPECT_EQ(ask({"HVALS", "orders"}), "1");
}

}  // namespace
}  // namespace interop_test
