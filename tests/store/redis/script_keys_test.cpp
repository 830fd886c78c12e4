#include <sstream>

#include "fixture.hpp"
#include "session/session_impl.hpp"

// How long the server keeps the record of a mutex that somebody waits for: what it ends by itself
// before its time is lost.
namespace redis_test {
namespace {

using namespace std::chrono_literals;
using holdfast::store::permits_outcome;
using holdfast::store::permits_verb;

class script_keys : public testing::Test {
 protected:
  permits_outcome ask(permits_verb verb, std::uint64_t owner, std::chrono::microseconds lease = 60s,
                      std::chrono::microseconds place = 20s) {
    holdfast::store::permits_command c;
    c.verb = verb;
    c.owner = {1, owner};
    c.wait = true;
    c.lease_us = lease.count();
    c.queue_lease_us = place.count();
    c.peer = session_.impl()->peer();
    return session_.impl()->permits("m", c).value().outcome;
  }
  std::chrono::milliseconds record_lasts() const {
    std::istringstream keys(server_.ask({"KEYS", "*"}));
    for (std::string key; keys >> key;) {
      if (server_.ask({"TYPE", key}) != "string") continue;
      return std::chrono::milliseconds(std::stol(server_.ask({"PTTL", key})));
    }
    return {};
  }

  const harness::redis_server server_;
  const holdfast::session session_ = holdfast::open(server_.url());
};

TEST_F(script_keys, of_a_holder_last_for_its_lease_though_a_waiter_s_place_ends_sooner) {
  ASSERT_EQ(ask(permits_verb::acquire, 1), permits_outcome::granted);
  ASSERT_EQ(ask(permits_verb::acquire, 2), permits_outcome::queued);
  EXPECT_GT(record_lasts(), 20s + 1s);
}

TEST_F(script_keys, of_a_holder_last_for_the_renewed_lease_though_a_waiter_s_place_ends_sooner) {
  ASSERT_EQ(ask(permits_verb::acquire, 1), permits_outcome::granted);
  ASSERT_EQ(ask(permits_verb::acquire, 2), permits_outcome::queued);
  ASSERT_EQ(ask(permits_verb::renew, 1, 120s), permits_outcome::granted);
  EXPECT_GT(record_lasts(), 60s + 1s);
}

TEST_F(script_keys, of_a_queue_last_longer_than_the_grant_of_the_one_that_has_to_claim_it) {
  ASSERT_EQ(ask(permits_verb::acquire, 1), permits_outcome::granted);
  ASSERT_EQ(ask(permits_verb::acquire, 2), permits_outcome::queued);
  ASSERT_EQ(ask(permits_verb::acquire, 3), permits_outcome::queued);
  ASSERT_EQ(ask(permits_verb::acquire, 4), permits_outcome::queued);
  ASSERT_EQ(ask(permits_verb::release, 1), permits_outcome::done);
  EXPECT_GT(record_lasts(), 2s);
}

// A test of the tests: what every server is asked for at its end.
TEST(keys_for_ever, are_found_in_every_database_and_a_server_that_says_nothing_is_named) {
  harness::redis_server server;
  server.ask({"EVAL", "redis.call('SELECT', '3') redis.call('SET', 'a b', 'x')", "0"});
  EXPECT_EQ(server.keys_for_ever(), "a b ");
  server.ask({"CONFIG", "SET", "requirepass", "s3cret"});
  EXPECT_TRUE(contains(server.keys_for_ever(), "NOAUTH")) << server.keys_for_ever();
  server.wants("s3cret");
  EXPECT_EQ(server.keys_for_ever(), "a b ");
  server.may_stay("a*", "this test is over");
  EXPECT_EQ(server.keys_for_ever(), "");
}

}  // namespace
}  // namespace redis_test
