#include "engine/core.hpp"
#include "fixture.hpp"
#include "harness/overheard.hpp"
#include "store/postgres/listener.hpp"
#include "store/sql/notice_text.hpp"

// As redis_hand_over: to send a notification, and to listen to one, needs no right here.
namespace postgres_test {
namespace {

using namespace std::chrono_literals;
using harness::overheard;
using holdfast::fair_mutex;
using holdfast::lease;
using holdfast::store::notice;

class postgres_hand_over : public postgres_store {
 protected:
  void notify(const holdfast::session& to, const notice& n) {
    std::string line = holdfast::store::sql::encode(n);
    line.pop_back();
    ask("select pg_notify('" + holdfast::store::postgres::channel_of(to.core()->peer()) + "', '" +
        line + "')");
  }
  void await_waiters(std::size_t n) {
    harness::eventually("waiters", [&] { return a_.show("m").waiters.size() == n; });
  }

  std::shared_ptr<overheard> heard_ = std::make_shared<overheard>();
  holdfast::session a_ = open();
  holdfast::session b_ = holdfast::open(url(), heard_->options());
  holdfast::session c_ = open();
};

TEST_F(postgres_hand_over, along_a_line_is_one_command_each) {
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

TEST_F(postgres_hand_over, that_was_overheard_lets_nobody_else_in) {
  fair_mutex first{a_, "m"}, second{b_, "m"}, third{c_, "m"};
  lease held = first.acquire();
  auto next = async_acquire(second).future();
  await_waiters(1);
  auto last = async_acquire(third).future();
  await_waiters(2);
  EXPECT_FALSE(held.release());
  lease two = next.get().value();
  notice n = heard_->last();
  ASSERT_TRUE(n.secret);
  n.owner = a_.core()->permits("m", {})->found.queue.at(0).owner;
  n.fence += 1'000'000;
  n.expires_at += 3'600'000'000;
  const auto asked = c_.store_operations();
  notify(c_, n);
  harness::eventually("it asks", [&] { return c_.store_operations() > asked; });
  EXPECT_EQ(last.wait_for(0s), std::future_status::timeout);
  EXPECT_EQ(a_.show("m").waiters.size(), 1U);
  EXPECT_FALSE(two.release());
  EXPECT_TRUE(last.get().value());
}

}  // namespace
}  // namespace postgres_test
