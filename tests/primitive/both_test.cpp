#include <gtest/gtest.h>

#include <future>
#include <holdfast/both.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <mutex>
#include <thread>

#include "engine/stage.hpp"
#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"

namespace primitive_test {
namespace {

using namespace std::chrono_literals;
using holdfast::both;
using holdfast::errc;
using holdfast::lease;
using holdfast::mutex;

/// Two stores, and on each a program that knows only that one.
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

TEST_F(two_locks, both_are_held_against_sessions_that_know_one_and_both_are_released) {
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

TEST_F(two_locks, if_either_is_taken_neither_is_held) {
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

TEST_F(two_locks, a_waiter_gets_both_when_the_last_one_is_free) {
  lease taken = only_new_.acquire();
  std::thread waiter([&] { EXPECT_TRUE(both_.acquire()); });
  harness::eventually("it has the old one and waits for the new one",
                      [&] { return elsewhere_new_.show("orders").waiters.size() == 1; });
  EXPECT_FALSE(old_is_free());
  taken = {};
  waiter.join();
  EXPECT_TRUE(old_is_free());
}

TEST_F(two_locks, a_call_that_is_cancelled_between_the_two_holds_neither) {
  const lease taken = only_new_.acquire();
  std::stop_source stop;
  std::thread waiter([&] { EXPECT_FALSE(both_.try_acquire_for(1h, stop.get_token())); });
  harness::eventually("it waits for the new one",
                      [&] { return elsewhere_new_.show("orders").waiters.size() == 1; });
  stop.request_stop();
  waiter.join();
  EXPECT_TRUE(old_is_free());
}

TEST_F(two_locks, an_unavailable_new_store_is_an_error_and_frees_the_old_lock) {
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

TEST_F(two_locks, the_loss_of_one_is_a_loss_of_both_and_the_other_is_still_released) {
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

/// Two stores whose clocks stand still, and on each a program that knows only that one.
class old_lock_lost : public testing::Test {
 protected:
  // Another holder has the new lock. Then `take` has acquired the old one, which is taken away and
  // given to an old program; and then the new one becomes free.
  template <class Take>
  void while_it_waits_for_the_new_one(Take take) {
    lease in_the_way = only_new_.acquire();
    auto got = harness::concurrently(take);
    new_at_.await_waiters("orders", 1);
    EXPECT_EQ(old_at_.session.force_release("orders"), 1U);
    old_at_.clock->advance(10s);
    old_at_.seen->await(holdfast::event_kind::lost);
    lease of_before = only_old_.acquire();
    EXPECT_FALSE(in_the_way.release());
    harness::eventually("it waits for the old one, or is done", [&] {
      return old_waiters() == 1 || got.wait_for(0s) == std::future_status::ready;
    });
    EXPECT_EQ(old_waiters(), 1U) << "it begins anew";
    EXPECT_TRUE(only_new_.try_acquire()) << "and has given the new one back";
    EXPECT_FALSE(of_before.release());
    EXPECT_TRUE(got.get());
    EXPECT_TRUE(only_old_.try_acquire() && only_new_.try_acquire());
  }
  std::size_t old_waiters() { return old_at_.session.show("orders").waiters.size(); }

  engine_test::stage old_at_{"memory:both-lost-old"}, new_at_{"memory:both-lost-new"};
  holdfast::session elsewhere_old_ = holdfast::open("memory:both-lost-old", old_at_.options()),
                    elsewhere_new_ = holdfast::open("memory:both-lost-new", new_at_.options());
  mutex old_{old_at_.session, "orders"}, new_{new_at_.session, "orders"};
  mutex only_old_{elsewhere_old_, "orders"}, only_new_{elsewhere_new_, "orders"};
  both<mutex, mutex> both_{old_, new_};
};

TEST_F(old_lock_lost, during_the_wait_for_the_new_lock_restarts_acquire) {
  while_it_waits_for_the_new_one([&] {
    const auto held = both_.acquire();
    return held.old().state() == holdfast::lease_state::held;
  });
}

TEST_F(old_lock_lost, during_the_wait_for_the_new_lock_restarts_a_timed_acquire) {
  while_it_waits_for_the_new_one([&] {
    const auto held = both_.try_acquire_for(1h);
    return held && held->old().state() == holdfast::lease_state::held;
  });
}

TEST_F(old_lock_lost, during_the_wait_for_the_new_lock_restarts_lock) {
  while_it_waits_for_the_new_one([&] {
    const std::lock_guard guard{both_};
    return old_.check(), true;
  });
}

TEST_F(old_lock_lost, during_the_wait_for_the_new_lock_restarts_a_timed_lock) {
  while_it_waits_for_the_new_one([&] {
    const std::unique_lock timed{both_, 1h};
    return old_.check(), timed.owns_lock();
  });
}

TEST_F(old_lock_lost, during_the_wait_for_the_new_lock_restarts_a_call_without_a_thread) {
  while_it_waits_for_the_new_one([&] {
    const auto held = async_acquire(both_, 1h).future().get();
    return held && held->old().state() == holdfast::lease_state::held;
  });
}

/// A mutex that acquires only after `before` was called.
struct behind {
  mutex& inner;
  std::function<void()> before;
  lease acquire(std::stop_token stop) { return before(), inner.acquire(std::move(stop)); }
  std::optional<lease> try_acquire_for(std::chrono::nanoseconds wait, std::stop_token stop) {
    return before(), inner.try_acquire_for(wait, std::move(stop));
  }
  void lock() { before(), inner.lock(); }
  bool try_lock_for(std::chrono::nanoseconds wait) { return before(), inner.try_lock_for(wait); }
  void unlock() { inner.unlock(); }
};

TEST_F(old_lock_lost, during_a_try_of_the_new_lock_leaves_no_lock_held) {
  behind late{new_, [&] {
                EXPECT_EQ(old_at_.session.force_release("orders"), 1U);
                const auto before = old_at_.seen->count(holdfast::event_kind::lost);
                old_at_.clock->advance(10s);
                old_at_.seen->await(holdfast::event_kind::lost, before + 1);
              }};
  both pair{old_, late};
  EXPECT_FALSE(pair.try_acquire());
  EXPECT_FALSE(pair.try_lock());
  EXPECT_TRUE(only_old_.try_acquire() && only_new_.try_acquire());
}

TEST_F(old_lock_lost, does_not_lengthen_a_timed_acquire_by_the_time_of_the_release) {
  using verb = holdfast::store::permits_verb;
  behind late{new_, [&] {
                EXPECT_EQ(old_at_.session.force_release("orders"), 1U);
                old_at_.clock->advance(10s);
                old_at_.seen->await(holdfast::event_kind::lost);
                new_at_.script->hang(verb::release);
              }};
  both pair{old_, late};
  auto got = harness::concurrently([&] { return bool(pair.try_acquire_for(1h)); });
  new_at_.script->await(verb::release, 1);
  const lease of_before = only_old_.acquire();
  old_at_.clock->advance(2h);
  new_at_.script->let_go();
  harness::eventually("it is over", [&] { return got.wait_for(0s) == std::future_status::ready; });
  EXPECT_FALSE(got.get());
}

// Its outer level is lost for good.
TEST_F(old_lock_lost, below_a_nested_level_is_reported) {
  holdfast::recursive_mutex levels{old_at_.session, "orders"};
  int times = 0;
  behind late{new_, [&] {
                ++times;
                EXPECT_EQ(old_at_.session.force_release("orders"), 1U);
                old_at_.clock->advance(10s);
                old_at_.seen->await(holdfast::event_kind::lost);
              }};
  both pair{levels, late};
  const std::lock_guard outer{levels};
  EXPECT_THROW(pair.lock(), holdfast::error);
  EXPECT_EQ(times, 1);
  EXPECT_EQ(levels.level(), 1U);
  EXPECT_TRUE(only_new_.try_acquire());
}

// The store hangs. The farewell to the queue of the second lock uses up the time after the stop,
// and the release of the first lock has no time of its own.
TEST(async_both, that_is_stopped_has_one_time_for_all_its_releases) {
  using holdfast::detail::call_limit;
  using verb = holdfast::store::permits_verb;
  std::promise<holdfast::boot_time> limit_of_a;
  std::once_flag first;  // the keeper repeats the release
  engine_test::stage s("memory:both-stopped");
  holdfast::testing::fault_plan plan;
  plan.choose = [&](auto, std::string_view name, verb v) {
    if (v == verb::release && name == "a")
      std::call_once(first, [&] { limit_of_a.set_value(call_limit::present()); });
    return s.script->choose(v);
  };
  auto options = s.options();
  options.decorate = holdfast::testing::faulty(plan, s.clock);
  const auto session = holdfast::open("memory:both-stopped", std::move(options));
  const lease other = mutex(s.session, "b").acquire();
  mutex a{session, "a"}, b{session, "b"};
  both pair{a, b};
  std::stop_source stop;
  auto got = async_acquire(pair, {}, stop.get_token()).future();
  s.await_waiters("b", 1);
  s.script->hang(verb::release);
  const auto stopped_at = s.clock->now();
  stop.request_stop();
  s.script->await(verb::release, 1);
  s.clock->advance(holdfast::detail::last_answer_within);
  EXPECT_EQ(limit_of_a.get_future().get(), stopped_at + holdfast::detail::last_answer_within);
  s.script->let_go();
  const auto how = got.get();
  ASSERT_FALSE(how);
  EXPECT_EQ(how.error().code, errc::cancelled);
}

}  // namespace
}  // namespace primitive_test
