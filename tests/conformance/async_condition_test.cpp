#include <array>
#include <future>

#include "conformance/cell.hpp"
#include "conformance/events.hpp"
#include "conformance/exclusive.hpp"
#include "harness/detached_task.hpp"
#include "harness/eventually.hpp"
#include "harness/why.hpp"

// Asynchronous waits for a condition, and with others at a barrier.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using harness::why;
using holdfast::errc;
using holdfast::lease;
using holdfast::result;
using holdfast::woken;

class async_conditions : public suite {
 protected:
  /// The objects of another process.
  struct party {
    holdfast::session session;
    holdfast::mutex lock{session, "lock"};
    holdfast::condition_variable changed{session, "orders"};

    lease take() { return async_acquire(lock).future().get().value(); }
  };

  party here{here_};
  party there{another()};
};

INSTANTIATE_TEST_SUITE_P(stores, async_conditions, testing::ValuesIn(cells({"condition_variable"})),
                         cell_name);

TEST_P(async_conditions, a_waiter_releases_the_mutex_and_reacquires_it_when_notified) {
  auto waiting = async_wait(here.changed, here.take()).future();
  until_waiting(1);
  lease theirs = there.take();
  EXPECT_TRUE(async_notify_one(there.changed).future().get());
  EXPECT_FALSE(theirs.release());
  const woken mine = waiting.get().value();
  EXPECT_EQ(mine.status, std::cv_status::no_timeout);
  EXPECT_EQ(mine.held.state(), holdfast::lease_state::held);
  EXPECT_FALSE(there.lock.try_acquire());
  EXPECT_EQ(waiters(), 0U);
}

TEST_P(async_conditions, notify_all_wakes_each_waiter_and_is_not_kept_without_waiters) {
  std::vector<std::promise<void>> awake(2);
  for (std::size_t i = 0; i < awake.size(); ++i) {
    party& p = i % 2 == 0 ? here : there;
    async_wait(p.changed, p.take()).start([&end = awake[i]](result<woken> mine) {
      EXPECT_TRUE(mine);
      end.set_value();
    });
    until_waiting(i + 1);
  }
  EXPECT_TRUE(async_notify_all(here.changed).future().get());
  for (auto& end : awake) end.get_future().wait();
  EXPECT_EQ(async_notify_all(here.changed).future().get().value(), 0U);
}

harness::detached_task take_turns(holdfast::condition_variable& changed, holdfast::mutex& lock,
                                  int me, int& turn, std::promise<void>& end) {
  for (int i = 0; i < 5; ++i) {
    auto held = (co_await async_acquire(lock)).value();
    while (turn % 2 != me) held = (co_await async_wait(changed, std::move(held))).value().held;
    ++turn;
    EXPECT_TRUE(co_await async_notify_one(changed));
    EXPECT_TRUE(co_await async_release(std::move(held)));
  }
  end.set_value();
}

TEST_P(async_conditions, no_wake_up_is_lost_between_release_and_wait) {
  int turn = 0;
  std::array<std::promise<void>, 2> ends;
  take_turns(here.changed, here.lock, 0, turn, ends[0]);
  take_turns(there.changed, there.lock, 1, turn, ends[1]);
  for (auto& end : ends) end.get_future().wait();
  EXPECT_EQ(turn, 10);
}

TEST_P(async_conditions, a_timed_out_wait_holds_the_mutex_and_is_no_failure) {
  const auto seen = std::make_shared<events>();
  party seen_by{another({.observer = seen})};
  for (const auto limit : {0ms, 5ms}) {
    const woken mine = async_wait(seen_by.changed, seen_by.take(), limit).future().get().value();
    EXPECT_EQ(mine.status, std::cv_status::timeout);
    EXPECT_FALSE(there.lock.try_acquire());
  }
  EXPECT_EQ(seen->count(holdfast::event_kind::gave_up), 0);
  expect_no_waiters();
}

TEST_P(async_conditions, a_stopped_wait_leaves_the_queue_and_holds_no_mutex) {
  std::stop_source stop;
  auto waiting = async_wait(here.changed, here.take(), {}, stop.get_token()).future();
  until_waiting(1);
  stop.request_stop();
  EXPECT_EQ(why(waiting.get()), errc::cancelled);
  expect_no_waiters();
  EXPECT_TRUE(there.lock.try_acquire());
}

TEST_P(async_conditions, a_wait_stopped_while_it_reacquires_the_mutex_does_not_hold_it) {
  std::stop_source stop;
  auto waiting = async_wait(here.changed, here.take(), {}, stop.get_token()).future();
  until_waiting(1);
  const lease theirs = there.take();
  there.changed.notify_one();
  harness::eventually("waiting for the mutex",
                      [&] { return here_.show("lock").waiters.size() == 1; });
  stop.request_stop();
  EXPECT_EQ(why(waiting.get()), errc::cancelled);
  harness::eventually("it left the line", [&] { return here_.show("lock").waiters.empty(); });
}

TEST_P(async_conditions, a_wait_stopped_after_its_notification_wakes_the_next) {
  std::stop_source stop;
  auto first = async_wait(here.changed, here.take(), {}, stop.get_token()).future();
  until_waiting(1);
  auto next = async_wait(there.changed, there.take()).future();
  until_waiting(2);
  lease theirs = there.take();
  there.changed.notify_one();
  harness::eventually("waiting for the mutex",
                      [&] { return here_.show("lock").waiters.size() == 1; });
  stop.request_stop();
  EXPECT_EQ(why(first.get()), errc::cancelled);
  EXPECT_FALSE(theirs.release());
  harness::eventually("the next is awake",
                      [&] { return next.wait_for(0s) == std::future_status::ready; });
  EXPECT_EQ(next.get().value().status, std::cv_status::no_timeout);
}

TEST_P(async_conditions, a_wait_whose_mutex_lost_its_session_wakes_the_next) {
  std::future<result<woken>> first;
  lease theirs;
  {
    party gone{another()};
    first = async_wait(here.changed, gone.take()).future();
    until_waiting(1);
    theirs = there.take();
  }
  auto next = async_wait(there.changed, std::move(theirs)).future();
  until_waiting(2);
  here.changed.notify_one();
  const auto told = first.get();
  ASSERT_EQ(why(told), errc::cancelled);
  EXPECT_NE(told.error().what.find("session of the mutex"), std::string::npos);
  harness::eventually("woken", [&] { return next.wait_for(0s) == std::future_status::ready; });
  EXPECT_EQ(next.get().value().status, std::cv_status::no_timeout);
}

TEST_P(async_conditions, a_wait_ends_with_an_error_when_its_session_ends) {
  std::future<result<woken>> waiting;
  {
    party gone{another()};
    waiting = async_wait(gone.changed, gone.take()).future();
    until_waiting(1);
    harness::eventually("in line", [&] { return here_.show("lock").holders.empty(); });
  }
  EXPECT_EQ(why(waiting.get()), errc::cancelled);
  EXPECT_EQ(waiters(), 0U);
}

TEST_P(async_conditions, a_lease_of_another_kind_is_refused) {
  EXPECT_EQ(reason_of([&] { (void)async_wait(here.changed, {}); }), errc::not_owner);
  holdfast::semaphore permits{here_, "permits", 2};
  EXPECT_EQ(reason_of([&] { (void)async_wait(here.changed, permits.acquire()); }), errc::not_owner);
  holdfast::condition_variable same{here_, "lock"};
  EXPECT_EQ(why(async_wait(same, here.take()).future().get()), errc::kind_mismatch);
  EXPECT_TRUE(there.lock.try_acquire()) << "after a failure the mutex is not held";
  const lease mine = here.take();
  EXPECT_EQ(why(async_notify_all(same).future().get()), errc::kind_mismatch);
}

TEST_P(async_conditions, a_caller_that_lost_the_mutex_gets_an_error_at_once) {
  lease mine = here.take();
  there.session.force_release("lock");
  harness::eventually("lost", [&] {
    try {
      mine.extend();
      return false;
    } catch (const holdfast::error&) {
      return mine.state() == holdfast::lease_state::lost;
    }
  });
  EXPECT_EQ(why(async_wait(here.changed, std::move(mine)).future().get()), errc::lost);
  EXPECT_EQ(waiters(), 0U);
}

class async_barriers : public suite {
 protected:
  holdfast::barrier one_{here_, name_, 2};
  holdfast::barrier other_{another(), name_, 2};
};

INSTANTIATE_TEST_SUITE_P(stores, async_barriers, testing::ValuesIn(cells({"barrier"})), cell_name);

TEST_P(async_barriers, arriving_does_not_wait_and_waiting_goes_on_with_the_last) {
  auto mine = async_arrive(one_).future().get().value();
  auto waiting = async_wait(one_, std::move(mine)).future();
  until_waiting(1);
  auto theirs = async_arrive(other_).future().get().value();
  EXPECT_TRUE(waiting.get());
  EXPECT_TRUE(async_wait(other_, std::move(theirs)).future().get());
  EXPECT_EQ(reason_of([&] { (void)async_wait(one_, std::move(mine)); }), errc::invalid_argument);
}

TEST_P(async_barriers, later_phases_do_not_wait_for_a_dropped_participant) {
  auto waiting = async_arrive_and_wait(one_).future();
  until_waiting(1);
  EXPECT_TRUE(async_arrive_and_drop(other_).future().get());
  EXPECT_TRUE(waiting.get());
  EXPECT_TRUE(async_arrive_and_wait(one_).future().get());
}

TEST_P(async_barriers, a_failed_wait_does_not_undo_the_arrival) {
  auto mine = async_arrive(one_).future().get().value();
  EXPECT_EQ(why(async_wait(one_, std::move(mine), 5ms).future().get()), errc::timed_out);
  EXPECT_TRUE(async_arrive_and_wait(other_).future().get()) << "the other one had arrived";
}

TEST_P(async_barriers, a_double_barrier_is_entered_and_left_together) {
  holdfast::double_barrier here{here_, "section", 2};
  holdfast::double_barrier there{another(), "section", 2};
  auto enters = async_enter(here).future();
  EXPECT_TRUE(async_enter(there).future().get());
  EXPECT_TRUE(enters.get());
  auto leaves = async_leave(here).future();
  EXPECT_TRUE(async_leave(there, 1h).future().get());
  EXPECT_TRUE(leaves.get());
}

}  // namespace
}  // namespace conformance
