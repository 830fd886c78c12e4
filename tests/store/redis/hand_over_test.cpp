#include <thread>

#include "engine/core.hpp"
#include "fixture.hpp"
#include "harness/overheard.hpp"
#include "store/redis/keys.hpp"

// A hand-over is one command, and nobody else than the holder before can make one up: not who may
// read every record and every notification, and send notifications to whomever it likes.
namespace {

using namespace std::chrono_literals;
using harness::overheard;
using holdfast::fair_mutex;
using holdfast::lease;
using holdfast::store::notice;

class redis_hand_over : public testing::Test {
 protected:
  void publish(const holdfast::session& to, const std::string& text) {
    server_.ask({"PUBLISH", "holdfast:inbox:" + to.core()->peer(), text});
  }
  static std::string text_of(const notice& n, const holdfast::store::owner_id& owner) {
    return "passed " + to_string(owner) + ' ' + std::to_string(n.fence + 1'000'000) + ' ' +
           std::to_string(n.expires_at + 3'600'000'000) + ' ' + to_string(n.secret) +
           " holdfast:{m}";
  }
  void await_waiters(std::size_t n) {
    harness::eventually("waiters", [&] { return a_.show("m").waiters.size() == n; });
  }

  harness::redis_server server_;
  std::shared_ptr<overheard> heard_ = std::make_shared<overheard>();
  holdfast::session a_ = holdfast::open(server_.url());
  holdfast::session b_ = holdfast::open(server_.url(), heard_->options());
  holdfast::session c_ = holdfast::open(server_.url());
};

TEST_F(redis_hand_over, along_a_line_is_one_command_each) {
  fair_mutex first{a_, "m"}, second{b_, "m"}, third{c_, "m"};
  lease held = first.acquire();
  auto next = async_acquire(second).future();
  await_waiters(1);
  auto last = async_acquire(third).future();
  await_waiters(2);
  const auto of_b = b_.store_operations(), of_c = c_.store_operations();
  EXPECT_FALSE(held.release());
  lease two = next.get().value();
  EXPECT_EQ(b_.store_operations(), of_b);
  EXPECT_EQ(two.fence(), a_.show("m").holders.at(0).fence);
  EXPECT_FALSE(two.release());
  const lease three = last.get().value();
  EXPECT_EQ(c_.store_operations(), of_c);
  EXPECT_EQ(three.fence(), a_.show("m").holders.at(0).fence);
}

TEST_F(redis_hand_over, that_was_overheard_lets_nobody_else_in) {
  fair_mutex first{a_, "m"}, second{b_, "m"}, third{c_, "m"};
  lease held = first.acquire();
  auto next = async_acquire(second).future();
  await_waiters(1);
  auto last = async_acquire(third).future();
  await_waiters(2);
  EXPECT_FALSE(held.release());
  lease two = next.get().value();
  const notice n = heard_->last();
  ASSERT_TRUE(n.secret);
  const auto record = a_.core()->permits("m", {})->found;
  const auto asked = c_.store_operations();
  publish(c_, text_of(n, record.queue.at(0).owner));
  harness::eventually("it asks", [&] { return c_.store_operations() > asked; });
  EXPECT_EQ(last.wait_for(0s), std::future_status::timeout);
  EXPECT_EQ(a_.show("m").waiters.size(), 1U);
  // And the one that has it is not told a later end, or another fence.
  const auto fence = two.fence();
  publish(b_, text_of(n, n.owner));
  EXPECT_EQ(two.fence(), fence);
  EXPECT_FALSE(two.release());
  EXPECT_TRUE(last.get().value());
}

TEST_F(redis_hand_over, is_asked_for_where_replicas_have_a_word_in_it) {
  const holdfast::session d = holdfast::open(server_.url() + "?ack=1");
  EXPECT_FALSE(d.core()->can().secret_proves);
}

TEST_F(redis_hand_over, leaves_no_secret_where_it_can_be_read) {
  fair_mutex first{a_, "m"}, second{b_, "m"}, third{c_, "m"};
  lease held = first.acquire();
  auto next = async_acquire(second).future();
  await_waiters(1);
  auto last = async_acquire(third).future();
  await_waiters(2);
  EXPECT_FALSE(held.release());
  lease two = next.get().value();
  const std::string secret = to_string(heard_->last().secret);
  for (const char* const key : {"holdfast:{m}", "holdfast:{m}:d"}) {
    EXPECT_EQ(server_.ask({"DUMP", key}).find(secret), std::string::npos) << key;
  }
  EXPECT_FALSE(two.release());
  EXPECT_TRUE(last.get().value());
}

}  // namespace
