#include <gtest/gtest.h>

#include <holdfast/both.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <mutex>
#include <thread>

#include "harness/eventually.hpp"

namespace primitive_test {
namespace {

using namespace std::chrono_literals;
using holdfast::both;
using holdfast::errc;
using holdfast::lease;
using holdfast::mutex;

/// Two stores, and on each somebody who knows only that one.
class two_locks : public testing::Test {
 protected:
  static holdfast::session open(const char* store) {
    return holdfast::open("memory:both-" + std::string(store));
  }
  bool old_is_free() { return bool(only_old_.try_acquire()); }
  bool new_is_free() { return bool(only_new_.try_acquire()); }

  holdfast::session old_store_ = open("old"), new_store_ = open("new");
  mutex old_{old_store_, "orders"}, new_{new_store_, "orders"};
  holdfast::session elsewhere_old_ = open("old"), elsewhere_new_ = open("new");
  mutex only_old_{elsewhere_old_, "orders"}, only_new_{elsewhere_new_, "orders"};
  both<mutex, mutex> both_{old_, new_};
};

TEST_F(two_locks, both_are_held_against_those_who_know_one_and_both_are_given_back) {
  auto held = both_.acquire();
  ASSERT_TRUE(held);
  EXPECT_NO_THROW(held.check());
  EXPECT_EQ(held.fence(), held.next().fence());
  EXPECT_FALSE(old_is_free());
  EXPECT_FALSE(new_is_free());
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(old_is_free());
  EXPECT_TRUE(new_is_free());
}

TEST_F(two_locks, if_either_is_taken_none_is_held) {
  {
    const lease taken = only_new_.acquire();
    EXPECT_FALSE(both_.try_acquire());
    EXPECT_FALSE(both_.try_acquire_for(1ms));
    EXPECT_FALSE(both_.try_lock());
    EXPECT_FALSE(both_.try_lock_for(1ms));
    EXPECT_TRUE(old_is_free());
  }
  const lease taken = only_old_.acquire();
  EXPECT_FALSE(both_.try_acquire());
  EXPECT_FALSE(both_.try_lock());
  EXPECT_TRUE(new_is_free());
}

TEST_F(two_locks, who_waits_gets_both_when_the_last_one_is_free) {
  lease taken = only_new_.acquire();
  std::thread waiter([&] { EXPECT_TRUE(both_.acquire()); });
  harness::eventually("it has the old one and waits for the new one",
                      [&] { return elsewhere_new_.show("orders").waiters.size() == 1; });
  EXPECT_FALSE(old_is_free());
  taken = {};
  waiter.join();
  EXPECT_TRUE(old_is_free());
}

TEST_F(two_locks, one_that_is_cancelled_between_the_two_leaves_none) {
  const lease taken = only_new_.acquire();
  std::stop_source stop;
  std::thread waiter([&] { EXPECT_FALSE(both_.try_acquire_for(1h, stop.get_token())); });
  harness::eventually("it waits for the new one",
                      [&] { return elsewhere_new_.show("orders").waiters.size() == 1; });
  stop.request_stop();
  waiter.join();
  EXPECT_TRUE(old_is_free());
}

TEST_F(two_locks, a_new_store_that_is_away_costs_an_error_and_the_old_one_is_free_again) {
  holdfast::testing::fault_plan away;
  away.choose = [](auto, auto, auto) { return holdfast::testing::fault::drop_request; };
  const auto gone = holdfast::open(
      "memory:both-away", {.store_timeout = 0ms, .decorate = holdfast::testing::faulty(away)});
  mutex unreachable(gone, "orders");
  both pair{old_, unreachable};
  EXPECT_THROW((void)pair.acquire(), holdfast::error);
  EXPECT_TRUE(old_is_free());
  EXPECT_THROW(pair.lock(), holdfast::error);
  EXPECT_TRUE(old_is_free());
}

TEST_F(two_locks, the_loss_of_one_is_the_loss_of_both_and_the_other_is_still_given_back) {
  auto held = both_.acquire();
  EXPECT_EQ(new_store_.force_release("orders"), 1u);
  EXPECT_EQ(held.release(), make_error_code(errc::lost));
  EXPECT_TRUE(old_is_free());
}

TEST_F(two_locks, it_is_locked_as_the_standard_locks) {
  {
    const std::lock_guard guard{both_};
    EXPECT_FALSE(old_is_free());
    EXPECT_FALSE(new_is_free());
  }
  const std::unique_lock timed{both_, 1h};
  EXPECT_TRUE(timed.owns_lock());
  EXPECT_FALSE(new_is_free());
}

}  // namespace
}  // namespace primitive_test
