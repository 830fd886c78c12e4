#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "forgery.hpp"
#include "harness/next_wake.hpp"

// A client that may publish can send a notification with the contents of the record. It makes the
// waiter ask, and proves nothing without the secret of the holder before (hand_over_test.cpp).
namespace {

using namespace engine_test;
using holdfast::errc;
using holdfast::fair_mutex;
using holdfast::lease;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

// While a waiter is busy, the next wake is that of a renewal, in 5 s. A queue entry lasts for 4 s.
constexpr std::chrono::seconds longest_step{2};

TEST(notification, a_forged_grant_makes_the_waiter_ask_and_grants_nothing) {
  forgery f;
  fair_mutex m{f.session, "m"};
  const lease held = m.acquire();
  std::optional<lease> got;
  std::thread waiter([&] { got = m.try_acquire_for(10s); });
  f.await_waiters("m", 1);
  const auto asked = f.script->count(verb::acquire);
  f.inbox->put(f.for_the_waiter("m", notification_kind::granted));
  f.script->await(verb::acquire, asked + 1);
  f.clock->advance(10s);
  waiter.join();
  EXPECT_FALSE(got);
}

TEST(notification, a_forged_grant_grants_nothing_to_a_waiter_without_a_thread) {
  forgery f;
  fair_mutex m{f.session, "m"};
  const lease held = m.acquire();
  auto got = async_acquire(m, 10s).future();
  f.await_waiters("m", 1);
  const auto asked = f.script->count(verb::acquire);
  f.inbox->put(f.for_the_waiter("m", notification_kind::granted));
  f.script->await(verb::acquire, asked + 1);
  harness::eventually("it gives up", [&] {
    harness::to_next_wake(*f.clock, longest_step);
    return got.wait_for(0s) == std::future_status::ready;
  });
  EXPECT_EQ(got.get().error().code, errc::timed_out);
}

TEST(notification, of_a_grant_before_any_answer_gives_no_lease) {
  forgery f;
  fair_mutex m{f.session, "m"};
  // Each request is carried out, and its answer lost.
  lease held = m.acquire();
  f.script->set(verb::acquire, fault::drop_reply);
  std::atomic<bool> over{false};
  std::optional<lease> got;
  std::thread waiter([&] {
    try {
      got = m.try_acquire_for(9s);
    } catch (const holdfast::error& e) {
      EXPECT_EQ(e.reason(), errc::unavailable);
    }
    over = true;
  });
  f.await_waiters("m", 1);
  f.script->set(verb::acquire, fault::drop_request);
  EXPECT_FALSE(held.release());  // the store grants, and notifies
  harness::eventually("the end of the wait", [&] {
    harness::to_next_wake(*f.clock, longest_step);
    return over.load();
  });
  waiter.join();
  EXPECT_FALSE(got);
}

TEST(notification, after_a_hand_over_has_the_fence_and_end_of_the_store) {
  forgery f;
  fair_mutex m{f.session, "m"};
  lease held = m.acquire();
  lease got;
  std::thread waiter([&] { got = m.acquire(); });
  f.await_waiters("m", 1);
  f.script->hang(verb::acquire);  // the true one comes while it asks
  f.inbox->put(f.for_the_waiter("m", notification_kind::granted));
  EXPECT_FALSE(held.release());
  f.script->let_go();
  waiter.join();
  ASSERT_TRUE(got);
  const auto info = f.session.show("m");
  ASSERT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(got.fence(), info.holders[0].fence);
  EXPECT_GT(got.remaining(), 29s) << "and lasts its whole lease";
}

TEST(notification, of_a_hand_over_costs_one_release_and_one_request_of_the_next_holder) {
  forgery f;
  fair_mutex m{f.session, "m"};
  lease held = m.acquire();
  std::thread waiter([&] { EXPECT_TRUE(m.acquire()); });
  f.await_waiters("m", 1);
  const auto before = f.script->count(verb::acquire);
  EXPECT_FALSE(held.release());
  waiter.join();
  EXPECT_EQ(f.script->count(verb::acquire) - before, 1U);
  EXPECT_EQ(f.script->count(verb::renew), 0U);
}

TEST(notification, a_forged_opening_opens_no_latch) {
  forgery f;
  holdfast::latch local_queue{f.session, "l", 1};
  std::optional<bool> open;
  std::thread waiter([&] { open = local_queue.wait_for(10s); });
  holdfast::store::countdown_command look;
  std::vector<holdfast::store::waiter> waiting;
  harness::eventually("it waits", [&] {
    waiting = f.session.impl()->countdown("l", look)->found.waiting;
    return !waiting.empty();
  });
  notification n;
  n.what = notification_kind::opened;
  n.name = "l";
  n.owner = waiting.front().owner;
  f.inbox->put(n);
  f.clock->advance(10s);
  waiter.join();
  EXPECT_EQ(open, false);
}

TEST(notification, a_forged_grant_lets_no_participant_pass_a_barrier) {
  forgery f;
  holdfast::barrier b{f.session, "b", 2};
  auto arrived = b.arrive();
  std::atomic<bool> over{false};
  bool passed = false;
  std::thread waiter([&] {
    passed = b.wait_for(arrived, 10s);
    over = true;
  });
  f.script->await(verb::renew, 1);
  const auto asked = f.script->count(verb::renew);
  f.inbox->put(f.for_the_waiter("b", notification_kind::granted));
  f.script->await(verb::renew, asked + 1);
  harness::eventually("it gives up", [&] {
    harness::to_next_wake(*f.clock, longest_step);
    return over.load();
  });
  waiter.join();
  EXPECT_FALSE(passed);
}

// The waiter asks after each forged notification, and continues to wait.
TEST(notification, a_forged_wake_up_wakes_no_waiter_at_a_condition) {
  forgery f;
  holdfast::mutex m{f.session, "m"};
  holdfast::condition_variable c{f.session, "c"};
  std::atomic<bool> over{false};
  std::cv_status woken = std::cv_status::no_timeout;
  std::thread waiter([&] {
    std::unique_lock locked{m};
    woken = c.wait_for(locked, 10s);
    over = true;
  });
  f.await_waiters("c", 1);
  const auto asked = f.script->count(verb::renew);
  f.inbox->put(f.for_the_waiter("c", notification_kind::granted));
  f.script->await(verb::renew, asked + 1);
  EXPECT_FALSE(over);
  harness::eventually("it gives up", [&] {
    harness::to_next_wake(*f.clock, longest_step);
    return over.load();
  });
  waiter.join();
  EXPECT_EQ(woken, std::cv_status::timeout);
}

TEST(notification, a_forged_grant_does_not_give_several_locks) {
  forgery f;
  holdfast::mutex first{f.session, "a"}, second{f.session, "b"};
  holdfast::multi_lock all{{first}, {second}};
  const lease held = fair_mutex(f.session, "b", {.lease = 1h}).acquire();
  std::atomic<bool> over{false};
  std::optional<holdfast::multi_lease> got;
  std::thread waiter([&] {
    got = all.try_acquire_for(10s);
    over = true;
  });
  f.await_waiters("b", 1);
  const auto asked = f.script->count(verb::acquire);
  f.inbox->put(f.for_the_waiter("b", notification_kind::granted));
  f.script->await(verb::acquire, asked + 1);
  harness::eventually("it gives up", [&] {
    harness::to_next_wake(*f.clock, longest_step);
    return over.load();
  });
  waiter.join();
  EXPECT_FALSE(got);
  EXPECT_NO_THROW(held.check());
}

}  // namespace
