#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "hanging_store.hpp"
#include "harness/concurrently.hpp"
#include "session/session_impl.hpp"

// A store that hangs gives no answer until it is released, which these tests do after the call has
// ended: a call that waited for it would never end. The clock is the machine's own.
namespace {

using namespace engine_test;
using holdfast::errc;
using holdfast::lease;
using holdfast::mutex;
using holdfast::result;

TEST_F(hanging_store, delays_no_timed_call_and_its_late_grant_is_released) {
  mutex m{session, "m"};
  holdfast::fair_mutex f{session, "f"};
  holdfast::shared_mutex sm{session, "s"};
  holdfast::semaphore sem{session, "sem", 2};
  store->hang();
  EXPECT_FALSE(m.try_lock_for(50ms));
  EXPECT_FALSE(m.try_acquire_for(50ms));
  EXPECT_FALSE(f.try_acquire_for(50ms));
  EXPECT_FALSE(sm.try_lock_for(50ms));
  EXPECT_FALSE(sm.try_lock_shared_for(50ms));
  EXPECT_FALSE(sem.try_acquire_for(50ms));
  for (const auto* name : {"m", "f", "s", "sem"}) await_free(name);
}

TEST_F(hanging_store, delays_no_timed_wait_for_a_latch) {
  holdfast::latch local_queue{session, "l", 1};
  store->hang();
  EXPECT_FALSE(local_queue.wait_for(50ms));
}

TEST_F(hanging_store, delays_no_waiter_that_leaves_a_latch) {
  holdfast::latch opens{session, "l", 1};
  std::stop_source stop;
  store->hang_when_left();
  auto waiting = harness::concurrently([&] { return opens.wait(stop.get_token()); });
  harness::eventually("it waits", [&] { return session.show("l").waiters.size() == 1; });
  stop.request_stop();
  EXPECT_EQ(waiting.wait_for(10s), std::future_status::ready) << "it waits for the store";
  store->let_go();
  EXPECT_FALSE(waiting.get());
}

TEST_F(hanging_store, delays_no_thread_that_would_queue_for_a_condition) {
  mutex m{session, "m"};
  holdfast::condition_variable changed{session, "c"};
  std::unique_lock lock{m};
  store->hang();
  EXPECT_EQ(changed.wait_for(lock, 50ms), std::cv_status::timeout);
  EXPECT_TRUE(lock.owns_lock());
  store->let_go();
  await_free("c");
}

TEST_F(hanging_store, delays_no_destroyed_barrier_and_its_participants_leave_later) {
  auto meets = std::make_unique<holdfast::barrier>(session, "b", 3);
  (void)meets->arrive();
  store->hang();
  auto gone = harness::concurrently([&] { meets.reset(); });
  EXPECT_EQ(gone.wait_for(10s), std::future_status::ready) << "it waits for the store";
  await_free("b");
}

TEST_F(hanging_store, delays_no_multi_lock_beyond_its_deadline) {
  mutex a{session, "a"}, b{session, "b"};
  holdfast::multi_lock both{a, b};
  store->hang();
  EXPECT_FALSE(both.try_acquire_for(50ms));
  await_free("a");
  await_free("b");
}

TEST_F(hanging_store, ends_an_extension_behind_a_renewal_when_the_lease_ends) {
  auto options = options_of(store);
  options.lease = 900ms;
  auto other = holdfast::open(url, options);
  mutex m{other, "m"};
  lease held = m.acquire();
  store->hang();
  store->await_hanging(1);  // a renewal
  auto extended = harness::concurrently([&] {
    try {
      held.extend();
    } catch (const holdfast::error& e) {
      return e.reason();
    }
    return errc{};
  });
  EXPECT_EQ(extended.wait_for(10s), std::future_status::ready) << "it waits for the renewal";
  store->let_go();
  EXPECT_EQ(extended.get(), errc::lost);
}

TEST_F(hanging_store, ends_a_wait_that_was_already_queued_with_a_timeout) {
  mutex m{session, "m"};
  auto other = open();
  lease theirs = mutex{other, "m"}.acquire();
  std::thread waiter([&] { EXPECT_FALSE(m.try_acquire_for(2s)); });
  harness::eventually("it waits", [&] { return session.show("m").waiters.size() == 1; });
  store->hang();
  waiter.join();
  store->let_go();
  EXPECT_FALSE(theirs.release());
  await_free("m");
}

TEST_F(hanging_store, that_granted_too_late_is_not_reported_as_a_held_lock) {
  mutex m{session, "m"};
  store->grants_in_vain_once = true;
  store->hang();
  try {
    EXPECT_FALSE(m.try_acquire_for(500ms));
    EXPECT_TRUE(store->grants_in_vain_once) << "it was asked, and nobody else holds it";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::unavailable) << e.what();
    EXPECT_NE(std::string(e.what()).find("granted in vain"), std::string::npos) << e.what();
    EXPECT_TRUE(e.outcome_unknown()) << e.what();
  }
  await_free("m");
}

TEST_F(hanging_store, that_answers_nothing_for_a_second_is_unavailable) {
  mutex m{session, "m"}, n{session, "n"};
  store->hang();
  auto later = async_acquire(n, 1500ms).future();  // it may begin late
  try {
    (void)m.try_acquire_for(1s);
    FAIL() << "nobody knows whether somebody holds it";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::unavailable) << e.what();
    EXPECT_TRUE(e.outcome_unknown()) << e.what();
  }
  EXPECT_EQ(later.get().error().code, errc::unavailable);
  await_free("m");
}

TEST_F(hanging_store, delays_no_try_by_its_clean_up) {
  mutex m{session, "m"};
  store->refuses = true;
  store->hang();
  EXPECT_THROW((void)m.try_acquire(), holdfast::error);
  store->refuses = false;
  await_free("m");
}

TEST_F(hanging_store, delays_no_waiter_in_the_local_queue_beyond_its_deadline) {
  mutex m{session, "m", {.local_time = 0us}};
  for (const auto patience : {300ms, 1500ms}) {
    lease held = m.acquire();
    auto next = harness::concurrently([&] {
      try {
        return m.try_acquire_for(patience).has_value();
      } catch (const holdfast::error& e) {
        EXPECT_EQ(e.reason(), errc::unavailable) << e.what();
        return false;
      }
    });
    harness::eventually("it waits at the gate",
                        [&] { return session.impl()->local_queue_of("m")->waiting() == 1; });
    store->hang();
    auto giver = harness::concurrently([&] { (void)held.release(); });
    EXPECT_FALSE(next.get());
    store->let_go();
    giver.get();
    await_free("m");
  }
}

// The release of the holder requests the lock for the waiter, and hangs; the waiter's own last try
// finds the lock held, and only then the store carries out the first request.
TEST_F(hanging_store, that_carries_out_a_hand_over_after_the_last_try_leaves_the_lock_free) {
  mutex m{session, "m", {.local_time = 0us}};
  lease held = m.acquire();
  auto next = harness::concurrently([&] { return m.try_acquire_for(3s).has_value(); });
  harness::eventually("it waits at the gate",
                      [&] { return session.impl()->local_queue_of("m")->waiting() == 1; });
  store->only_hand_overs = true;
  store->hang();
  auto giver = harness::concurrently([&] { (void)held.release(); });
  store->await_hanging(1);
  EXPECT_FALSE(next.get());
  await_free("m");
  giver.get();
}

TEST_F(hanging_store, delays_no_stopped_wait_behind_the_release_that_queued_it) {
  mutex m{session, "m", {.local_time = 0us}}, other{session, "other"};
  lease held = m.acquire();
  std::stop_source stop, later;
  auto waiting = async_acquire(m, {}, stop.get_token()).future();
  harness::eventually("it waits at the gate",
                      [&] { return session.impl()->local_queue_of("m")->waiting() == 1; });
  store->hang();
  auto giver = harness::concurrently([&] { (void)held.release(); });
  store->await_hanging(1);
  auto second = async_acquire(other, {}, later.get_token()).future();
  store->await_hanging(2);
  stop.request_stop();
  later.request_stop();
  EXPECT_EQ(second.get().error().code, errc::cancelled);
  // The time is over by which the first should have ended, too. The release of its grant hangs.
  store->let_hand_overs_go();
  EXPECT_EQ(waiting.get().error().code, errc::cancelled);
  await_free("m");
  giver.get();
}

TEST_F(hanging_store, delays_no_wait_without_a_thread_beyond_its_deadline) {
  mutex m{session, "m"};
  holdfast::semaphore sem{session, "sem", 2};
  holdfast::latch local_queue{session, "l", 1};
  store->hang();
  auto one = async_acquire(m, 50ms).future();
  auto two = async_acquire(sem, 2, 50ms).future();
  auto three = async_wait(local_queue, 50ms).future();
  EXPECT_EQ(one.get().error().code, errc::timed_out);
  EXPECT_EQ(two.get().error().code, errc::timed_out);
  EXPECT_EQ(three.get().error().code, errc::timed_out);
  await_free("m");
  await_free("sem");
}

TEST_F(hanging_store, is_unavailable_to_a_try_without_a_thread_and_not_busy) {
  mutex a{session, "a"}, b{session, "b"};
  holdfast::multi_lock both{a, b};
  holdfast::latch l{session, "l", 1};
  store->hang();
  auto one = async_acquire(a, 0ms).future();
  auto two = async_acquire(both, 0ms).future();
  auto three = async_wait(l, 0ms).future();
  EXPECT_EQ(one.get().error().code, errc::unavailable);
  EXPECT_EQ(two.get().error().code, errc::unavailable);
  EXPECT_EQ(three.get().error().code, errc::unavailable);
  await_free("a");
  await_free("b");
}

TEST_F(hanging_store, delays_no_timed_wait_behind_a_wait_without_a_deadline) {
  mutex a{session, "a"}, b{session, "b"};
  store->hang();
  auto patient = async_acquire(a).future();
  store->await_hanging(1);  // the session's thread is in the store
  auto hasty = async_acquire(b, 50ms).future();
  EXPECT_EQ(hasty.get().error().code, errc::timed_out);
  store->let_go();
  EXPECT_TRUE(patient.get());
  await_free("b");
}

struct stopped_waiter : hanging_store {
  /// A wait without a thread for a mutex that this session holds, queued.
  std::future<result<lease>> queued_for(mutex& m, const std::stop_source& stop) const {
    const auto queue = session.impl()->local_queue_of(m.name());
    auto waiting = async_acquire(m, {}, stop.get_token()).future();
    harness::eventually("the waiter is queued", [&] { return queue->waiting() == 1; });
    return waiting;
  }
};

TEST_F(stopped_waiter, is_not_delayed_by_a_store_that_hangs) {
  mutex a{session, "a"}, b{session, "b"};
  const lease held = a.acquire();
  std::stop_source stop;
  auto waiting = queued_for(a, stop);
  store->hang();
  auto patient = async_acquire(b).future();
  store->await_hanging(1);  // the session's thread is in the store
  stop.request_stop();
  EXPECT_EQ(waiting.get().error().code, errc::cancelled);
  store->let_go();
  EXPECT_TRUE(patient.get());
}

TEST_F(stopped_waiter, ends_while_the_store_hangs_although_it_has_a_lock_to_release) {
  mutex a{session, "a", {.local_time = 1h}}, b{session, "b"};
  a.lock();
  std::stop_source stop;
  auto waiting = queued_for(a, stop);
  store->hang();
  auto patient = async_acquire(b).future();
  store->await_hanging(1);  // the session's thread is in the store
  a.unlock();               // to the queued waiter, which does not know it yet
  stop.request_stop();
  EXPECT_EQ(waiting.wait_for(10s), std::future_status::ready) << "it waits for the store";
  store->let_go();
  EXPECT_EQ(waiting.get().error().code, errc::cancelled);
  EXPECT_TRUE(patient.get());
  await_free("a");
}

TEST_F(stopped_waiter, ends_while_the_store_hangs_although_an_idle_lock_is_in_doubt) {
  const auto seen = std::make_shared<recorder>();
  auto options = options_of(store);
  options.lease = 4s;
  options.observer = seen;
  auto other = holdfast::open(url, options);
  holdfast::lock_options lingers;
  lingers.linger = 1h;
  mutex a{other, "a", lingers};
  a.lock(), a.unlock();
  store->hang();
  seen->await(holdfast::event_kind::suspect);
  std::stop_source stop;
  auto waiting = async_acquire(a, {}, stop.get_token()).future();
  store->await_hanging(2);  // the renewal, and the release of the idle lock
  stop.request_stop();
  EXPECT_EQ(waiting.wait_for(10s), std::future_status::ready) << "it waits for the store";
  store->let_go();
  EXPECT_EQ(waiting.get().error().code, errc::cancelled);
  await_free("a");
}

TEST_F(stopped_waiter, ends_while_the_store_hangs_although_an_idle_lock_has_other_options) {
  holdfast::lock_options lingers;
  lingers.linger = 1h;
  mutex idle{session, "a", lingers}, a{session, "a", {.local_time = 1h}};
  idle.lock(), idle.unlock();
  store->hang();
  std::stop_source stop;
  auto waiting = async_acquire(a, {}, stop.get_token()).future();
  store->await_hanging(1);  // the release of the idle lock
  stop.request_stop();
  EXPECT_EQ(waiting.wait_for(10s), std::future_status::ready) << "it waits for the store";
  store->let_go();
  EXPECT_EQ(waiting.get().error().code, errc::cancelled);
  await_free("a");
}

// The call that comes upon the idle lock does not wait for its release, which goes on.
TEST_F(hanging_store, does_not_make_the_late_release_of_an_idle_lock_a_failed_one) {
  const auto seen = std::make_shared<recorder>();
  auto options = options_of(store);
  options.observer = seen;
  const auto other = holdfast::open(url, options);
  for (const bool unconfirmed : {false, true}) {
    holdfast::lock_options lingers;
    lingers.unconfirmed_release = unconfirmed;
    lingers.linger = 1h;
    auto others = lingers;
    others.linger = 0s;
    others.local_time = 1h;
    mutex idle{other, "a", lingers}, a{other, "a", others};
    idle.lock(), idle.unlock();
    store->hang();
    EXPECT_FALSE(a.try_lock_for(50ms));
    await_free("a");
    EXPECT_EQ(seen->count(holdfast::event_kind::release_failed), 0U) << unconfirmed;
  }
}

// The session's thread is not in the store: it comes to the stopped waiter itself.
TEST_F(stopped_waiter, ends_while_the_store_hangs_although_the_session_s_thread_releases) {
  mutex a{session, "a", {.local_time = 1h}}, b{session, "b"};
  a.lock();
  std::stop_source stop;
  auto waiting = queued_for(a, stop);
  lease kept;
  std::promise<void> busy, goes_on;
  async_acquire(b).start([&](result<lease> got) {
    kept = std::move(*got);
    busy.set_value();
    goes_on.get_future().wait();
  });
  busy.get_future().wait();
  store->hang();
  a.unlock();  // to the queued waiter, which does not know it yet
  stop.request_stop();
  goes_on.set_value();
  EXPECT_EQ(waiting.wait_for(10s), std::future_status::ready) << "it waits for the store";
  store->let_go();
  EXPECT_EQ(waiting.get().error().code, errc::cancelled);
  await_free("a");
}

TEST_F(hanging_store, does_not_turn_the_timeout_of_a_condition_into_a_failure) {
  mutex m{session, "m"};
  holdfast::condition_variable changed{session, "c"};
  lease held = m.acquire();
  store->hang();
  auto waiting = async_wait(changed, std::move(held), 50ms).future();
  store->await_hanging(2);  // the request that it left, and the release of the mutex
  store->let_go();
  const auto mine = waiting.get();
  ASSERT_TRUE(mine) << mine.error().what;
  EXPECT_EQ(mine->status, std::cv_status::timeout);
  EXPECT_EQ(mine->held.state(), holdfast::lease_state::held);
}

TEST_F(hanging_store, may_be_destroyed_by_the_callback_of_the_timeout) {
  struct user {
    explicit user(holdfast::session s) : m(std::move(s), "m") {}
    mutex m;
  };
  auto who = std::make_unique<user>(open());
  store->hang();
  std::promise<errc> told;
  async_acquire(who->m, 50ms).start([&](result<lease> got) {
    who.reset();
    told.set_value(got.error().code);
  });
  EXPECT_EQ(told.get_future().get(), errc::timed_out);
}

TEST_F(hanging_store, without_memory_for_a_hand_over_still_wakes_the_next) {
  mutex m{session, "m", {.local_time = 0us}};
  lease held = m.acquire();
  auto next = harness::concurrently([&] { return m.try_acquire_for(1h).has_value(); });
  harness::eventually("it waits at the gate",
                      [&] { return session.impl()->local_queue_of("m")->waiting() == 1; });
  store->no_memory = true;
  (void)held.release();
  EXPECT_TRUE(next.get());
}

}  // namespace
