#include <atomic>
#include <set>

#include "fixture.hpp"
#include "harness/fake_redis.hpp"
#include "session/session_impl.hpp"
#include "store/redis/node.hpp"

// Several commands in one write: in the order of the requests, and each of them once.
namespace {

using namespace std::chrono_literals;
using namespace holdfast::store;
namespace redis = holdfast::store::redis;

/// A cluster of one node that has all slots, and records the names in its requests.
class redis_batch : public testing::Test {
 protected:
  std::string answer(const harness::fake_redis::words& w) {
    const auto port = server_.url().substr(server_.url().rfind(':') + 1);
    if (w[0] == "INFO")
      return harness::bulk("# Server\r\nredis_version:7.0.15\r\ncluster_enabled:1\r\n");
    if (w[0] == "CLUSTER") {
      return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n" + harness::bulk("127.0.0.1") + ":" + port +
             "\r\n";
    }
    if (w[0] != "EVALSHA") return {};
    asked_.push_back(w[3]);
    return ":3\r\n";
  }
  std::vector<std::string> asked_;
  harness::fake_redis server_{[this](const auto& w) { return answer(w); }};
};

TEST_F(redis_batch, of_a_cluster_goes_in_the_order_in_which_it_was_asked) {
  auto s = holdfast::open("redis+cluster" + server_.url().substr(5));
  std::vector<std::string> names, keys;
  for (int i = 0; i < 64; ++i) {
    names.push_back("n" + std::to_string(i));
    keys.push_back("holdfast:{" + names.back() + "}");
  }
  std::vector<named_command> batch;
  for (const auto& name : names) {
    permits_command c;
    c.verb = permits_verb::release;
    c.owner = {1, 1};
    batch.push_back({name, c});
  }
  for (const auto& reply : s.impl()->permits(batch)) EXPECT_TRUE(reply);
  EXPECT_EQ(asked_, keys);
}

redis::redis_options of(const harness::fake_redis& server) {
  redis::redis_options o;
  o.port = static_cast<std::uint16_t>(server.port());
  return o;
}

TEST(redis_noscript, in_the_middle_of_a_batch_repeats_only_the_refused_commands) {
  std::multiset<std::string> carried_out;
  bool knows = false, forgot = false;
  const harness::fake_redis server([&](const harness::fake_redis::words& w) -> std::string {
    if (w[0] == "SCRIPT") knows = true;
    if (w[0] != "EVALSHA") return {};
    // The scripts are flushed between the two.
    if (w[1] == "b" && !forgot) forgot = true, knows = false;
    if (!knows) return "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    carried_out.insert(w[1]);
    return ":" + std::to_string(w[1][0]) + "\r\n";
  });
  redis::node node(of(server));
  ASSERT_TRUE(node.open());
  std::vector<std::string> bytes(4);
  std::vector<redis::message> all;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::string word(1, static_cast<char>('a' + i));
    redis::append_command(bytes[i], {"EVALSHA", word});
  }
  for (const auto& b : bytes) all.push_back({.bytes = b});
  const auto got = node.ask(all, false);
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->repeated);
  ASSERT_EQ(got->replies.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(got->replies[i].integer, static_cast<int>('a' + i)) << "each has its own answer";
  }
  EXPECT_EQ(carried_out, (std::multiset<std::string>{"a", "b", "c", "d"}));
}

// The listener of a posted command is called by the thread that has read its answer: here before
// that thread looks at the answer to its own request.
TEST(redis_readonly, over_a_connection_that_is_gone_leaves_the_next_one_alone) {
  std::atomic<int> connections{0};
  const harness::fake_redis server([&](const harness::fake_redis::words& w) -> std::string {
    if (w[0] == "HELLO") ++connections;
    if (w[0] == "SET") return "-READONLY You can't write against a read only replica.\r\n";
    return w[0] == "GET" && connections == 1 ? harness::fake_redis::hang_up : "";
  });
  redis::node node(of(server));
  ASSERT_TRUE(node.open());
  std::string ping, get, set;
  redis::append_command(ping, {"PING"});
  redis::append_command(get, {"GET", "k"});
  redis::append_command(set, {"SET", "k", "v"});
  redis::link::listener told = [&](const holdfast::result<redis::node::answer>& answered) {
    ASSERT_TRUE(answered);
    EXPECT_TRUE(node.ask(get));
    EXPECT_EQ(connections, 2);
  };
  ASSERT_TRUE(node.post({ping}, told));
  const auto refused = node.ask(set);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->replies.front().is_error());
  EXPECT_TRUE(node.ask(get));
  EXPECT_EQ(connections, 2);
  EXPECT_TRUE(node.ask(set));
  EXPECT_TRUE(node.ask(get));
  EXPECT_EQ(connections, 3) << "a replica is left";
}

}  // namespace
