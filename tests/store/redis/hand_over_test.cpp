#include "harness/hand_over.hpp"
#include "fixture.hpp"
#include "harness/overheard.hpp"
#include "harness/tcp.hpp"
#include "session/session_impl.hpp"
#include "store/redis/keys.hpp"

// A hand-over is one command, and only the previous holder can make one up: a user that may read
// every record and every notification, and send notifications to every session, cannot.
namespace {

using harness::overheard;
using holdfast::lease;
using holdfast::store::notification;

class redis_hand_over : public testing::Test {
 protected:
  void publish(const holdfast::session& to, const std::string& text) {
    server_.ask({"PUBLISH", "holdfast:inbox:" + to.impl()->peer(), text});
  }
  static std::string text_of(const notification& n, const holdfast::store::owner_id& owner) {
    return "passed " + to_string(owner) + ' ' + std::to_string(n.fence + 1'000'000) + ' ' +
           std::to_string(n.expires_at + 3'600'000'000) + ' ' + to_string(n.secret) +
           " holdfast:{m}";
  }

  harness::redis_server server_;
  std::shared_ptr<overheard> heard_ = std::make_shared<overheard>();
  holdfast::session a_ = holdfast::open(server_.url());
  holdfast::session b_ = holdfast::open(server_.url(), heard_->options());
  holdfast::session c_ = holdfast::open(server_.url());
};

TEST_F(redis_hand_over, along_a_queue_costs_one_command_each) {
  harness::hand_over_line(a_, b_, c_).expect_one_command_each();
}

TEST_F(redis_hand_over, that_was_overheard_lets_no_other_waiter_in) {
  harness::hand_over_line line(a_, b_, c_);
  lease two = line.handed_over();
  const notification n = heard_->last();
  ASSERT_TRUE(n.secret);
  const auto record = a_.impl()->permits("m", {})->found;
  line.expect_the_third_asks_after([&] { publish(c_, text_of(n, record.queue.at(0).owner)); });
  // Nor can it give the holder a later end, or another fence.
  const auto fence = two.fence();
  publish(b_, text_of(n, n.owner));
  EXPECT_EQ(two.fence(), fence);
  EXPECT_FALSE(two.release());
  EXPECT_TRUE(line.last.get().value());
}

TEST_F(redis_hand_over, is_requested_from_the_store_if_replicas_must_acknowledge) {
  const holdfast::session d = holdfast::open(server_.url() + "?ack=1");
  EXPECT_FALSE(d.impl()->can().secret_proves);
}

TEST_F(redis_hand_over, leaves_no_secret_where_it_can_be_read) {
  harness::hand_over_line line(a_, b_, c_);
  lease two = line.handed_over();
  const std::string secret = to_string(heard_->last().secret);
  for (const char* const key : {"holdfast:{m}", "holdfast:{m}:d"}) {
    EXPECT_EQ(server_.ask({"DUMP", key}).find(secret), std::string::npos) << key;
  }
  EXPECT_FALSE(two.release());
  EXPECT_TRUE(line.last.get().value());
}

// Its user may only read records, and publish.
TEST_F(redis_hand_over, that_a_user_without_other_rights_made_up_gives_nothing_before_any_answer) {
  server_.ask({"ACL", "SETUSER", "spy", "on", ">pw", "~*", "&*", "+get", "+hgetall", "+publish"});
  const auto spy = [&](const std::string& command) {
    harness::tcp_client client(server_.port());
    client.say("AUTH spy pw\r\n" + command + "\r\nQUIT\r\n");
    return client.hear_all();
  };
  EXPECT_NE(spy("DEL holdfast:{m}").find("-NOPERM"), std::string::npos);
  harness::deaf_waiter waiter(a_, server_.url());
  const auto record = a_.impl()->permits("m", {})->found;
  const auto owner = record.queue.at(0).owner;
  const auto seen = spy("GET holdfast:{m}") + spy("HGETALL holdfast:{m}:d");
  EXPECT_NE(seen.find(to_string(owner)), std::string::npos) << seen;
  notification n;
  n.fence = record.last_fence;
  n.expires_at = record.holders.at(0).expires_at;
  const std::string channel = "holdfast:inbox:" + waiter.session().impl()->peer();
  for (const auto& secret : {holdfast::store::owner_id{}, owner, record.holders.at(0).owner}) {
    n.secret = secret;
    const auto told = spy("PUBLISH " + channel + " \"" + text_of(n, owner) + "\"");
    EXPECT_NE(told.find(":1\r\n"), std::string::npos) << told;
  }
  waiter.expect_it_gets_nothing();
}

}  // namespace
