#include "harness/hand_over.hpp"
#include "fixture.hpp"
#include "harness/overheard.hpp"
#include "session/session_impl.hpp"
#include "store/postgres/listener.hpp"
#include "store/sql/notification_text.hpp"

// As redis_hand_over: to send a notification, and to listen to one, needs no right here.
namespace postgres_test {
namespace {

using harness::overheard;
using holdfast::lease;
using holdfast::store::notification;

class postgres_hand_over : public postgres_store {
 protected:
  void notify(const holdfast::session& to, const notification& n) {
    std::string line = holdfast::store::sql::encode(n);
    line.pop_back();
    ask("select pg_notify('" + holdfast::store::postgres::channel_of(to.impl()->peer()) + "', '" +
        line + "')");
  }

  std::shared_ptr<overheard> heard_ = std::make_shared<overheard>();
  holdfast::session a_ = open();
  holdfast::session b_ = holdfast::open(url(), heard_->options());
  holdfast::session c_ = open();
};

TEST_F(postgres_hand_over, along_a_line_is_one_command_each) {
  harness::hand_over_line(a_, b_, c_).expect_one_command_each();
}

TEST_F(postgres_hand_over, that_was_overheard_lets_nobody_else_in) {
  harness::hand_over_line line(a_, b_, c_);
  EXPECT_FALSE(line.held.release());
  lease two = line.next.get().value();
  notification n = heard_->last();
  ASSERT_TRUE(n.secret);
  n.owner = a_.impl()->permits("m", {})->found.queue.at(0).owner;
  n.fence += 1'000'000;
  n.expires_at += 3'600'000'000;
  line.expect_the_third_asks_after([&] { notify(c_, n); });
  EXPECT_FALSE(two.release());
  EXPECT_TRUE(line.last.get().value());
}

}  // namespace
}  // namespace postgres_test
