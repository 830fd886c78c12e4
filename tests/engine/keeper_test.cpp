#include <gtest/gtest.h>

#include <holdfast/store/wake_time.hpp>

#include "harness/concurrently.hpp"
#include "harness/counting_clock.hpp"
#include "harness/failing.hpp"
#include "harness/next_wake.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

namespace {

using namespace engine_test;
using holdfast::event_kind;
using holdfast::lease;
using holdfast::lease_state;
using holdfast::mutex;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

TEST(keeper, renews_at_a_third_and_keeps_the_fence) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  const auto fence = held.fence();
  for (std::size_t round = 1; round <= 5; ++round) {
    s.clock->advance(10s);
    s.script->await(verb::renew, round);
    harness::eventually("renewed", [&] { return held.remaining() > 28s; });
    s.seen->await(event_kind::renewed, round);
  }
  EXPECT_EQ(held.state(), lease_state::held);
  EXPECT_EQ(held.fence(), fence);
  EXPECT_FALSE(held.lost().stop_requested());
}

TEST(keeper, an_unavailable_store_makes_a_lease_suspect_and_then_lost_in_time) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  const auto lost = held.lost();
  s.script->set(verb::renew, fault::drop_request);
  s.clock->advance(10s);
  s.seen->await(event_kind::suspect);
  EXPECT_EQ(held.state(), lease_state::suspect);
  EXPECT_NO_THROW(held.check());
  s.clock->advance(19'750ms);
  s.seen->await(event_kind::lost);
  harness::eventually("told", [&] { return lost.stop_requested(); });
  EXPECT_EQ(held.state(), lease_state::lost);
  EXPECT_THROW(held.check(), holdfast::error);
  EXPECT_EQ(s.session.show("m").holders.size(), 1U) << "the store has not given it away yet";
  EXPECT_EQ(s.seen->detail(event_kind::lost), "renewals failed until the lease ended");
  EXPECT_EQ(held.release(), holdfast::errc::lost);
}

TEST(keeper, a_process_that_slept_beyond_its_lease_learns_of_the_loss) {
  stage s;
  mutex m{s.session, "m"};
  const lease held = m.acquire();
  s.clock->advance(31s);  // the thread that had to renew it after ten is woken now
  s.seen->await(event_kind::lost);
  EXPECT_EQ(s.seen->detail(event_kind::lost), "the lease ended before this process ran again");
}

TEST(keeper, a_thread_that_runs_late_is_reported_and_a_slow_store_is_not) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  s.script->hang(verb::renew);
  harness::eventually("the renewal hangs until the lease is in doubt", [&] {
    harness::pass(*s.clock, 50ms);
    return s.seen->count(event_kind::suspect) > 0;
  });
  s.script->let_go();
  s.seen->await(event_kind::held_again);
  EXPECT_EQ(s.seen->count(event_kind::paused), 0U) << "it ran when it had to";

  s.await_wake_within(10s);
  s.clock->advance(13s);  // the renewal was due long before
  s.seen->await(event_kind::paused);
  EXPECT_EQ(s.seen->count(event_kind::lost), 0U);
}

TEST(keeper, a_successful_renewal_makes_a_suspect_lease_held_again) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  s.script->set(verb::renew, fault::drop_request);
  s.clock->advance(10s);
  s.seen->await(event_kind::suspect);
  s.script->set(verb::renew, fault::none);
  s.clock->advance(1s);
  s.seen->await(event_kind::held_again);
  EXPECT_EQ(held.state(), lease_state::held);
}

TEST(keeper, the_loss_is_reported_although_the_renewal_hangs) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  const auto lost = held.lost();
  s.script->hang(verb::renew);
  s.clock->advance(10s);
  s.script->await(verb::renew, 1);
  s.clock->advance(5s);
  s.seen->await(event_kind::suspect);
  s.clock->advance(15s);
  s.seen->await(event_kind::lost);
  harness::eventually("told", [&] { return lost.stop_requested(); });
  EXPECT_EQ(s.seen->detail(event_kind::lost), "the store did not answer until the lease ended");
  s.script->let_go();
}

TEST(keeper, a_lost_reply_to_a_renewal_is_repaired_by_the_next_one) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  s.script->set(verb::renew, fault::drop_reply);
  s.clock->advance(10s);
  s.seen->await(event_kind::suspect);
  s.script->set(verb::renew, fault::none);
  s.clock->advance(1s);
  s.seen->await(event_kind::held_again);
  EXPECT_EQ(held.state(), lease_state::held);
}

TEST(keeper, a_late_renewal_never_lengthens_the_lease_of_the_next_holder) {
  stage s;
  mutex m{s.session, "m", {.renew = false}};
  lease first = m.acquire();
  s.clock->advance(31s);
  s.seen->await(event_kind::lost);
  EXPECT_EQ(s.seen->detail(event_kind::lost), "the lease ended before it was renewed");
  EXPECT_EQ(s.seen->leases_lost(), 1U);
  auto second = m.try_acquire();
  ASSERT_TRUE(second);
  EXPECT_GT(second->fence(), first.fence());
  EXPECT_THROW(first.extend(), holdfast::error);
  EXPECT_EQ(s.session.show("m").holders.at(0).expires_in, 30s);
  EXPECT_EQ(first.release(), holdfast::errc::lost);
  EXPECT_EQ(s.session.show("m").holders.size(), 1U) << "the other's lock stays";
}

TEST(keeper, a_force_release_is_noticed_at_the_next_renewal) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  const auto lost = held.lost();
  EXPECT_EQ(s.session.force_release("m"), 1U);
  s.clock->advance(10s);
  s.seen->await(event_kind::lost);
  harness::eventually("told", [&] { return lost.stop_requested(); });
}

TEST(keeper, max_hold_ends_a_hold_that_is_renewed) {
  stage s;
  mutex m{s.session, "m", {.max_hold = 60s}};
  lease held = m.acquire();
  for (std::size_t round = 1; round <= 4; ++round) {
    s.clock->advance(10s);
    s.script->await(verb::renew, round);
    harness::eventually("renewed", [&] { return held.remaining() >= 20s; });
  }
  // The rest is no longer than what was requested from the store, so the store frees it then, too.
  EXPECT_EQ(held.remaining(), 20s);
  EXPECT_LT(s.session.show("m").holders.at(0).expires_in, 20s + 300ms);
  held.extend(1h);
  EXPECT_EQ(held.remaining(), 20s);
  EXPECT_LT(s.session.show("m").holders.at(0).expires_in, 20s + 300ms);
  s.clock->advance(10s);
  s.script->await(verb::renew, 6);
  EXPECT_EQ(held.remaining(), 10s) << "nothing makes it longer";
  s.clock->advance(9s);
  EXPECT_EQ(held.state(), lease_state::held);
  s.clock->advance(1s);
  EXPECT_EQ(held.state(), lease_state::lost);
  s.seen->await(event_kind::lost);
  EXPECT_EQ(s.seen->detail(event_kind::lost), "the lock was held for as long as max_hold allows");
}

TEST(keeper, a_force_release_under_max_hold_is_noticed_at_the_next_renewal) {
  stage s;
  lease held = mutex{s.session, "m", {.lease = 30s, .max_hold = 6s}}.acquire();
  EXPECT_EQ(s.session.force_release("m"), 1U);
  s.clock->advance(2100ms);
  s.seen->await(event_kind::lost);
  EXPECT_EQ(held.state(), lease_state::lost);
}

TEST(keeper, max_hold_shorter_than_the_lease_frees_the_lock_at_the_store) {
  stage s;
  const lease held = mutex{s.session, "m", {.lease = 30s, .max_hold = 1s}}.acquire();
  EXPECT_LT(s.session.show("m").holders.at(0).expires_in, 1s + 50ms);
  EXPECT_LE(held.remaining(), 1s);
  EXPECT_GT(held.remaining(), 990ms);
}

TEST(keeper, a_destroyed_lease_is_not_renewed) {
  stage s;
  mutex m{s.session, "m"};
  {
    lease held = m.acquire();
  }
  lease other = mutex{s.session, "other"}.acquire();
  s.clock->advance(10s);
  s.script->await(verb::renew, 1);
  harness::eventually("renewed", [&] { return other.remaining() > 28s; });
  EXPECT_EQ(s.script->count(verb::renew), 1U) << "only the other one";
}

TEST(keeper, a_release_that_fails_is_repeated_until_the_store_is_back) {
  stage s;
  mutex m{s.session, "m", {.lease = holdfast::max_lease}};  // it does not end by itself
  lease held = m.acquire();
  s.script->set(verb::release, fault::drop_request);
  EXPECT_EQ(held.release(), holdfast::errc::unavailable);
  EXPECT_EQ(s.seen->count(event_kind::release_failed), 1U);
  s.script->await(verb::release, 2);  // the keeper's first attempt at it
  EXPECT_EQ(s.session.show("m").holders.size(), 1U);
  s.script->set(verb::release, fault::none);
  // More than once: the keeper may just have failed, and read the clock only after it was advanced.
  harness::eventually("released", [&] {
    harness::pass(*s.clock, 200ms);
    return s.session.show("m").holders.empty();
  });
}

// A queue entry lasts for four seconds, however short the lease is that it waits for.
TEST(keeper, a_queue_entry_is_removed_also_after_the_end_of_a_short_lease) {
  stage s;
  holdfast::fair_mutex m{s.session, "m"};
  const lease held = m.acquire();
  holdfast::fair_mutex other{s.session, "m", {.lease = 100ms}};
  auto waited = harness::concurrently(
      [&] { return harness::outcome_of([&] { (void)other.try_acquire_for(50ms); }).reason; });
  s.await_waiters("m", 1);
  s.script->set(verb::acquire, fault::drop_request);
  s.script->set(verb::release, fault::drop_request);
  s.clock->advance(60ms);
  EXPECT_EQ(waited.get(), holdfast::errc::unavailable);
  s.script->await(verb::release, 1);
  s.clock->advance(500ms);
  s.script->set(verb::release, fault::none);
  harness::eventually("given up", [&] {
    if (s.clock->next_wake() <= s.clock->now() + 200ms) harness::pass(*s.clock, 200ms);
    return s.session.show("m").waiters.empty();
  });
}

// While the keeper waits for the store, the call of a waiter that left acquires the lock and ends.
void ends_while_the_keeper_waits(bool seen_before) {
  stage s;
  const lease other = mutex{s.session, "other"}.acquire();
  auto& session = *s.session.impl();
  const auto late = session.new_owner();
  session.callers().left(late);
  const auto abandon = [&] { session.keeper().abandon("m", late, 1s); };
  if (seen_before) {
    abandon();
    s.await_wake_within(200ms);
  }
  s.script->hang(verb::renew);
  s.clock->advance(10s);
  s.script->await(verb::renew, 1);
  if (!seen_before) abandon();
  s.clock->advance(10s);
  ASSERT_TRUE(session.permits("m", {.verb = verb::acquire, .owner = late, .lease_us = 30'000'000}));
  session.callers().ended(late);
  ASSERT_EQ(s.session.show("m").holders.size(), 1U);
  s.script->let_go();
  harness::eventually("released", [&] {
    if (s.clock->next_wake() <= s.clock->now() + 200ms) harness::pass(*s.clock, 200ms);
    return s.session.show("m").holders.empty();
  });
}

TEST(keeper, a_late_grant_is_released_although_the_keeper_waited_longer_for_the_store) {
  ends_while_the_keeper_waits(false);
}

TEST(keeper, a_late_grant_is_released_although_its_call_ended_unseen) {
  ends_while_the_keeper_waits(true);
}

TEST(keeper, an_extension_behind_a_renewal_that_hangs_ends_with_the_loss) {
  stage s;
  lease held = mutex{s.session, "m"}.acquire();
  s.script->hang(verb::renew);
  s.clock->advance(10s);
  s.script->await(verb::renew, 1);
  auto extended =
      harness::concurrently([&] { return harness::outcome_of([&] { held.extend(); }).reason; });
  s.clock->advance(30s);
  EXPECT_EQ(extended.get(), holdfast::errc::lost) << "and the renewal hangs still";
}

TEST(keeper, a_failed_extension_does_not_start_the_renewal_of_an_unrenewed_lease) {
  stage s;
  lease held = mutex{s.session, "m", {.renew = false}}.acquire();
  s.script->set(verb::renew, fault::drop_request);
  EXPECT_THROW(held.extend(), holdfast::error);
  s.script->set(verb::renew, fault::none);
  s.clock->advance(29s);
  s.clock->advance(2s);
  s.seen->await(event_kind::lost);
  EXPECT_EQ(s.script->count(verb::renew), 1U);
}

TEST(keeper, an_observer_that_throws_stops_nothing) {
  struct thrower final : holdfast::observer {
    void on_event(const holdfast::event&) override { throw std::runtime_error("no"); }
  };
  stage s;
  auto options = s.options();
  options.observer = std::make_shared<thrower>();
  auto session = holdfast::open("memory:", options);
  lease held = mutex{session, "m"}.acquire();
  s.clock->advance(10s);
  harness::eventually("renewed", [&] { return held.remaining() > 28s; });
}

TEST(keeper, ten_thousand_leases_are_renewed_together) {
  stage s;
  std::vector<lease> held;
  for (int i = 0; i < 10'000; ++i) held.push_back(mutex{s.session, std::to_string(i)}.acquire());
  s.clock->advance(10s);
  harness::eventually("all renewed", [&] {
    return std::all_of(held.begin(), held.end(),
                       [](const lease& l) { return l.remaining() > 28s; });
  });
}

TEST(lease, extends_for_another_length_from_now_on) {
  stage s;
  lease held = mutex{s.session, "m"}.acquire();
  held.extend(60s);
  EXPECT_GT(held.remaining(), 59s);
  s.clock->advance(20s);
  s.script->await(verb::renew, 2);
  harness::eventually("renewed", [&] { return held.remaining() > 59s; });
  EXPECT_THROW(held.extend(0ms + 1ms), holdfast::error);
}

TEST(lease, outlives_its_mutex_and_its_session) {
  stage s;
  lease held;
  {
    auto session = holdfast::open("memory:outlives", s.options());
    held = mutex{session, "m"}.acquire();
  }
  EXPECT_EQ(held.state(), lease_state::held);
  auto again = holdfast::open("memory:outlives", s.options());
  EXPECT_FALSE(mutex(again, "m").try_acquire());
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(mutex(again, "m").try_acquire());
}

TEST(keeper, the_last_lease_may_be_released_by_the_callback_of_its_loss) {
  auto clock = std::make_shared<holdfast::testing::fake_clock>();
  std::atomic<bool> told = false;
  auto held = std::make_unique<lease>();
  {
    holdfast::session_options options;
    options.clock = clock;
    auto session = holdfast::open("memory:", options);
    *held = mutex(session, "m", {.lease = 1s, .renew = false}).acquire();
  }
  const auto token = held->lost();
  const std::stop_callback drop{token, [&] {
                                  held.reset();  // and with it the session, on its own thread
                                  told = true;
                                }};
  clock->advance(2s);
  harness::eventually("told", [&] { return told.load(); });
}

TEST(keeper, a_callback_of_a_loss_may_ask_for_the_token_again) {
  stage s;
  mutex m{s.session, "m", {.renew = false}};
  lease held = m.acquire();
  const auto token = held.lost();
  std::atomic<bool> asked = false;
  const std::stop_callback again{token, [&] { asked = held.lost().stop_requested(); }};
  s.clock->advance(31s);
  harness::eventually("asked", [&] { return asked.load(); });
}

TEST(keeper, a_lost_lease_is_not_lengthened_at_the_store) {
  stage s;
  lease held = mutex(s.session, "m", {.lease = 10s, .renew = false}).acquire();
  s.clock->advance(9'950ms);
  EXPECT_THROW(held.extend(), holdfast::error);
  EXPECT_LT(s.session.show("m").holders.at(0).expires_in.value(), 100ms);
}

TEST(keeper, a_lost_hold_cannot_be_upgraded) {
  stage s;
  holdfast::shared_mutex m{s.session, "m", {{.lease = 10s, .renew = false}, {}}};
  lease held = m.acquire_shared();
  s.clock->advance(9'950ms);
  EXPECT_THROW((void)m.try_upgrade(held), holdfast::error);
}

TEST(keeper, an_extension_waits_for_the_renewal_that_is_on_its_way) {
  stage s;
  lease held = mutex(s.session, "m").acquire();
  s.script->hang(verb::renew);
  s.clock->advance(10s);
  s.script->await(verb::renew, 1);
  std::thread shortener([&] { held.extend(1s); });
  s.script->let_go();
  shortener.join();
  EXPECT_LE(held.remaining(), 1s) << "the longer answer did not come last";
  EXPECT_LE(s.session.show("m").holders.at(0).expires_in.value(), 1s);
}

TEST(keeper, an_extension_of_zero_is_refused) {
  stage s;
  lease held = mutex(s.session, "m").acquire();
  EXPECT_THROW(held.extend(0ms), holdfast::error);
}

TEST(keeper, an_observer_notified_of_one_lease_may_extend_another) {
  stage s;
  struct extender final : holdfast::observer {
    lease* other = nullptr;
    std::atomic<bool> over = false;
    void on_event(const holdfast::event& e) override {
      if (e.kind != event_kind::renew_failed || e.name != "a" || over) return;
      EXPECT_NO_THROW(other->extend());
      over = true;
    }
  };
  const auto told = std::make_shared<extender>();
  auto options = s.options();
  options.observer = told;
  const auto first = std::make_shared<std::atomic<bool>>(true);
  holdfast::testing::fault_plan plan;
  plan.choose = [first](auto, std::string_view name, auto v) {
    return v == verb::renew && name == "a" && first->exchange(false) ? fault::drop_request
                                                                     : fault::none;
  };
  options.decorate = holdfast::testing::faulty(plan, s.clock);
  auto session = holdfast::open("memory:", options);
  lease a = mutex(session, "a").acquire();
  lease c = mutex(session, "c").acquire();
  told->other = &c;
  s.clock->advance(10s);
  harness::eventually("extended", [&] { return told->over.load(); });
}

TEST(keeper, a_callback_may_extend_a_lease_whose_renewal_is_queued_behind_it) {
  stage s;
  struct extender final : holdfast::observer {
    engine_test::stage* stage = nullptr;
    lease* other = nullptr;
    std::atomic<bool> over = false;
    void on_event(const holdfast::event& e) override {
      if (e.kind != event_kind::renew_failed || over) return;
      stage->script->set(verb::renew, fault::none);
      stage->clock->advance(3s);  // now the other one is due as well
      EXPECT_NO_THROW(other->extend());
      over = true;
    }
  };
  const auto told = std::make_shared<extender>();
  auto options = s.options();
  options.observer = told;
  auto session = holdfast::open("memory:", options);
  lease a = mutex(session, "a", {.lease = 30s}).acquire();
  lease b = mutex(session, "b", {.lease = 36s}).acquire();
  told->stage = &s;
  told->other = &b;
  s.script->set(verb::renew, fault::drop_request);
  s.clock->advance(10s);
  harness::eventually("extended", [&] { return told->over.load(); });
}

TEST(fake_clock, never_goes_back_and_loses_no_step) {
  holdfast::testing::fake_clock clock;
  const auto begin = clock.now();
  const auto steps = [&] {
    auto last = clock.now();
    for (int i = 0; i < 10'000; ++i) {
      clock.advance(1ms);
      const auto now = clock.now();
      ASSERT_GT(now, last);
      last = now;
    }
  };
  std::thread other(steps);
  steps();
  other.join();
  EXPECT_EQ(clock.now() - begin, 20s);
}

// If it woke the others, too, a test would not notice that their wake-up is lost.
TEST(fake_clock, wakes_the_threads_whose_time_has_come_and_no_others) {
  holdfast::testing::fake_clock clock;
  const auto begin = clock.now();
  std::mutex mutex;
  std::condition_variable early, late;
  std::atomic<int> woken = 0;
  const auto sleep = [&](std::condition_variable& cv, std::chrono::seconds time) {
    std::unique_lock lock{mutex};
    clock.wait_until(lock, cv, begin + time);
    ++woken;
  };
  const auto last = harness::concurrently([&] { sleep(late, 10s); });
  const auto first = harness::concurrently([&] { sleep(early, 4s); });
  harness::eventually("the first sleeps", [&] { return clock.next_wake() == begin + 4s; });
  clock.advance(4s);
  first.wait();
  harness::eventually("the last sleeps", [&] { return clock.next_wake() == begin + 10s; });
  for (int i = 0; i < 5'999; ++i) clock.advance(1ms);
  EXPECT_EQ(clock.next_wake(), begin + 10s);
  EXPECT_EQ(woken, 1);
  clock.advance(1ms);
  last.wait();
}

TEST(fake_clock, a_session_may_be_closed_while_the_clock_is_moved) {
  const auto clock = std::make_shared<holdfast::testing::fake_clock>();
  std::atomic<bool> over = false;
  std::thread opener([&] {
    for (int i = 0; i < 300; ++i) {
      holdfast::session_options options;
      options.clock = clock;
      lease held = mutex(holdfast::open("memory:", options), "m").acquire();
    }
    over = true;
  });
  while (!over) clock->advance(1ms);
  opener.join();
}

// A thread that wakes up for nothing costs its caller as much as a round trip to the store.
TEST(wakes, a_thread_is_woken_once_and_for_the_earliest_task) {
  const holdfast::boot_time now{1h};
  holdfast::store::wake_time mine;
  EXPECT_EQ(mine.sleep_until(holdfast::forever, now), holdfast::forever);
  EXPECT_TRUE(mine.comes_before(now + 10s));
  EXPECT_FALSE(mine.comes_before(now + 10s));
  EXPECT_FALSE(mine.comes_before(now + 11s));
  EXPECT_TRUE(mine.comes_before(now + 9s));
  EXPECT_EQ(mine.sleep_until(now + 10s, now), now + 9s) << "what was due then has gone";
  EXPECT_EQ(mine.sleep_until(holdfast::forever, now + 9s), holdfast::forever);
  EXPECT_TRUE(mine.comes_before(now + 20s));
}

TEST(wakes, the_keeper_wakes_for_the_first_of_many_short_holds) {
  constexpr int keepers_threads = 2;
  const auto clock = std::make_shared<harness::counting_clock>();
  holdfast::session_options o;
  o.clock = clock;
  const auto session = holdfast::open("memory:", o);
  holdfast::mutex m{session, "m"};
  for (int i = 0; i < 20; ++i) {
    m.lock(), m.unlock();
    clock->until_asleep(keepers_threads);
  }
  EXPECT_LE(clock->wakes(), 1);
}

}  // namespace
