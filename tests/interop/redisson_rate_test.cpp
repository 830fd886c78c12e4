#include <gtest/gtest.h>

#include <chrono>
#include <holdfast/holdfast.hpp>
#include <thread>

#include "harness/failing.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/redis_server.hpp"

// Redisson's rate limiter, seen from the server; Redisson's own steps are written here as it writes
// them.
namespace interop_test {
namespace {

using namespace std::chrono_literals;
using harness::contains;
using harness::outcome_of;
using holdfast::errc;
using holdfast::rate_limiter;
using holdfast::rate_rule;

class redisson_rate : public testing::Test {
 protected:
  redisson_rate() { server_.may_stay("*", "RRateLimiter stays when nobody uses it"); }
  std::string ask(const std::vector<std::string>& words) const { return server_.ask(words); }
  holdfast::session open() const { return holdfast::open(server_.url("?dialect=redisson")); }
  static std::vector<rate_rule> rule(std::uint64_t tokens, std::chrono::microseconds per) {
    return {{.tokens = tokens, .per = per}};
  }
  void java_sets(const std::string& rate, const std::string& ms, const std::string& type = "0") {
    ask({"HSET", "api", "rate", rate, "interval", ms, "type", type, "keepAliveTime", "0"});
  }
  /// By the server's clock.
  bool java_takes(int count) const {
    return ask({"EVAL", R"(
      local rate, interval = redis.call('hget', KEYS[1], 'rate'), redis.call('hget', KEYS[1], 'interval')
      local now = redis.call('time')
      now = now[1] * 1000 + math.floor(now[2] / 1000)
      local left = redis.call('get', KEYS[2])
      if left then
        local back = 0
        for _, one in ipairs(redis.call('zrangebyscore', KEYS[3], 0, now - interval)) do
          local _, permits = struct.unpack('Bc0I', one)
          back = back + permits
        end
        if back > 0 then
          redis.call('zremrangebyscore', KEYS[3], 0, now - interval)
          left = left + back
          redis.call('set', KEYS[2], left)
        end
        if tonumber(left) < tonumber(ARGV[1]) then return 0 end
      else
        redis.call('set', KEYS[2], rate)
      end
      redis.call('zadd', KEYS[3], now, struct.pack('Bc0I', #ARGV[2], ARGV[2], ARGV[1]))
      redis.call('decrby', KEYS[2], ARGV[1])
      return 1)",
                "3", "api", "{api}:value", "{api}:permits", std::to_string(count),
                "java-" + std::to_string(++requests_)}) == "1";
  }
  std::string number() const { return ask({"GET", "{api}:value"}); }

  harness::redis_server server_;
  const holdfast::session session_ = open();
  mutable int requests_ = 0;
};

TEST_F(redisson_rate, the_first_use_stores_the_rate_and_each_permit_with_its_time) {
  rate_limiter api(session_, "api", rule(5, 1h));
  const auto taken = api.try_take(2);
  EXPECT_TRUE(taken);
  EXPECT_EQ(taken.tightest().limit, 5u);
  EXPECT_EQ(taken.tightest().remaining, 3u);
  EXPECT_EQ(ask({"HMGET", "api", "rate", "interval", "type"}), "5 3600000 0");
  EXPECT_EQ(number(), "3");
  EXPECT_EQ(ask({"ZCARD", "{api}:permits"}), "1");
  EXPECT_FALSE(api.try_take(4));
  EXPECT_EQ(number(), "3");
}

TEST_F(redisson_rate, java_and_holdfast_count_the_permits_of_each_other) {
  java_sets("5", "3600000");
  rate_limiter api(session_, "api", rule(5, 1h));
  EXPECT_TRUE(java_takes(3));
  EXPECT_EQ(api.peek().tightest().remaining, 2u);
  EXPECT_TRUE(api.try_take(2));
  EXPECT_FALSE(java_takes(1));
  const auto refused = api.try_take();
  EXPECT_FALSE(refused);
  EXPECT_GT(refused.wait, 50min);
  EXPECT_EQ(number(), "0");
}

TEST_F(redisson_rate, a_waiter_is_counted_when_it_passes_and_java_sees_fewer_permits) {
  java_sets("2", "3600000");
  rate_limiter api(session_, "api", rule(2, 1h));
  EXPECT_TRUE(java_takes(2));
  const auto first = ask({"ZRANGE", "{api}:permits", "0", "0", "WITHSCORES"});
  const auto ends = std::stoll(first.substr(first.rfind(' ') + 1)) + 3'600'000;
  EXPECT_TRUE(api.reserve(2, 2h));
  EXPECT_EQ(number(), "-2");
  EXPECT_EQ(ask({"ZCOUNT", "{api}:permits", std::to_string(ends), "+inf"}), "1")
      << "the reservation counts when those permits are free again";
  EXPECT_FALSE(api.take_for(1, 90min)) << "that is too soon";
  EXPECT_GT(api.try_take(1).wait, 90min) << "behind the reservation";
  server_.shift_clock(2h - 100ms);
  EXPECT_TRUE(api.take(1));
  EXPECT_FALSE(java_takes(2));
  EXPECT_TRUE(java_takes(1));
}

TEST_F(redisson_rate, refunded_permits_are_free_and_counted_once) {
  java_sets("5", "3600000");
  harness::fault_proxy network(server_.port());
  const auto far =
      holdfast::open("redis://127.0.0.1:" + std::to_string(network.port()) + "?dialect=redisson");
  rate_limiter api(far, "api", rule(5, 1h));
  EXPECT_TRUE(java_takes(4));
  network.with([](auto& relay) { relay.cut_after(harness::way::down, 0); });
  api.refund(3);
  EXPECT_GT(network.count().cut, 0u) << "no answer was lost";
  EXPECT_EQ(number(), "4");
  EXPECT_EQ(ask({"ZCARD", "{api}:permits"}), "1") << "the rest of what java took";
}

/// Each taken a second after the one before, by the clock of the server.
class redisson_rate_refund : public redisson_rate {
 protected:
  redisson_rate_refund() { java_sets("5", "3600000"); }
  void a_second_later() { server_.shift_clock(now_ += 1s); }
  void an_interval_later() { server_.shift_clock(now_ += 1h); }
  std::string requests() const { return ask({"ZCARD", "{api}:permits"}); }
  std::string requests_at(const holdfast::rate_decision& d) const {
    const auto ms = std::to_string(d.tightest().due / 1ms);
    return ask({"ZCOUNT", "{api}:permits", ms, ms});
  }

  rate_limiter api_{session_, "api", rule(5, 1h)};
  std::chrono::seconds now_{0};
};

TEST_F(redisson_rate_refund, of_a_decision_returns_only_its_own_permits) {
  EXPECT_TRUE(java_takes(2));
  a_second_later();
  const auto mine = api_.try_take(2);
  EXPECT_EQ(requests_at(mine), "1");
  a_second_later();
  EXPECT_TRUE(api_.try_take(1));
  api_.refund(mine);
  EXPECT_EQ(number(), "2");
  EXPECT_EQ(requests_at(mine), "0");
  EXPECT_EQ(requests(), "2") << "those of the others";
  an_interval_later();
  EXPECT_EQ(api_.peek().tightest().remaining, 5u);
}

TEST_F(redisson_rate_refund, of_a_decision_whose_permits_expired_returns_nothing) {
  const auto mine = api_.try_take(5);
  an_interval_later();
  a_second_later();
  EXPECT_TRUE(api_.try_take(5));
  api_.refund(mine);
  EXPECT_EQ(number(), "0");
  EXPECT_FALSE(api_.try_take(1)) << "five an hour went through";
}

TEST_F(redisson_rate_refund, of_a_reservation_leaves_earlier_requests) {
  EXPECT_TRUE(api_.try_take(5));
  a_second_later();
  const auto waits = api_.reserve(3, 2h);
  ASSERT_TRUE(waits);
  EXPECT_EQ(number(), "-3");
  api_.refund(waits);
  EXPECT_EQ(number(), "0");
  EXPECT_EQ(requests(), "1");
}

TEST_F(redisson_rate_refund, of_a_part_leaves_the_rest) {
  EXPECT_TRUE(java_takes(1));
  a_second_later();
  rate_limiter local{session_, "api", rule(5, 1h), {.local_tokens = 4, .local_time = 1h}};
  const auto mine = local.try_take(1);
  EXPECT_EQ(number(), "0");
  local.refund(mine);
  EXPECT_EQ(number(), "1");
  EXPECT_EQ(requests(), "2");
}

TEST_F(redisson_rate_refund, of_a_repeated_take_returns_its_permits) {
  harness::fault_proxy network(server_.port());
  const auto far =
      holdfast::open("redis://127.0.0.1:" + std::to_string(network.port()) + "?dialect=redisson");
  rate_limiter api(far, "api", rule(5, 1h));
  EXPECT_TRUE(java_takes(2));
  a_second_later();
  network.with([](auto& relay) { relay.cut_after(harness::way::down, 0); });
  const auto mine = api.try_take(3);
  EXPECT_GT(network.count().cut, 0u) << "no answer was lost";
  api.refund(mine);
  EXPECT_EQ(number(), "3");
  EXPECT_EQ(requests_at(mine), "0");
  EXPECT_EQ(requests(), "1") << "what java took";
}

TEST_F(redisson_rate_refund, without_a_decision_returns_the_oldest_permits) {
  EXPECT_TRUE(java_takes(2));
  a_second_later();
  EXPECT_TRUE(api_.try_take(2));
  api_.refund(2);
  EXPECT_EQ(number(), "3");
  EXPECT_EQ(requests(), "1");
}

TEST_F(redisson_rate, both_programs_together_admit_exactly_the_rate) {
  constexpr auto per = 100ms;
  java_sets("10", "100");
  rate_limiter api(session_, "api", rule(10, per));
  const auto began = std::chrono::steady_clock::now();
  int ours = 0, theirs = 0;
  for (bool over = false; !over; over = std::chrono::steady_clock::now() > began + 2s) {
    ours += api.try_take() ? 1 : 0;
    theirs += java_takes(1) ? 1 : 0;
  }
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GT(ours, 0);
  EXPECT_GT(theirs, 0);
  EXPECT_LE(ours + theirs, 10 * (took / per + 2));
}

TEST_F(redisson_rate, unsupported_calls_and_keys_of_other_kinds_are_refused) {
  const auto refuses = [&](errc reason, const std::string& found, std::vector<rate_rule> rules) {
    const auto refused = outcome_of([&] {
      rate_limiter api(session_, "api", std::move(rules));
      (void)api.try_take(1, {{"client", "acme"}});
    });
    EXPECT_EQ(refused.reason, reason) << refused.text;
    EXPECT_TRUE(contains(refused.text, found)) << refused.text;
  };
  refuses(errc::unsupported, "one rule", {{.name = "a"}, {.name = "b"}});
  refuses(errc::unsupported, "rate_rule::by", {{.by = {"client"}}});
  refuses(errc::invalid_argument, "milliseconds", rule(1, 1500us));
  EXPECT_EQ(ask({"DBSIZE"}), "0");
  java_sets("5", "1000");
  refuses(errc::capacity_mismatch, "5 in 1000 ms", rule(6, 1s));
  java_sets("5", "1000", "1");
  refuses(errc::kind_mismatch, "each client", rule(5, 1s));
  ask({"DEL", "api"});
  ask({"SET", "api", "page"});
  refuses(errc::kind_mismatch, "a string", rule(5, 1s));
  EXPECT_EQ(ask({"GET", "api"}), "page");
}

}  // namespace
}  // namespace interop_test
