#include <atomic>

#include "fixture.hpp"
#include "harness/fake_redis.hpp"
#include "store/redis/cluster.hpp"

// Requests that may have been carried out already, when a connection breaks and the name moves on.
namespace {

using namespace std::chrono_literals;
namespace redis = holdfast::store::redis;

/// A cluster of two nodes, each of which answers EVALSHA as the test wants. The first has all
/// slots, until the test moves them.
class redis_cluster_of_two : public testing::Test {
 protected:
  using words = harness::fake_redis::words;

  std::string slots() const {
    const auto to = moved_ ? second_.port() : first_.port();
    return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n" + harness::bulk("127.0.0.1") + ":" +
           std::to_string(to) + "\r\n";
  }
  std::string say(const words& w, std::atomic<int>& heard, const std::vector<std::string>& says) {
    if (w[0] == "INFO")
      return harness::bulk("# Server\r\nredis_version:7.0.15\r\ncluster_enabled:1\r\n");
    if (w[0] == "CLUSTER") return slots();
    if (w[0] != "EVALSHA") return {};
    const auto answer = says.at(static_cast<std::size_t>(heard++));
    moved_ = moved_ || answer.starts_with("-MOVED");
    return answer;
  }
  std::string moved(int slot) const {
    return "-MOVED " + std::to_string(slot) + " 127.0.0.1:" + std::to_string(second_.port()) +
           "\r\n";
  }
  holdfast::result<redis::reply> ask(bool once) {
    redis::redis_options o;
    o.topology = redis::topology::cluster;
    o.seeds = {{"127.0.0.1", static_cast<std::uint16_t>(first_.port())}};
    redis::cluster all(o);
    EXPECT_TRUE(all.open());
    std::string bytes;
    redis::append_command(bytes, {"EVALSHA", "x"});
    return all.ask({.name = "n", .commands = bytes, .stamped = false, .once = once});
  }

  std::vector<std::string> first_says_, second_says_;
  std::atomic<int> first_heard_{0}, second_heard_{0};
  std::atomic<bool> moved_{false};
  harness::fake_redis second_{
      [this](const words& w) { return say(w, second_heard_, second_says_); }};
  harness::fake_redis first_{[this](const words& w) { return say(w, first_heard_, first_says_); }};
};

TEST_F(redis_cluster_of_two, a_command_that_may_have_run_at_the_first_node_counts_as_repeated) {
  first_says_ = {harness::fake_redis::hang_up, moved(0)};
  second_says_ = {":0\r\n"};
  const auto got = ask(false);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(first_heard_, 2);
  EXPECT_EQ(second_heard_, 1);
  EXPECT_TRUE(got->repeated);
}

TEST_F(redis_cluster_of_two, a_redirected_command_does_not_count_as_repeated) {
  first_says_ = {moved(0)};
  second_says_ = {":0\r\n"};
  const auto got = ask(false);
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_FALSE(got->repeated);
}

TEST_F(redis_cluster_of_two, a_command_that_must_not_be_repeated_is_sent_to_no_other_node) {
  first_says_ = {harness::fake_redis::hang_up, ":0\r\n"};
  second_says_ = {":0\r\n"};
  const auto got = ask(true);
  ASSERT_FALSE(got);
  EXPECT_TRUE(got.error().outcome_unknown);
  EXPECT_EQ(first_heard_ + second_heard_, 1);
}

}  // namespace
