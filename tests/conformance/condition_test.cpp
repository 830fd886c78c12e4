#include <future>
#include <mutex>
#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "conformance/fault_script.hpp"
#include "harness/eventually.hpp"

namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::condition_variable;
using holdfast::errc;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

class conditions : public suite {
 protected:
  using guard = std::unique_lock<holdfast::mutex>;

  /// The objects of another process.
  struct party {
    holdfast::session session;
    holdfast::mutex lock{session, "lock"};
    condition_variable changed{session, "orders"};
  };

  party here{here_};
  party there{another()};
};

INSTANTIATE_TEST_SUITE_P(stores, conditions, testing::ValuesIn(cells({"condition_variable"})),
                         cell_name);

TEST_P(conditions, a_waiter_releases_the_mutex_and_reacquires_it_when_notified) {
  bool ready = false;
  std::thread other([&] {
    guard locked{there.lock};
    ready = true;
    EXPECT_LE(there.changed.notify_one(), 1u);
  });
  guard locked{here.lock};
  here.changed.wait(locked, [&] { return ready; });
  EXPECT_TRUE(locked.owns_lock());
  EXPECT_NO_THROW(here.lock.check());
  other.join();
  EXPECT_EQ(waiters(), 0u);
}

TEST_P(conditions, no_wake_up_is_lost_between_release_and_wait) {
  int turn = 0;
  const auto play = [&](party& p, int me) {
    for (int i = 0; i < 10; ++i) {
      guard locked{p.lock};
      p.changed.wait(locked, [&] { return turn % 2 == me; });
      ++turn;
      p.changed.notify_one();
    }
  };
  std::thread other([&] { play(there, 1); });
  play(here, 0);
  other.join();
  EXPECT_EQ(turn, 20);
}

TEST_P(conditions, notify_one_wakes_one_waiter_and_notify_all_wakes_all) {
  std::atomic<int> awake{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      party& p = i % 2 == 0 ? here : there;
      guard locked{p.lock};
      p.changed.wait(locked);
      ++awake;
    });
  }
  until_waiting(4);
  EXPECT_EQ(there.changed.notify_one(), 1u);
  harness::eventually("one is awake", [&] { return awake >= 1; });
  until_waiting(3);
  here.changed.notify_all();
  for (auto& t : threads) t.join();
  EXPECT_EQ(awake, 4);
  EXPECT_EQ(here.changed.notify_all(), 0u) << "nothing is remembered when nobody waits";
}

TEST_P(conditions, a_waiter_that_cannot_reacquire_the_mutex_wakes_the_next) {
  holdfast::mutex crowded{here_, "lock", {.max_waiters = 0}};
  std::thread fails([&] {
    guard locked{crowded};
    EXPECT_EQ(reason_of([&] { here.changed.wait(locked); }), errc::overloaded);
    EXPECT_FALSE(locked.owns_lock());
  });
  until_waiting(1);
  auto next = async_wait(there.changed, there.lock.acquire()).future();
  until_waiting(2);
  EXPECT_FALSE(here.lock.acquire().release());  // the first waiter has left its process's queue
  holdfast::lease theirs = there.lock.acquire();
  std::stop_source stop;
  auto before = async_acquire(crowded, {}, stop.get_token()).future();
  harness::eventually("a crowd", [&] { return here_.show("lock").waiters.size() == 1; });
  there.changed.notify_one();
  fails.join();
  stop.request_stop();
  EXPECT_FALSE(before.get());
  EXPECT_FALSE(theirs.release());
  harness::eventually("the next is awake",
                      [&] { return next.wait_for(0s) == std::future_status::ready; });
}

TEST_P(conditions, waiting_without_the_mutex_held_is_refused_and_changes_nothing) {
  guard unlocked{here.lock, std::defer_lock};
  EXPECT_EQ(reason_of([&] { here.changed.wait(unlocked); }), errc::not_owner);
  EXPECT_EQ(waiters(), 0u);
  EXPECT_FALSE(unlocked.owns_lock());
  guard locked{here.lock};
  std::thread another_thread([&] {
    EXPECT_EQ(reason_of([&] { (void)here.changed.wait_for(locked, 1h); }), errc::not_owner);
  });
  another_thread.join();
  EXPECT_TRUE(locked.owns_lock());
}

TEST_P(conditions, a_wait_ends_at_its_deadline_with_the_mutex_held) {
  guard locked{here.lock};
  EXPECT_EQ(here.changed.wait_for(locked, 1ms), std::cv_status::timeout);
  EXPECT_NO_THROW(here.lock.check());
  EXPECT_FALSE(here.changed.wait_for(locked, -1h, [] { return false; }));
  EXPECT_TRUE(here.changed.wait_for(locked, 1h, [] { return true; }));
  const auto now = std::chrono::steady_clock::now();
  EXPECT_EQ(here.changed.wait_until(locked, now), std::cv_status::timeout);
  EXPECT_FALSE(here.changed.wait_until(locked, now, [] { return false; }));
  EXPECT_NO_THROW(here.lock.check());
  expect_no_waiters();
}

TEST_P(conditions, a_wait_can_be_cancelled) {
  std::stop_source stop;
  std::thread waits([&] {
    guard locked{there.lock};
    EXPECT_FALSE(there.changed.wait(locked, stop.get_token(), [] { return false; }));
    EXPECT_FALSE(there.changed.wait_for(locked, stop.get_token(), 1h, [] { return false; }));
    EXPECT_NO_THROW(there.lock.check());
  });
  until_waiting(1);
  stop.request_stop();
  waits.join();
  expect_no_waiters();
}

TEST_P(conditions, a_wait_that_cannot_be_queued_ends_in_time_and_keeps_the_mutex) {
  fault_script script;
  condition_variable cut{
      another({.store_timeout = 1h, .decorate = holdfast::testing::faulty(script.plan())}),
      "orders"};
  script.next(verb::acquire, fault::drop_request, 1'000'000);
  guard locked{here.lock};
  EXPECT_EQ(reason_of([&] { cut.wait_for(locked, 10ms); }), errc::unavailable);
  EXPECT_TRUE(locked.owns_lock());
  std::stop_source stop;
  std::thread stops([&, before = script.met()] {
    harness::eventually("it asks", [&] { return script.met() > before; });
    stop.request_stop();
  });
  EXPECT_FALSE(cut.wait(locked, stop.get_token(), [] { return false; }));
  stops.join();
  EXPECT_NO_THROW(here.lock.check());
  expect_no_waiters();
}

TEST_P(conditions, a_condition_refuses_the_name_of_its_mutex) {
  condition_variable same{here_, "lock"};
  guard locked{here.lock};
  EXPECT_EQ(reason_of([&] { same.wait(locked); }), errc::kind_mismatch);
  EXPECT_EQ(reason_of([&] { same.notify_all(); }), errc::kind_mismatch);
  EXPECT_NO_THROW(here.lock.check());
}

TEST_P(conditions, they_work_with_a_fair_mutex_too) {
  holdfast::fair_mutex fair{here_, "fair"};
  std::unique_lock locked{fair};
  EXPECT_EQ(here.changed.wait_for(locked, 1ms), std::cv_status::timeout);
  EXPECT_TRUE(locked.owns_lock());
}

}  // namespace
}  // namespace conformance
