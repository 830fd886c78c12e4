#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "fixture.hpp"
#include "harness/fake_redis.hpp"
#include "harness/still_clock.hpp"
#include "store/redis/cluster.hpp"

// A session's view of a cluster, and how it asks several of its nodes.
namespace {

using namespace std::chrono_literals;
namespace redis = holdfast::store::redis;
using words = harness::fake_redis::words;

constexpr int all_slots = 16384;

/// Two nodes, of which each has half of the slots, or the second is a replica of the first.
class redis_cluster_of_halves : public testing::Test {
 protected:
  using address = holdfast::base::address;

  static std::string number(int n) { return ":" + std::to_string(n) + "\r\n"; }
  static std::string node(int port) { return "*2\r\n" + harness::bulk("127.0.0.1") + number(port); }
  std::string slots() {
    const std::lock_guard guard{mutex_};
    const std::string first = node(first_.port()), second = node(second_.port());
    const std::string last = number(all_slots - 1);
    if (halves_) {
      return "*2\r\n*3\r\n" + number(0) + number(all_slots / 2 - 1) + first + "*3\r\n" +
             number(all_slots / 2) + last + second;
    }
    if (const int gone = moved_to_nobody_; gone != 0)
      return "*1\r\n*3\r\n" + number(0) + last + node(gone);
    if (replica_) return "*1\r\n*4\r\n" + number(0) + last + first + second;
    return "*1\r\n*3\r\n" + number(0) + last + first;
  }
  /// Each waits for the other before it answers.
  std::string together() {
    std::unique_lock lock{mutex_};
    ++asked_;
    changed_.notify_all();
    while (halves_ && asked_ < 2) changed_.wait(lock);
    return "+OK\r\n";
  }
  std::string say_if_awake(const words& w) {
    std::unique_lock lock{mutex_};
    while (silent_) changed_.wait(lock);
    lock.unlock();
    return say(w);
  }
  std::string say(const words& w) {
    if (w[0] == "INFO")
      return harness::bulk("# Server\r\nredis_version:7.0.15\r\ncluster_enabled:1\r\n");
    if (w[0] == "CLUSTER") ++maps_asked_;
    if (w[0] == "CLUSTER") return slots();
    if (w[0] != "EVALSHA") return {};
    if (const int gone = moved_to_nobody_; gone != 0)
      return "-MOVED " + std::to_string(redis::slot_of(low_)) +
             " 127.0.0.1:" + std::to_string(gone) + "\r\n";
    if (const std::lock_guard guard{mutex_}; std::exchange(moves_, false)) {
      replica_ = true;
      return "-MOVED 0 127.0.0.1:" + std::to_string(first_.port()) + "\r\n";
    }
    return together();
  }
  redis::redis_options options() {
    redis::redis_options o;
    o.topology = redis::topology::cluster;
    o.seeds = {at(first_)};
    o.clock = &clock_;
    return o;
  }
  static address at(const harness::fake_redis& node) {
    return {"127.0.0.1", static_cast<std::uint16_t>(node.port())};
  }
  static std::string in_half(int which) {
    std::string name = "a";
    while (redis::slot_of(name) * 2 / all_slots != which) name += 'a';
    return name;
  }
  static std::string call() {
    std::string bytes;
    redis::append_command(bytes, {"EVALSHA", "x"});
    return bytes;
  }
  void second_is_silent(bool so) {
    const std::lock_guard guard{mutex_};
    silent_ = so;
    asked_ = 2;  // neither waits for the other
    changed_.notify_all();
  }
  void TearDown() override { second_is_silent(false); }

  const std::string low_ = in_half(0), high_ = in_half(1), call_ = call();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool halves_ = true;
  bool replica_ = false;
  bool moves_ = false;   ///< with the next command, and there is a replica then
  bool silent_ = false;  ///< the second sends nothing, and accepts requests
  int asked_ = 0;
  std::atomic<int> moved_to_nobody_{0};  ///< a port on which nobody listens
  std::atomic<int> maps_asked_{0};
  harness::still_clock clock_;
  harness::fake_redis first_{[this](const words& w) { return say(w); }};
  harness::fake_redis second_{[this](const words& w) { return say_if_awake(w); }};
};

TEST_F(redis_cluster_of_halves, get_their_requests_at_the_same_time) {
  redis::cluster all(options());
  ASSERT_TRUE(all.open());
  const std::array<redis::request, 2> both{{{.name = low_, .commands = call_, .stamped = false},
                                            {.name = high_, .commands = call_, .stamped = false}}};
  const auto answers = all.ask(both);
  EXPECT_TRUE(answers[0]) << answers[0].error().what;
  EXPECT_TRUE(answers[1]) << answers[1].error().what;
}

// The renewals at the other node are in time also the next time.
TEST_F(redis_cluster_of_halves, of_which_one_fell_silent_are_not_both_waited_for_again) {
  auto o = options();
  o.command_timeout = o.connect_timeout = 2s;
  redis::cluster all(o);
  ASSERT_TRUE(all.open());
  const std::array<redis::request, 2> both{{{.name = low_, .commands = call_, .stamped = false},
                                            {.name = high_, .commands = call_, .stamped = false}}};
  second_is_silent(true);
  const auto first = all.ask(both);
  EXPECT_TRUE(first[0]) << first[0].error().what;
  EXPECT_FALSE(first[1]);
  const auto again = all.ask(both);
  EXPECT_TRUE(again[0]) << again[0].error().what;
  ASSERT_FALSE(again[1]);
  EXPECT_TRUE(harness::contains(again[1].error().what, "just now")) << again[1].error().what;
  EXPECT_FALSE(again[1].error().outcome_unknown);
  second_is_silent(false);
  clock_.time.advance(o.command_timeout);
  harness::eventually("it is asked again", [&] { return all.ask(both)[1].ok(); });
}

// A request that waits for a hanging node has no time left to learn the new owner of its slots.
TEST_F(redis_cluster_of_halves, of_which_one_hangs_and_was_replaced_are_learned_soon) {
  auto o = options();
  o.command_timeout = o.connect_timeout = 2s;
  redis::cluster all(o);
  ASSERT_TRUE(all.open());
  const redis::request one{.name = high_, .commands = call_, .stamped = false};
  second_is_silent(true);
  {
    const std::lock_guard guard{mutex_};
    halves_ = false;
  }
  EXPECT_FALSE(all.ask(one));
  EXPECT_FALSE(all.ask(one)) << "this one asks for its present node";
  const auto third = all.ask(one);
  EXPECT_TRUE(third) << third.error().what;
}

// No name moves when a replica goes, so no node answers MOVED.
TEST_F(redis_cluster_of_halves, are_mapped_again_without_any_report_of_a_missing_node) {
  halves_ = false;
  replica_ = true;
  redis::cluster all(options());
  ASSERT_TRUE(all.open());
  const auto notifications = all.for_notifications();
  EXPECT_TRUE(notifications.told_at(at(second_)));
  {
    const std::lock_guard guard{mutex_};
    replica_ = false;
  }
  std::string bytes;
  redis::append_command(bytes, {"EVALSHA", "x"});
  const redis::request one{.name = "n", .commands = bytes, .stamped = false};
  const auto ask_twice = [&] {
    EXPECT_TRUE(all.ask(one));
    EXPECT_TRUE(all.ask(one));
  };
  ask_twice();
  EXPECT_TRUE(notifications.told_at(at(second_))) << "the map is not asked for all the time";
  clock_.time.advance(2min);
  ask_twice();
  EXPECT_FALSE(notifications.told_at(at(second_)));
}

// MOVED makes the session ask for the map. That the slots' new node is missing is no news then: the
// caller retries, as long as it has time.
TEST_F(redis_cluster_of_halves,
       are_unavailable_while_slots_have_moved_to_a_missing_node_and_found_again_later) {
  halves_ = false;
  redis::cluster all(options());
  ASSERT_TRUE(all.open());
  moved_to_nobody_ = 1;
  maps_asked_ = 0;
  const redis::request one{.name = low_, .commands = call_, .stamped = false};
  const auto lost = all.ask(one);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, holdfast::errc::unavailable) << lost.error().what;
  EXPECT_FALSE(lost.error().outcome_unknown) << "it was refused twice";
  EXPECT_LE(maps_asked_, 2);
  moved_to_nobody_ = 0;
  asked_ = 2;
  harness::eventually("it is found again", [&] { return all.ask(one).ok(); });
}

// The answer that nobody waited for may be older than a map that was requested meanwhile.
TEST_F(redis_cluster_of_halves, do_not_go_back_to_an_older_map) {
  halves_ = false;
  redis::cluster all(options());
  ASSERT_TRUE(all.open());
  clock_.time.advance(2min);
  {
    const std::lock_guard guard{mutex_};
    moves_ = true;
  }
  std::string bytes;
  redis::append_command(bytes, {"EVALSHA", "x"});
  const redis::request one{.name = "n", .commands = bytes, .stamped = false};
  EXPECT_TRUE(all.ask(one));
  EXPECT_TRUE(all.for_notifications().told_at(at(second_)));
  EXPECT_TRUE(all.ask(one));
  EXPECT_TRUE(all.for_notifications().told_at(at(second_)));
}

}  // namespace
