#include <gtest/gtest.h>

#include <thread>

#include "harness/concurrently.hpp"
#include "harness/next_wake.hpp"
#include "harness/without_fences.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

// An idle lock that stays with the process (lock_options::linger).
namespace {

using namespace engine_test;
using holdfast::lease;
using holdfast::lock_options;
using holdfast::mutex;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

lock_options lingering(std::chrono::microseconds linger = 100ms) {
  lock_options o;
  o.linger = linger;
  return o;
}

bool held_at_store(const holdfast::session& s, const char* name = "m") {
  return !s.show(name).holders.empty();
}

void await_free(const holdfast::session& s, const char* name = "m") {
  harness::eventually("it goes back to the store", [&] { return !held_at_store(s, name); });
}

// When exactly a lock that was used again is released depends on when the other thread polled.
void await_free_as_time_passes(const stage& s) {
  harness::eventually("it goes back to the store", [&] {
    harness::pass(*s.clock, 50ms);
    return !held_at_store(s.session);
  });
}

TEST(linger, an_idle_lock_is_reacquired_without_the_store) {
  stage s;
  mutex m{s.session, "m", lingering()};
  const auto before = s.session.store_operations();
  std::uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const lease mine = m.acquire();
    EXPECT_GT(mine.fence(), last);
    last = mine.fence();
  }
  EXPECT_EQ(s.session.store_operations() - before, 1U);
  EXPECT_TRUE(m.try_lock());
  m.unlock();
  EXPECT_EQ(s.session.store_operations() - before, 1U);
}

TEST(linger, the_event_of_a_release_says_how_long_that_turn_was_held) {
  struct turns final : holdfast::observer {
    void on_event(const holdfast::event& e) override {
      if (e.kind != holdfast::event_kind::released) return;
      EXPECT_EQ(e.name, "m");
      held.push_back(e.held);
      fences.push_back(e.fence);
    }
    std::vector<std::chrono::nanoseconds> held;
    std::vector<std::uint64_t> fences;
  };
  const auto seen = std::make_shared<turns>();
  stage s;
  auto options = s.options();
  options.observer = seen;
  const auto session = holdfast::open("memory:", options);
  std::vector<std::uint64_t> fences;
  {
    mutex m{session, "m", lingering()};
    for (const auto turn : {3ms, 7ms}) {
      const lease mine = m.acquire();
      fences.push_back(mine.fence());
      s.clock->advance(turn);
    }
  }
  EXPECT_EQ(seen->held, (std::vector<std::chrono::nanoseconds>{3ms, 7ms}));
  EXPECT_EQ(seen->fences, fences);
}

TEST(linger, a_wait_that_was_stopped_before_its_call_takes_no_idle_lock) {
  stage s;
  mutex m{s.session, "m", lingering()};
  m.lock(), m.unlock();
  std::stop_source source;
  source.request_stop();
  const auto stop = source.get_token();
  const auto before = s.session.store_operations();
  EXPECT_FALSE(m.lock(stop));
  EXPECT_FALSE(m.try_acquire_for(1s, stop));
  EXPECT_EQ(async_acquire(m, {}, stop).future().get().error().code, holdfast::errc::cancelled);
  EXPECT_EQ(s.session.store_operations(), before);
  EXPECT_TRUE(m.try_lock()) << "it lingers still";
  m.unlock();
  EXPECT_EQ(s.session.store_operations(), before);
}

TEST(linger, an_idle_lock_is_released_after_its_linger_time_and_not_before) {
  stage s;
  mutex m{s.session, "m", lingering()};
  m.lock(), m.unlock();
  s.clock->advance(99ms);
  EXPECT_TRUE(held_at_store(s.session));
  EXPECT_EQ(s.script->count(verb::release), 0U);
  s.clock->advance(1ms);
  await_free(s.session);
  m.lock(), m.unlock();
  EXPECT_TRUE(held_at_store(s.session)) << "and lingers again";
  s.clock->advance(100ms);
  await_free(s.session);
}

TEST(linger, a_linger_time_between_two_microseconds_is_not_rounded_up) {
  stage s;
  mutex m{s.session, "m", lingering()}, other{s.session, "other", lingering(50ms)};
  m.lock(), m.unlock();
  s.clock->advance(333ns);
  other.lock(), other.unlock();
  s.clock->advance(50ms);
  await_free(s.session, "other");  // checked, and so was the first one
  s.clock->advance(50ms - 333ns);
  await_free(s.session);
}

/// A lock that lingers, and whose renewal was due 10 s after it was acquired.
void await_doubt(const stage& s) {
  s.script->await(verb::renew, 1);
  harness::eventually("it is in doubt", [&] {
    harness::pass(*s.clock, 250ms);
    return s.seen->count(holdfast::event_kind::suspect) == 1;
  });
}

// The caller would begin its work with a lease that may end in a moment.
TEST(linger, an_idle_lock_in_doubt_goes_back_and_its_next_user_asks_the_store) {
  for (const bool by_a_thread : {true, false}) {
    stage s;
    mutex m{s.session, "m", lingering(30s)};
    m.lock(), m.unlock();
    s.script->hang(verb::renew);
    s.clock->advance(10s);
    await_doubt(s);
    lease mine = by_a_thread ? m.acquire() : async_acquire(m).future().get().value();
    EXPECT_EQ(mine.state(), holdfast::lease_state::held);
    EXPECT_EQ(s.script->count(verb::acquire), 2U);
    EXPECT_EQ(s.script->count(verb::release), 1U);
    EXPECT_FALSE(mine.release());
  }
}

TEST(linger, an_idle_lock_whose_renewal_failed_is_given_to_no_try) {
  stage s;
  mutex m{s.session, "m", lingering(30s)};
  m.lock(), m.unlock();
  s.script->set(verb::renew, fault::drop_request);
  s.clock->advance(10s);
  await_doubt(s);
  const auto mine = m.try_acquire();
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->state(), holdfast::lease_state::held);
}

TEST(linger, a_lock_used_again_stays_for_at_least_half_its_linger_time) {
  stage s;
  mutex m{s.session, "m", lingering()};
  m.lock(), m.unlock();
  for (int i = 0; i < 5; ++i) {
    s.clock->advance(49ms);
    EXPECT_TRUE(held_at_store(s.session));
    m.lock(), m.unlock();
  }
  s.clock->advance(49ms);
  EXPECT_TRUE(held_at_store(s.session));
  EXPECT_EQ(s.script->count(verb::release), 0U);
  await_free_as_time_passes(s);
}

TEST(linger, a_lock_without_fences_that_was_used_again_stays_as_well) {
  stage s;
  auto options = s.options();
  options.decorate = harness::without_fences;
  s.session = holdfast::open("memory:", options);
  mutex m{s.session, "m", lingering()}, checked_later{s.session, "checked_later", lingering()};
  m.lock(), m.unlock();
  checked_later.lock(), checked_later.unlock();
  s.clock->advance(99ms);
  m.lock();
  EXPECT_EQ(m.fence(), 0U);
  m.unlock();
  s.clock->advance(1ms);
  await_free(s.session, "checked_later");
  EXPECT_TRUE(held_at_store(s.session));
}

TEST(linger, a_late_check_does_not_count_for_the_missed_checks) {
  stage s;
  mutex m{s.session, "m", lingering()};
  mutex before{s.session, "before", lingering(20ms)}, after{s.session, "after", lingering(1s)};
  m.lock(), m.unlock();
  before.lock(), before.unlock();
  s.script->hang(verb::release);
  s.clock->advance(20ms);
  s.script->await(verb::release, 1);  // nobody looks after the others meanwhile
  after.lock(), after.unlock();
  s.clock->advance(2s);
  m.lock(), m.unlock();
  s.script->let_go();
  await_free(s.session, "after");
  EXPECT_TRUE(held_at_store(s.session)) << "it was in use a moment ago";
}

TEST(linger, a_lock_in_use_after_its_time_lingers_from_its_release_on) {
  stage s;
  mutex m{s.session, "m", lingering()};
  m.lock(), m.unlock();
  {
    const lease mine = m.acquire();
    s.clock->advance(10s);
  }
  s.clock->advance(49ms);
  EXPECT_TRUE(held_at_store(s.session));
  await_free_as_time_passes(s);
}

TEST(linger, another_process_acquires_an_idle_lock_at_once) {
  stage s("memory:linger1");
  auto other = holdfast::open("memory:linger1", s.options());
  mutex mine{s.session, "m", lingering(1h)}, theirs{other, "m"};
  std::uint64_t last = 0;
  for (int i = 0; i < 20; ++i) {
    mine.lock();
    EXPECT_GT(mine.fence(), last);
    last = mine.fence();
    mine.unlock();
    theirs.lock();  // the clock stands still
    EXPECT_GT(theirs.fence(), last);
    last = theirs.fence();
    theirs.unlock();
  }
}

TEST(linger, two_processes_that_both_let_it_linger_take_turns) {
  stage s("memory:linger2");
  auto other = holdfast::open("memory:linger2", s.options());
  mutex mine{s.session, "m", lingering(1h)}, theirs{other, "m", lingering(1h)};
  int together = 0;  // not atomic: only the lock protects it
  const auto work = [&together](mutex& m) {
    for (int i = 0; i < 200; ++i) {
      const std::lock_guard guard{m};
      ++together;
    }
  };
  std::thread a(work, std::ref(mine)), b(work, std::ref(mine)), c(work, std::ref(theirs));
  a.join(), b.join(), c.join();
  EXPECT_EQ(together, 600);
}

TEST(linger, a_lock_does_not_linger_when_another_session_waits) {
  stage s("memory:linger3");
  auto other = holdfast::open("memory:linger3", s.options());
  mutex m{s.session, "m", lingering(1h)};
  lease held = m.acquire();
  std::thread remote([&] { (void)mutex{other, "m"}.acquire(); });
  s.await_waiters("m", 1);
  // Its notification may still be on its way: then it goes back a moment later.
  EXPECT_FALSE(held.release());
  remote.join();
}

TEST(linger, a_session_that_tries_twice_acquires_a_lingering_lock) {
  stage s("memory:linger4");
  auto other = holdfast::open("memory:linger4", s.options());
  mutex mine{s.session, "m", lingering(1h)}, theirs{other, "m"};
  mine.lock(), mine.unlock();
  harness::eventually("a later try succeeds", [&] { return theirs.try_lock(); });
}

TEST(linger, a_lost_notification_costs_others_no_more_than_the_time) {
  stage s("memory:linger5");
  auto other_options = s.options();
  holdfast::testing::fault_plan plan;
  plan.choose = [](auto, auto, auto) { return fault::drop_notification; };
  auto deaf = s.options();
  deaf.decorate = holdfast::testing::faulty(plan, s.clock);
  auto session = holdfast::open("memory:linger5", deaf);
  auto other = holdfast::open("memory:linger5", other_options);
  mutex mine{session, "m", lingering(50ms)};
  mine.lock(), mine.unlock();
  std::thread remote([&] { (void)mutex{other, "m"}.acquire(); });
  s.await_waiters("m", 1);
  s.clock->advance(50ms);
  remote.join();
}

TEST(linger, a_destroyed_lock_object_releases_its_idle_lock) {
  stage s;
  {
    mutex m{s.session, "m", lingering(1h)};
    m.lock(), m.unlock();
  }
  EXPECT_FALSE(held_at_store(s.session));
  {
    mutex m{s.session, "m", lingering(1h)};
    m.lock();
  }
  EXPECT_FALSE(held_at_store(s.session)) << "not unlocked before";
}

TEST(linger, a_lease_that_outlives_the_lock_object_does_not_linger) {
  stage s;
  lease last = mutex{s.session, "m", lingering(1h)}.acquire();
  EXPECT_FALSE(last.release());
  EXPECT_FALSE(held_at_store(s.session));
}

TEST(linger, an_idle_lock_stays_for_other_lock_objects_of_its_name) {
  stage s;
  mutex stays{s.session, "m", lingering(1h)};
  {
    mutex goes{s.session, "m", lingering(1h)};
    goes.lock(), goes.unlock();
  }
  const auto before = s.session.store_operations();
  EXPECT_TRUE(stays.try_lock());
  stays.unlock();
  EXPECT_EQ(s.session.store_operations(), before);
}

TEST(linger, a_lock_with_other_options_gets_a_hold_of_its_own) {
  stage s;
  mutex m{s.session, "m", lingering(1h)};
  mutex different{s.session, "m", {.max_waiters = 0, .reason = "another"}};
  m.lock(), m.unlock();
  EXPECT_TRUE(different.try_lock());
  EXPECT_NE(s.session.show("m").holders.at(0).reason.find("another"), std::string::npos);
  different.unlock();
}

TEST(linger, a_thread_that_gives_back_an_idle_lock_of_other_options_is_not_passed) {
  stage s;
  mutex m{s.session, "m", lingering(1h)};
  mutex different{s.session, "m", {.max_waiters = 1, .reason = "another"}};
  m.lock(), m.unlock();
  const auto line = s.session.impl()->local_queue_of("m");
  s.script->hang(verb::release);
  auto first = harness::concurrently([&] { return different.try_acquire(); });
  s.script->await(verb::release, 1);
  const auto in_line = line->waiting();
  auto second = async_acquire(different).future();
  harness::eventually("the second in line", [&] { return line->waiting() > in_line; });
  s.script->let_go();
  EXPECT_TRUE(first.get()) << "the second was behind it";
  EXPECT_TRUE(second.get());
}

TEST(linger, an_idle_lock_that_was_lost_is_not_acquired) {
  stage s;
  mutex m{s.session, "m", lingering(1h)};
  m.lock();
  const auto before = m.fence();
  m.unlock();
  s.script->set(verb::renew, fault::drop_request);
  s.clock->advance(31s);
  s.seen->await(holdfast::event_kind::lost);
  EXPECT_EQ(s.seen->leases_lost(), 0U) << "it was nobody's";
  const lease again = m.acquire();
  EXPECT_GT(again.fence(), before);
  EXPECT_EQ(again.state(), holdfast::lease_state::held);
  EXPECT_GE(s.script->count(verb::acquire), 2U);
}

TEST(linger, an_idle_lock_that_was_lost_does_not_keep_its_session) {
  std::weak_ptr<recorder> seen;
  {
    stage s;
    mutex m{s.session, "m", lingering(1h)};
    m.lock(), m.unlock();
    s.script->set(verb::renew, fault::drop_request);
    s.clock->advance(31s);
    s.seen->await(holdfast::event_kind::lost);
    seen = s.seen;
  }
  harness::eventually("the session's end", [&] { return seen.expired(); });
}

TEST(linger, an_idle_lock_is_renewed) {
  stage s("memory:linger6");
  auto other = holdfast::open("memory:linger6", s.options());
  mutex m{s.session, "m", lingering(1h)};
  m.lock(), m.unlock();
  for (int i = 1; i <= 6; ++i) {
    s.clock->advance(10s);
    s.script->await(verb::renew, static_cast<std::size_t>(i));
  }
  EXPECT_TRUE(held_at_store(s.session));
}

TEST(linger, a_lock_with_max_hold_does_not_linger) {
  stage s;
  auto options = lingering(1h);
  options.max_hold = 1h;
  mutex limited{s.session, "m", options};
  limited.lock(), limited.unlock();
  EXPECT_FALSE(held_at_store(s.session));
}

TEST(linger, an_idle_lock_is_not_shared_with_an_object_of_shorter_local_time) {
  stage s;
  auto strict = lingering(1h);
  strict.local_time = 0us;
  mutex m{s.session, "m", lingering(1h)}, other{s.session, "m", strict};
  m.lock(), m.unlock();
  const auto before = s.script->count(verb::acquire);
  other.lock(), other.unlock();
  EXPECT_EQ(s.script->count(verb::acquire), before + 1) << "the store decides each time";
}

TEST(linger, local_fences_never_reach_the_next_fence_of_the_store) {
  stage s;
  mutex m{s.session, "m", lingering(1h)};
  std::uint64_t last = 0;
  for (int i = 0; i < 10'000; ++i) {
    const lease mine = m.acquire();
    ASSERT_GT(mine.fence(), last);
    last = mine.fence();
  }
  EXPECT_EQ(s.script->count(verb::acquire), 3U) << "4,096 fences for each of the store's";
}

TEST(linger, a_release_of_an_idle_lock_is_repeated_after_an_outage) {
  stage s;
  auto options = lingering();
  options.lease = holdfast::max_lease;  // it does not end by itself
  mutex m{s.session, "m", options};
  m.lock(), m.unlock();
  s.script->set(verb::release, fault::drop_request);
  s.clock->advance(100ms);
  s.seen->await(holdfast::event_kind::release_failed);
  s.script->set(verb::release, fault::none);
  // More than once: the keeper may just have failed, and read the clock only after it was advanced.
  harness::eventually("it goes back to the store", [&] {
    harness::pass(*s.clock, 200ms);
    return !held_at_store(s.session);
  });
}

TEST(linger, a_negative_or_endless_time_is_refused) {
  stage s;
  for (const auto bad : {std::chrono::microseconds(-1), std::chrono::microseconds::max()}) {
    EXPECT_THROW((mutex{s.session, "m", lingering(bad)}), holdfast::error);
  }
}

}  // namespace
