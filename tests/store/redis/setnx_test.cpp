#include <gtest/gtest.h>

#include <holdfast/testing.hpp>

#include "harness/redis_server.hpp"
#include "store/redis/scripts.hpp"
#include "store/redis/setnx_values.hpp"

// dialect=setnx: a value that an owner may have written is its own as long as nobody else can have
// acquired the lock.
namespace redis_test {
namespace {

using namespace std::chrono_literals;
using namespace holdfast::store;
using namespace holdfast::store::redis;

// The next owner may have written a time that we only proposed.
TEST(setnx_script, the_lock_of_the_next_owner_is_not_ours_by_a_matching_time) {
  const harness::redis_server server;
  const auto ask = [&](const std::vector<std::string>& words) { return server.ask(words); };
  const auto in_seconds = [&](int s) {
    const auto now = ask({"TIME"});
    return std::to_string(std::stoll(now.substr(0, now.find(' '))) + s);
  };
  const auto theirs = in_seconds(3'600);
  const auto written = [&](const char* verb, const std::string& mine) {
    ask({"SET", "orders", theirs});
    return ask({"EVAL", std::string(setnx_script().text), "2", "orders", "mark", verb, mine,
                "10000000", "1000000", "", "9999999999999999"});
  };
  for (const char* verb : {"remove", "extend"}) {
    EXPECT_EQ(written(verb, "1000 " + theirs).at(0), *verb == 'r' ? '2' : '1');
    EXPECT_EQ(ask({"GET", "orders"}), theirs) << "it is as it was";
    EXPECT_EQ(written(verb, in_seconds(1'800) + " " + theirs).at(0), '0')
        << "while ours can not have ended";
    EXPECT_NE(ask({"GET", "orders"}), theirs);
  }
  const auto ours = in_seconds(1'800);
  for (const auto& ended : {std::string("1000"), std::string()}) {
    ended.empty() ? ask({"DEL", "orders"}) : ask({"SET", "orders", ended});
    EXPECT_EQ(ask({"EVAL", std::string(setnx_script().text), "2", "orders", "mark", "extend", ours,
                   "10000000", "1000000", "", "9999999999999999"})
                  .at(0),
              '2')
        << "there is nothing of ours to extend";
    EXPECT_EQ(ask({"GET", "orders"}), ended.empty() ? "nil" : ended);
  }
}

TEST(setnx_values, a_value_known_to_be_written_is_not_replaced_by_a_proposed_one) {
  holdfast::testing::fake_clock clock;
  setnx_values values(clock, 1'000);
  const owner_id me{1, 2};
  values.wrote("m", me, "5000", 4'000'000, clock.now(), 1'000'000);
  std::string last;
  for (int i = 0; i < 20; ++i) {
    clock.advance(10ms);
    last = values.propose("m", me, 1'000'000);
    EXPECT_TRUE(values.of("m", me).starts_with("5000 ")) << values.of("m", me);
    EXPECT_TRUE(values.of("m", me).ends_with(" " + last)) << values.of("m", me);
  }
}

TEST(setnx_values, a_value_that_the_server_refused_is_not_ours) {
  holdfast::testing::fake_clock clock;
  setnx_values values(clock, 1'000);
  const owner_id me{1, 2};
  values.wrote("m", me, "5000", 4'000'000, clock.now(), 1'000'000);
  const auto next = values.propose("m", me, 1'000'000);
  values.withdraw("m", me, next, 1'000'000);
  EXPECT_EQ(values.of("m", me), "5000");
  values.withdraw("m", me, "5000", 1'000'000);
  EXPECT_EQ(values.of("m", me), "5000") << "that has been written";
}

}  // namespace
}  // namespace redis_test
