#include <algorithm>
#include <atomic>
#include <iterator>
#include <sstream>
#include <utility>

#include "fixture.hpp"
#include "harness/fault_proxy.hpp"
#include "store/redis/commands.hpp"
#include "store/redis/node.hpp"
#include "store/redis/scripts.hpp"

// late.lua: a command of a dialect that was delayed on its way until no caller waits for it any
// more.
namespace redis_test {
namespace {

using namespace std::chrono_literals;
using namespace holdfast::store;
using harness::relay;
using harness::way;
namespace redis = holdfast::store::redis;
using words = std::vector<std::string>;

/// A script, and how a test calls it: "60000" and "3600000" are leases in milliseconds.
struct layout {
  std::string name;
  redis::script (*script)() noexcept;
  words keys;
  std::string takes;  ///< the verb of the command that makes the keys
  words changes;      ///< verbs of other commands that acquire or take away
  words whenever;     ///< verbs of releases and queries
  words (*arguments)(const std::string& verb, const std::string& ms);
  bool for_ever = false;  ///< its keys have no expiry
};

const std::string owner = "00000000000000070000000000000001:1";
const std::string mark = "mark";

words of_a_lock(const std::string& verb, const std::string& ms) {
  return {verb, owner, ms, "channel"};
}

const std::vector<layout>& layouts() {
  static const std::vector<layout> all{
      {"redlock",
       redis::redlock_script,
       {"m"},
       "add",
       {"add", "extend"},
       {"remove", "look"},
       of_a_lock},
      {"redisson",
       redis::redisson_script,
       {"m"},
       "add",
       {"add", "extend"},
       {"remove", "look"},
       of_a_lock},
      {"fenced",
       redis::redisson_script,
       {"m", "t"},
       "add",
       {"add", "extend"},
       {"remove", "look"},
       of_a_lock,
       true},
      {"fair",
       redis::redisson_fair_script,
       {"m", "queue", "ends", "m:holdfast:waits"},
       "add",
       {"add", "extend"},
       {"remove", "look"},
       [](const std::string& verb, const std::string& ms) {
         return words{verb, owner, ms, "channel", "4000"};
       }},
      {"rw",
       redis::redisson_rw_script,
       {"m", "beside:"},
       "add",
       {"add", "extend", "resize"},
       {"remove", "look"},
       [](const std::string& verb, const std::string& ms) {
         return words{verb, owner, ms, "channel", "1"};
       }},
      {"permits",
       redis::redisson_permits_script,
       {"m", "timeout", "m:holdfast:ends", "m:holdfast:permits", "latch"},
       "add",
       {"add", "extend"},
       {"remove", "look"},
       [](const std::string& verb, const std::string& ms) {
         return words{verb, owner, "sixteen bytes...", "1", "3", ms, "channel", "1"};
       },
       true},
      {"latch",
       redis::redisson_latch_script,
       {"m", "m:holdfast", "m:holdfast:arrival", "timeout", "permits"},
       "wait",
       {"arrive", "wait", "remove"},
       {"inspect"},
       [](const std::string& verb, const std::string& ms) {
         return words{verb, "2", "1", "channel", ms, ms};
       }},
      {"limiter",
       redis::redisson_rate_script,
       {"m", "value", "permits", "m:holdfast:refunded"},
       "take",
       {"take", "refund"},
       {"inspect"},
       [](const std::string& verb, const std::string&) {
         return words{verb, "sixteen bytes...", "1", "5", "3600000", "0", ""};
       },
       true},
      {"setnx",
       redis::setnx_script,
       {"m"},
       "add",
       {"add", "extend"},
       {"remove", "look"},
       [](const std::string& verb, const std::string& ms) {
         return words{verb, "", ms + "000", "1000000", ""};
       },
       true},
  };
  return all;
}

class redis_late_dialects : public testing::TestWithParam<layout> {
 protected:
  redis_late_dialects() {
    if (GetParam().for_ever) server_.may_stay("*", "the other programs let it stay");
  }
  std::string carry_out(const std::string& verb, const std::string& ms, const std::string& until) {
    const auto& l = GetParam();
    words all{"EVAL", std::string(l.script().text), std::to_string(l.keys.size() + 1)};
    all.insert(all.end(), l.keys.begin(), l.keys.end());
    all.push_back(mark);
    const auto more = l.arguments(verb, ms);
    all.insert(all.end(), more.begin(), more.end());
    all.push_back(until);
    return server_.ask(all);
  }
  std::string in(std::chrono::microseconds d) {
    const auto said = server_.ask({"TIME"});
    const auto at = said.find(' ');
    const auto now = std::stoll(said.substr(0, at)) * 1'000'000 + std::stoll(said.substr(at + 1));
    return std::to_string(now + d.count());
  }
  void expect_too_late(const std::string& verb, const std::string& until) {
    const auto before = content();
    const auto lasts = std::stol(server_.ask({"PTTL", "m"}));
    const auto said = carry_out(verb, "3600000", until);
    EXPECT_TRUE(said.starts_with("-HOLDFAST_LATE ")) << verb << ": " << said;
    EXPECT_EQ(content(), before) << verb;
    EXPECT_LE(std::stol(server_.ask({"PTTL", "m"})), lasts) << verb << " has prolonged it";
  }
  /// Of all keys; the digest includes whether a key expires, but not its time to live.
  std::string content() { return server_.ask({"DEBUG", "DIGEST"}); }

  harness::redis_server server_;
};

INSTANTIATE_TEST_SUITE_P(scripts, redis_late_dialects, testing::ValuesIn(layouts()),
                         [](const auto& p) { return p.param.name; });

TEST_P(redis_late_dialects, late_grants_and_evictions_are_refused_and_change_nothing) {
  for (const auto& verb : GetParam().changes) {
    const auto said = carry_out(verb, "60000", in(-1ms));
    EXPECT_TRUE(said.starts_with("-HOLDFAST_LATE ")) << verb << ": " << said;
    EXPECT_EQ(server_.ask({"DBSIZE"}), "0") << verb;
  }
  ASSERT_FALSE(carry_out(GetParam().takes, "60000", in(60s)).starts_with("-"));
  const auto before = content();
  for (const auto& verb : GetParam().changes) {
    const auto said = carry_out(verb, "3600000", in(-1ms));
    EXPECT_TRUE(said.starts_with("-HOLDFAST_LATE ")) << verb << ": " << said;
    EXPECT_EQ(content(), before) << verb;
    EXPECT_LE(std::stol(server_.ask({"PTTL", "m"})), 60'000) << verb;
  }
}

TEST_P(redis_late_dialects, a_command_in_time_is_not_refused) {
  for (const auto& verb : GetParam().changes) {
    const auto said = carry_out(verb, "60000", in(60s));
    EXPECT_FALSE(said.starts_with("-")) << verb << ": " << said;
  }
}

/// The layouts whose lock is a key with an expiry.
class redis_extended_dialects : public redis_late_dialects {};

std::vector<layout> layouts_with_an_end() {
  auto all = layouts();
  std::erase_if(all, [](const layout& l) {
    return l.name == "permits" || l.name == "latch" || l.name == "limiter" || l.name == "setnx";
  });
  return all;
}

INSTANTIATE_TEST_SUITE_P(scripts, redis_extended_dialects, testing::ValuesIn(layouts_with_an_end()),
                         [](const auto& p) { return p.param.name; });

TEST_P(redis_extended_dialects, an_attempt_that_comes_late_does_not_shorten_the_lease) {
  ASSERT_FALSE(carry_out("add", "60000", in(60s)).starts_with("-"));
  ASSERT_FALSE(carry_out("extend", "3600000", in(60s)).starts_with("-"));
  ASSERT_GT(std::stol(server_.ask({"PTTL", "m"})), 60'000);
  ASSERT_FALSE(carry_out("add", "60000", in(60s)).starts_with("-"));
  EXPECT_GT(std::stol(server_.ask({"PTTL", "m"})), 60'000);
}

// The ends of permits are beside their key: of one that expires, and of one that does not.
TEST(redis_late_permits, an_attempt_that_comes_late_does_not_shorten_the_lease) {
  const harness::redis_server server;
  server.may_stay("*", "the other programs let it stay");
  for (const std::string expires : {"1", "0"}) {
    const std::string id = "sixteen bytes...", ends = expires == "1" ? "timeout" : "ends";
    server.ask({"FLUSHALL"});
    const auto carry_out = [&](const std::string& verb, const std::string& ms) {
      return server.ask({"EVAL", std::string(redis::redisson_permits_script().text), "6", "m",
                         "timeout", "ends", "permits", "latch", mark, verb, owner, id, "1", "3", ms,
                         "channel", expires, "9999999999999999"});
    };
    const std::string member = expires == "1" ? id : owner;
    ASSERT_FALSE(carry_out("add", "60000").starts_with("-"));
    const auto first = std::stod(server.ask({"ZSCORE", ends, member}));
    ASSERT_FALSE(carry_out("extend", "3600000").starts_with("-"));
    const auto extended = std::stod(server.ask({"ZSCORE", ends, member}));
    ASSERT_GT(extended, first);
    ASSERT_FALSE(carry_out("add", "60000").starts_with("-"));
    EXPECT_EQ(std::stod(server.ask({"ZSCORE", ends, member})), extended);
    ASSERT_FALSE(carry_out("add", "7200000").starts_with("-"));
    EXPECT_GT(std::stod(server.ask({"ZSCORE", ends, member})), extended) << "it counts anew";
  }
}

// The command was repeated over another connection, and granted; then the first copy of it or of an
// earlier command arrives.
TEST_P(redis_late_dialects, a_pending_command_counts_as_late_after_the_next_command) {
  const auto due = in(60s), later = in(120s);
  ASSERT_FALSE(carry_out(GetParam().takes, "60000", later + " " + due).starts_with("-"));
  for (const auto& verb : GetParam().changes) {
    expect_too_late(verb, due);
    expect_too_late(verb, in(30s));
    const auto said = carry_out(verb, "60000", later);
    EXPECT_FALSE(said.starts_with("-")) << verb << ": " << said;
  }
}

TEST_P(redis_late_dialects, a_pending_command_counts_as_late_also_after_the_release) {
  const auto due = in(60s), later = in(120s);
  if (GetParam().name == "limiter") return;  // nothing is released
  ASSERT_FALSE(carry_out(GetParam().takes, "60000", later).starts_with("-"));
  ASSERT_FALSE(carry_out("remove", "0", later + " " + due).starts_with("-"));
  expect_too_late(GetParam().takes, due);
  ASSERT_FALSE(carry_out("remove", "0", later).starts_with("-"));
  expect_too_late(GetParam().takes, due);
  EXPECT_FALSE(carry_out(GetParam().takes, "60000", later).starts_with("-"));
}

TEST_P(redis_late_dialects, a_full_server_releases_and_remembers_late_commands) {
  const auto due = in(60s), later = in(120s);
  if (GetParam().name == "limiter") return;
  ASSERT_FALSE(carry_out(GetParam().takes, "60000", later).starts_with("-"));
  server_.ask({"CONFIG", "SET", "maxmemory", "1"});
  const auto said = carry_out("remove", "0", later + " " + due);
  server_.ask({"CONFIG", "SET", "maxmemory", "0"});
  ASSERT_FALSE(said.starts_with("-")) << said;
  expect_too_late(GetParam().takes, due);
}

TEST_P(redis_late_dialects, the_mark_lasts_until_no_command_can_be_pending) {
  const auto due = in(60s), later = in(120s);
  ASSERT_FALSE(carry_out(GetParam().takes, "60000", later + " " + in(90s)).starts_with("-"));
  ASSERT_FALSE(carry_out(GetParam().takes, "60000", later + " " + due).starts_with("-"));
  EXPECT_GT(server_.ask({"GET", mark}), due) << "the earlier time is no news";
  EXPECT_GT(std::stol(server_.ask({"PTTL", mark})), 60'000);
  EXPECT_LE(std::stol(server_.ask({"PTTL", mark})), 90'001);
  ASSERT_FALSE(carry_out(GetParam().takes, "60000", later + " " + in(-1ms)).starts_with("-"));
  server_.ask({"DEL", mark});
  ASSERT_FALSE(carry_out(GetParam().takes, "60000", later + " " + in(-1ms)).starts_with("-"));
  EXPECT_EQ(server_.ask({"EXISTS", mark}), "0") << "that is over";
}

TEST_P(redis_late_dialects, a_damaged_mark_is_reported_and_not_changed) {
  for (const std::string damaged : {"nonsense", "", "9999999999999999"}) {
    server_.ask({"SET", mark, damaged, "PX", "60000"});
    const auto said = carry_out(GetParam().takes, "60000", in(120s));
    EXPECT_TRUE(said.starts_with("-HOLDFAST_CORRUPT ")) << damaged << ": " << said;
  }
  EXPECT_EQ(server_.ask({"DBSIZE"}), "1");
}

TEST_P(redis_late_dialects, late_releases_and_reads_are_carried_out) {
  ASSERT_FALSE(carry_out(GetParam().takes, "60000", in(60s)).starts_with("-"));
  for (const auto& verb : GetParam().whenever) {
    const auto said = carry_out(verb, "60000", in(-1ms));
    EXPECT_FALSE(said.starts_with("-")) << verb << ": " << said;
  }
}

TEST_P(redis_late_dialects, a_read_makes_no_mark) {
  ASSERT_FALSE(carry_out(GetParam().takes, "60000", in(60s)).starts_with("-"));
  const auto before = content();
  for (const std::string verb : {"look", "inspect"}) {
    const auto& all = GetParam().whenever;
    if (std::find(all.begin(), all.end(), verb) == all.end()) continue;
    EXPECT_FALSE(carry_out(verb, "60000", in(60s) + " " + in(60s)).starts_with("-"));
    EXPECT_EQ(content(), before) << verb;
  }
}

// Whatever another program has put into one of the keys: no script ends with an error of Lua or of
// a command, and a script that finds strange data has written nothing before.
class redis_damaged_dialects : public redis_late_dialects {
 protected:
  /// Damages the element of a key with this number, if there is one; 0 is the type of the whole.
  bool damage(const std::string& key, int number, const std::string& by) {
    return server_.ask({"EVAL", R"(
      local key, number, by = KEYS[1], tonumber(ARGV[1]), ARGV[2]
      local kind = redis.call('TYPE', key).ok
      if number == 0 then
        redis.call('DEL', key)
        return redis.call('RPUSH', key, by)
      elseif kind == 'string' and number == 1 then
        redis.call('SET', key, by)
        return 1
      elseif kind == 'hash' then
        local field = redis.call('HKEYS', key)[number]
        return field and redis.call('HSET', key, field, by) + 1 or 0
      elseif kind == 'list' and number <= redis.call('LLEN', key) then
        redis.call('LSET', key, number - 1, by)
        return 1
      elseif kind == 'zset' then
        local found = redis.call('ZRANGE', key, number - 1, number - 1, 'WITHSCORES')
        if not found[1] then return 0 end
        if type(redis.pcall('ZADD', key, by, found[1])) == 'table' then
          redis.call('ZREM', key, found[1])
          redis.call('ZADD', key, found[2], by)
        end
        return 1
      end
      return 0)",
                        "1", key, std::to_string(number), by}) != "0";
  }
  words keys() {
    std::istringstream all(server_.ask({"KEYS", "*"}));
    return {std::istream_iterator<std::string>(all), {}};
  }
  void take_something() {
    server_.ask({"FLUSHALL"});
    ASSERT_FALSE(carry_out(GetParam().takes, "60000", in(60s)).starts_with("-"));
  }
  void expect_no_failure_of(const std::string& verb) {
    const auto before = content();
    const auto said = carry_out(verb, "60000", in(60s));
    EXPECT_FALSE(said.starts_with("-")) << verb << ": " << said;
    if (said.starts_with("3 ")) EXPECT_EQ(content(), before) << verb << ": " << said;
  }
  void expect_no_failure_after(const std::string& key, int number, const std::string& by) {
    for (const auto* const verbs : {&GetParam().changes, &GetParam().whenever}) {
      for (const auto& verb : *verbs) {
        SCOPED_TRACE(key + " " + std::to_string(number) + " is " + by);
        take_something();
        ASSERT_TRUE(damage(key, number, by));
        expect_no_failure_of(verb);
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(scripts, redis_damaged_dialects, testing::ValuesIn(layouts()),
                         [](const auto& p) { return p.param.name; });

TEST_P(redis_damaged_dialects, no_script_fails_at_a_damaged_value_in_a_key) {
  take_something();
  for (const auto& key : keys()) {
    for (int number = 0;; ++number) {
      take_something();
      if (!damage(key, number, "x")) break;
      for (const std::string by : {"nan", "-nan", "inf", "-inf", "abc", "1e300", "-7",
                                   "99999999999999999999", "007", ""}) {
        expect_no_failure_after(key, number, by);
      }
    }
  }
  server_.ask({"FLUSHALL"});
}

// The commands that a session sends, over a connection that delays them: of the redlock, whose lock
// is the simplest.
class redis_late_dialect : public testing::Test {
 protected:
  /// Its connections go to that port; with `then_direct`, the second and later ones go to the
  /// server.
  std::unique_ptr<redis::node> node(std::chrono::milliseconds command_timeout, int port,
                                    bool then_direct = false) const {
    redis::redis_options o;
    o.dialect = redis::dialect::redlock;
    o.command_timeout = command_timeout;
    o.locate = [port, then = then_direct ? server_.port() : port](
                   holdfast::boot_time, int) mutable -> holdfast::result<redis::address> {
      return redis::address{"127.0.0.1", static_cast<std::uint16_t>(std::exchange(port, then))};
    };
    return std::make_unique<redis::node>(std::move(o));
  }
  static std::string bytes_of(std::string_view verb, std::string_view ms) {
    std::string bytes;
    redis::append_command(
        bytes, {"EVALSHA", redis::redlock_script().sha, "2", "m", mark, verb, "token", ms}, 1);
    return bytes;
  }
  static holdfast::result<redis::node::answer> ask(redis::node& n, std::string_view verb,
                                                   std::string_view ms = "60000") {
    const auto bytes = bytes_of(verb, ms);
    const redis::message one{.bytes = bytes, .stamped = true};
    return n.ask({&one, 1}, false);
  }
  long calls() const {
    return std::stol(server_.field({"INFO", "commandstats"}, "cmdstat_evalsha").substr(6));
  }

  harness::redis_server server_;
  harness::fault_proxy proxy_{server_.port()};
};

TEST_F(redis_late_dialect, an_acquire_kept_back_until_its_caller_gave_up_takes_nothing) {
  auto slow = node(100ms, proxy_.port()), direct = node(60s, server_.port());
  ASSERT_TRUE(slow->open());
  ASSERT_TRUE(ask(*direct, "look"));
  const auto before = calls();
  proxy_.with([](relay& r) { r.stall(way::up); });
  const auto given_up = ask(*slow, "add");
  ASSERT_FALSE(given_up);
  EXPECT_TRUE(given_up.error().outcome_unknown);
  ASSERT_TRUE(ask(*direct, "remove"));
  proxy_.heal();
  harness::eventually("what was kept back", [&] { return calls() == before + 2; });
  EXPECT_EQ(server_.ask({"EXISTS", "m"}), "0") << "held by nobody who knows of it";
}

// The connection breaks, the renewal is repeated over another one, and the holder extends for
// longer.
TEST_F(redis_late_dialect, a_renewal_of_a_connection_that_broke_shortens_no_later_lease) {
  std::atomic<int> failed{0};
  redis::link::listener then = [&](auto answer) { failed += answer ? 0 : 1; };
  auto one = node(60s, proxy_.port(), true);
  ASSERT_TRUE(one->open());
  ASSERT_TRUE(ask(*one, "add"));
  const auto before = calls();
  proxy_.with([](relay& r) { r.stall(way::up); });
  const auto bytes = bytes_of("extend", "3000");
  ASSERT_TRUE(one->post({.bytes = bytes, .stamped = true}, then));
  one->connection().renew_connection({holdfast::errc::unavailable, "it broke"}, 1);
  ASSERT_TRUE(ask(*one, "extend", "3000"));  // over another connection
  ASSERT_TRUE(ask(*one, "extend", "60000"));
  proxy_.heal();
  harness::eventually("what was kept back", [&] { return calls() == before + 3; });
  EXPECT_EQ(failed, 1);
  EXPECT_GT(std::stol(server_.ask({"PTTL", "m"})), 3'000) << "its holder believes in a minute";
}

/// A lock of every layout, and how a program acquires it.
struct marked {
  std::string name;
  std::string options;
  void (*take)(const holdfast::session& s);
};

class redis_dialect_marks : public testing::TestWithParam<marked> {
 protected:
  harness::redis_server server_;
  harness::fault_proxy proxy_{server_.port()};
};

INSTANTIATE_TEST_SUITE_P(
    layouts, redis_dialect_marks,
    testing::Values(
        marked{"redlock", "dialect=redlock",
               [](auto& s) { (void)holdfast::mutex{s, "m"}.try_lock(); }},
        marked{"setnx", "dialect=setnx", [](auto& s) { (void)holdfast::mutex{s, "m"}.try_lock(); }},
        marked{"redisson", "dialect=redisson",
               [](auto& s) { (void)holdfast::mutex{s, "m"}.try_lock(); }},
        marked{"fenced", "dialect=redisson&redisson_lock=fenced",
               [](auto& s) { (void)holdfast::mutex{s, "m"}.try_lock(); }},
        marked{"fair", "dialect=redisson",
               [](auto& s) { (void)holdfast::fair_mutex{s, "m"}.try_lock(); }},
        marked{"rw", "dialect=redisson",
               [](auto& s) { (void)holdfast::shared_mutex{s, "m"}.try_lock(); }},
        marked{"semaphore", "dialect=redisson",
               [](auto& s) { (void)holdfast::semaphore{s, "m", 2}.try_acquire(); }},
        marked{"expiring", "dialect=redisson",
               [](auto& s) { (void)holdfast::expiring_semaphore{s, "m", 2}.try_acquire(60s); }},
        marked{"latch", "dialect=redisson",
               [](auto& s) { holdfast::latch{s, "m", 1}.count_down(); }},
        marked{"limiter", "dialect=redisson",
               [](auto& s) { (void)holdfast::rate_limiter{s, "m", {{.tokens = 5}}}.try_take(); }}),
    [](const auto& p) { return p.param.name; });

TEST_P(redis_dialect_marks, a_command_after_a_broken_connection_marks_late_commands) {
  server_.may_stay("*", "the other programs let it stay");
  const auto url = "redis://127.0.0.1:" + std::to_string(proxy_.port()) +
                   "?prefix=shop-&command_timeout=60s&" + GetParam().options;
  auto s = holdfast::open(url);
  proxy_.with([](relay& r) { r.cut_after(way::down, 0); });
  GetParam().take(s);
  EXPECT_EQ(server_.ask({"GET", "shop-m:holdfast:after"}).size(), 16u);
  EXPECT_GT(std::stol(server_.ask({"PTTL", "shop-m:holdfast:after"})), 2'000);
}

// Most of what a lock costs beyond a plain SET NX PX are the commands that its script calls.
TEST_F(redis_late_dialect, a_free_lock_costs_the_server_three_commands_and_its_release_as_many) {
  auto s = holdfast::open(server_.url("?command_timeout=60s&dialect=redlock"));
  holdfast::mutex m{s, "m"};
  ASSERT_TRUE(m.try_lock());  // the first time costs more
  m.unlock();
  const auto commands_of = [&](const auto& what) {
    server_.ask({"CONFIG", "RESETSTAT"});
    what();
    std::string all;
    for (const std::string of : {"evalsha", "time", "get", "set", "del", "type", "pttl", "pexpire"})
      for (auto n = redis_test::calls(server_, of); n > 0; --n) all += of + " ";
    return all;
  };
  EXPECT_EQ(commands_of([&] { ASSERT_TRUE(m.try_lock()); }), "evalsha time get set ");
  EXPECT_EQ(commands_of([&] { m.unlock(); }), "evalsha time get del ");
}

// After the server's clock was set, its first answer reports another time than the session assumed,
// and the session corrects its assumption.
TEST_F(redis_late_dialect, a_request_to_a_server_whose_clock_was_set_is_repeated_without_an_error) {
  for (const std::string dialect : {"redlock", "redisson", "setnx"}) {
    server_.ask({"FLUSHALL"});
    server_.shift_clock(0h);
    auto s = holdfast::open(server_.url("?command_timeout=60s&dialect=" + dialect));
    holdfast::mutex m{s, "m"};
    for (const auto shift : {0h, 1h, 0h}) {
      server_.shift_clock(shift);
      EXPECT_TRUE(m.try_lock()) << dialect;
      m.unlock();
    }
  }
}

}  // namespace
}  // namespace redis_test
