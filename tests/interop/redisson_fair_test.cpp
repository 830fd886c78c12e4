#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <iterator>
#include <sstream>

#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"
#include "harness/failing.hpp"
#include "harness/fault_proxy.hpp"
#include "harness/redis_server.hpp"
#include "harness/tcp.hpp"

// Redisson's fair lock, seen from the server; Redisson's own steps are written here as it writes
// them.
namespace interop_test {
namespace {

using namespace std::chrono_literals;
using harness::contains;
using harness::outcome_of;
using holdfast::errc;
using holdfast::fair_mutex;
using holdfast::lease;

constexpr auto java = "8743c9c0-0795-4907-87fd-6c719a6b4586:17";
constexpr auto queue = "redisson_lock_queue:{fair}";
constexpr auto given_up = "redisson_lock_timeout:{fair}";
constexpr auto patience = 300'000;

class redisson_fair : public testing::Test {
 protected:
  redisson_fair() {
    for (const char* const key : {"redisson_lock_queue:*", "redisson_lock_timeout:*"})
      server_.may_stay(key, "Redisson's queue has no end");
    server_.may_stay("sem", "nor has the counter of its permits");
  }
  std::string ask(const std::vector<std::string>& words) const { return server_.ask(words); }
  holdfast::session open() const { return holdfast::open(server_.url("?dialect=redisson")); }
  static std::string channel_of(const std::string& owner) {
    return "redisson_lock__channel:{fair}:" + owner;
  }
  void java_holds() const {
    ask({"HSET", "fair", java, "1"});
    ask({"PEXPIRE", "fair", "1000000"});
  }
  // Each of these steps is one script, as in Redisson: our waiters may poll at any moment.
  /// Given up after this many milliseconds.
  void java_waits(long long left_ms, const std::string& who = java) const {
    constexpr const char* script =
        "redis.call('RPUSH', KEYS[1], ARGV[1]) redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])";
    ask({"EVAL", script, "2", queue, given_up, who, std::to_string(server_time() + left_ms)});
  }
  void java_gets_in_as_the_first() const {
    constexpr const char* script = R"(
      local first = redis.call('LPOP', KEYS[1])
      redis.call('ZREM', KEYS[2], ARGV[1])
      for _, who in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
        redis.call('ZINCRBY', KEYS[2], ARGV[2], who)
      end
      redis.call('HSET', KEYS[3], ARGV[1], '1')
      redis.call('PEXPIRE', KEYS[3], '1000000')
      return first)";
    EXPECT_EQ(ask({"EVAL", script, "3", queue, given_up, "fair", java, std::to_string(-patience)}),
              java);
  }
  void java_leaves() const {
    constexpr const char* script = R"(
      redis.call('DEL', KEYS[1])
      local first = redis.call('LINDEX', KEYS[2], 0)
      if first then redis.call('PUBLISH', ARGV[1] .. first, '0') end)";
    ask({"EVAL", script, "2", "fair", queue, channel_of("")});
  }
  std::vector<std::string> waiting() const {
    std::istringstream all(ask({"LRANGE", queue, "0", "-1"}));
    return {std::istream_iterator<std::string>(all), {}};
  }
  void until_waiting(std::size_t count) const {
    harness::eventually("they wait", [&] { return waiting().size() == count; });
  }
  void await_listener(const std::string& channel) const {
    harness::eventually("somebody listens",
                        [&] { return ask({"PUBSUB", "NUMSUB", channel}) != channel + " 0"; });
  }
  long long server_time() const {
    const auto said = ask({"TIME"});
    return std::stoll(said) * 1'000 + std::stoll(said.substr(said.find(' '))) / 1'000;
  }

  const harness::redis_server server_;
  const holdfast::session session_ = open();
  const holdfast::session other_ = open();
  fair_mutex lock_{session_, "fair"};
  fair_mutex rival_{other_, "fair"};
};

TEST_F(redisson_fair, an_uncontended_lock_is_the_hash_of_its_owner_and_nothing_else) {
  lease held = lock_.acquire();
  EXPECT_EQ(ask({"HVALS", "fair"}), "1");
  EXPECT_TRUE(ask({"HKEYS", "fair"}).ends_with(":1"));
  EXPECT_GT(std::stoi(ask({"PTTL", "fair"})), 15'000);
  EXPECT_EQ(ask({"DBSIZE"}), "1");
  EXPECT_FALSE(rival_.try_acquire());
  EXPECT_EQ(ask({"DBSIZE"}), "1") << "a try leaves nothing behind";
  held.extend();
  EXPECT_EQ(other_.show("fair").holders.at(0).short_id, held.short_id());
  EXPECT_FALSE(held.release());
  EXPECT_EQ(ask({"DBSIZE"}), "0");
}

TEST_F(redisson_fair, waiters_of_all_programs_are_served_in_order_of_arrival) {
  lease held = lock_.acquire();
  auto first = harness::concurrently([&] { return rival_.acquire(); });
  until_waiting(1);
  java_waits(3'000'000);
  auto last = harness::concurrently([&] { return lock_.acquire(); });
  until_waiting(3);
  const auto line = waiting();
  EXPECT_EQ(line.at(1), java);
  held = {};
  lease second = first.get();
  EXPECT_EQ(waiting().front(), java);
  harness::tcp_client listener(server_.port());
  listener.say("SUBSCRIBE " + channel_of(java) + "\r\n");
  await_listener(channel_of(java));
  EXPECT_FALSE(second.release());
  EXPECT_FALSE(rival_.try_acquire()) << "it is free, and java's turn";
  java_gets_in_as_the_first();
  EXPECT_EQ(waiting(), std::vector<std::string>{line.at(2)});
  await_listener(channel_of(line.at(2)));
  java_leaves();
  EXPECT_TRUE(last.get());
  EXPECT_TRUE(waiting().empty());
  listener.say("QUIT\r\n");
  EXPECT_TRUE(contains(listener.hear_all(), "message"));
}

TEST_F(redisson_fair, each_waiter_expires_later_than_the_waiter_before_it) {
  java_holds();
  java_waits(100'000);
  auto waits = harness::concurrently([&] { return lock_.try_acquire_for(1min); });
  until_waiting(2);
  const auto ours = std::stoll(ask({"ZSCORE", given_up, waiting().at(1)}));
  const auto theirs = std::stoll(ask({"ZSCORE", given_up, java}));
  EXPECT_EQ(ours - theirs, patience);
  java_waits(100'000 + 2 * patience, "1:2");
  const auto behind = std::stoll(ask({"ZSCORE", given_up, "1:2"}));
  java_gets_in_as_the_first();
  java_leaves();
  EXPECT_TRUE(waits.get());
  EXPECT_EQ(std::stoll(ask({"ZSCORE", given_up, "1:2"})), behind - 2 * patience);
}

// After minutes their times are near, and no longer its patience apart.
TEST_F(redisson_fair, the_next_waiter_keeps_its_entry_when_the_first_enters_after_a_long_wait) {
  java_holds();
  auto waits = harness::concurrently([&] { return lock_.try_acquire_for(1min); });
  until_waiting(1);
  java_waits(100'000, "1:2");
  const auto behind = std::stoll(ask({"ZSCORE", given_up, "1:2"}));
  java_leaves();
  auto held = waits.get();
  ASSERT_TRUE(held);
  EXPECT_EQ(std::stoll(ask({"ZSCORE", given_up, "1:2"})), behind);
  EXPECT_FALSE(held->release());
  EXPECT_FALSE(rival_.try_acquire()) << "free, and the turn of the next in line";
  EXPECT_EQ(waiting(), std::vector<std::string>{"1:2"});
}

TEST_F(redisson_fair, a_waiter_that_gives_up_leaves_the_queue_and_shortens_later_timeouts) {
  java_holds();
  EXPECT_FALSE(lock_.try_acquire_for(20ms));
  EXPECT_TRUE(waiting().empty());
  std::stop_source stop;
  auto waits = harness::concurrently([&] { return rival_.try_acquire_for(1h, stop.get_token()); });
  until_waiting(1);
  java_waits(1'000'000 + 2 * patience, "1:2");
  const auto behind = std::stoll(ask({"ZSCORE", given_up, "1:2"}));
  stop.request_stop();
  EXPECT_FALSE(waits.get());
  EXPECT_EQ(waiting(), std::vector<std::string>{"1:2"});
  EXPECT_EQ(std::stoll(ask({"ZSCORE", given_up, "1:2"})), behind - patience);
  EXPECT_EQ(ask({"ZCARD", "{fair}:holdfast:waits"}), "0");
}

TEST_F(redisson_fair, a_late_waiter_of_redisson_loses_its_entry_and_a_timely_one_keeps_it) {
  java_waits(60'000);
  EXPECT_FALSE(lock_.try_acquire()) << "free, and java's turn";
  ask({"ZADD", given_up, std::to_string(server_time() - 1), java});
  EXPECT_TRUE(lock_.try_acquire());
  EXPECT_EQ(ask({"EXISTS", queue, given_up}), "0");
}

// A dead waiter of theirs costs minutes, which we cannot change.
TEST_F(redisson_fair, a_dead_waiter_of_ours_is_removed_by_the_next_and_a_waiter_is_notified) {
  const std::string dead = "00000000000000110000000000000004:1";
  java_waits(600'000, dead);
  ask({"ZADD", "{fair}:holdfast:waits", std::to_string(server_time() - 1), dead});
  java_waits(900'000);
  harness::tcp_client listener(server_.port());
  listener.say("SUBSCRIBE " + channel_of(java) + "\r\n");
  await_listener(channel_of(java));
  EXPECT_FALSE(lock_.try_acquire());
  EXPECT_EQ(waiting(), std::vector<std::string>{java});
  EXPECT_LT(std::stoll(ask({"ZSCORE", given_up, java})), server_time() + 700'000);
  listener.say("QUIT\r\n");
  EXPECT_TRUE(contains(listener.hear_all(), "message")) << "it may come now";
}

TEST_F(redisson_fair, a_living_waiter_of_ours_keeps_its_entry_for_any_time) {
  java_holds();
  auto waits = harness::concurrently([&] { return lock_.acquire(); });
  until_waiting(1);
  const auto mine = waiting().front();
  ask({"ZADD", given_up, std::to_string(server_time() + 100), mine});
  harness::eventually("it has said that it lives", [&] {
    return std::stoll(ask({"ZSCORE", given_up, mine})) > server_time() + 1'000;
  });
  EXPECT_EQ(waiting().front(), mine);
  java_leaves();
  EXPECT_TRUE(waits.get());
}

TEST_F(redisson_fair, a_queue_entry_with_a_lost_answer_goes_with_its_waiter) {
  java_holds();
  harness::fault_proxy network(server_.port());
  const auto far =
      holdfast::open("redis://127.0.0.1:" + std::to_string(network.port()) + "?dialect=redisson");
  fair_mutex there(far, "fair");
  network.with([](auto& relay) { relay.cut_after(harness::way::down, 0); });
  EXPECT_FALSE(there.try_acquire_for(100ms));
  EXPECT_GT(network.count().cut, 0u) << "no answer was lost";
  harness::eventually("nobody waits", [&] { return waiting().empty(); });
}

TEST_F(redisson_fair, a_key_that_is_no_queue_is_reported_and_not_changed) {
  java_holds();
  ask({"SET", queue, "page"});
  const auto refused = outcome_of([&] { lock_.lock(); });
  EXPECT_EQ(refused.reason, errc::kind_mismatch);
  EXPECT_TRUE(contains(refused.text, "queue that is a string")) << refused.text;
  EXPECT_EQ(ask({"GET", queue}), "page");
}

TEST_F(redisson_fair, a_mutex_and_a_fair_lock_exclude_each_other_and_report_losses) {
  holdfast::mutex plain(other_, "fair");
  lease held = lock_.acquire();
  EXPECT_FALSE(plain.try_acquire());
  EXPECT_EQ(other_.force_release("fair"), 1u);
  EXPECT_EQ(outcome_of([&] { held.extend(); }).reason, errc::lost);
  const auto other = plain.try_acquire();
  EXPECT_TRUE(other);
  EXPECT_FALSE(lock_.try_acquire());
}

// As Java's getMultiLock, which keeps nothing of its own at the server.
TEST_F(redisson_fair, several_of_all_kinds_are_locked_together) {
  holdfast::mutex plain(session_, "plain");
  holdfast::semaphore three(session_, "sem", 3);
  holdfast::multi_lock all{plain, lock_, holdfast::permits(three, 2)};
  {
    const auto held = all.acquire();
    EXPECT_EQ(ask({"GET", "sem"}), "1");
    EXPECT_FALSE(rival_.try_acquire());
    EXPECT_FALSE(holdfast::mutex(other_, "plain").try_acquire());
  }
  EXPECT_EQ(ask({"GET", "sem"}), "3");
  java_holds();
  EXPECT_FALSE(all.try_acquire_for(20ms));
  EXPECT_TRUE(waiting().empty());
  EXPECT_TRUE(holdfast::mutex(other_, "plain").try_acquire());
}

}  // namespace
}  // namespace interop_test
