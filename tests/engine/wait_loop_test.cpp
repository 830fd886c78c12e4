#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <limits>
#include <thread>
#include <utility>

#include "harness/next_wake.hpp"
#include "harness/passing_on.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

namespace {

using namespace engine_test;
using holdfast::errc;
using holdfast::event_kind;
using holdfast::fair_mutex;
using holdfast::lease;
using holdfast::mutex;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

errc reason_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const holdfast::error& e) {
    return e.reason();
  }
  return errc{};
}

TEST(wait_loop, a_free_lock_costs_one_command_and_its_release_another) {
  stage s;
  fair_mutex m{s.session, "m"};
  const auto before = s.session.store_operations();
  lease held = m.acquire();
  EXPECT_EQ(s.session.store_operations() - before, 1U);
  EXPECT_FALSE(held.release());
  EXPECT_EQ(s.session.store_operations() - before, 2U);
}

// However late this process continues, it has waited no longer than it had to.
TEST(wait_loop, a_short_unanswered_wait_does_not_make_the_store_unavailable) {
  stage s;
  auto& session = *s.session.impl();
  holdfast::engine::request never;
  const auto began = session.now();
  const auto after = [&](std::chrono::milliseconds limit) {
    holdfast::engine::wait_steps steps(session, never, {began, limit});
    return steps.left_at_deadline(began).code;
  };
  s.clock->advance(3s);
  EXPECT_EQ(after(30ms), errc::timed_out);
  EXPECT_EQ(after(2s), errc::unavailable);
}

TEST(wait_loop, a_try_at_a_latch_costs_one_command_and_leaves_no_waiter_there) {
  stage s;
  holdfast::latch local_queue{s.session, "l", 1};
  const auto before = s.session.store_operations();
  EXPECT_FALSE(local_queue.wait_for(0ms));
  EXPECT_EQ(s.session.store_operations() - before, 1U);
  EXPECT_TRUE(s.session.show("l").waiters.empty());
}

TEST(wait_loop, a_wait_that_is_stopped_before_its_first_request_costs_no_command) {
  stage s;
  mutex m{s.session, "m"};
  holdfast::shared_mutex read{s.session, "read"};
  holdfast::semaphore permits{s.session, "permits", 1};
  holdfast::expiring_semaphore expiring{s.session, "expiring", 1};
  holdfast::election leads{s.session, "leads"};
  holdfast::multi_lock all{m, permits};
  holdfast::rate_limiter limiter{s.session, "limiter", {{.tokens = 1, .per = 1s}}};
  holdfast::admission door{limiter, permits};
  holdfast::latch gate{s.session, "gate", 1};
  std::stop_source source;
  source.request_stop();
  const auto stop = source.get_token();
  const auto before = s.session.store_operations();
  EXPECT_FALSE(m.lock(stop));
  EXPECT_FALSE(m.try_acquire_for(1min, stop));
  EXPECT_FALSE(read.try_acquire_shared_for(1min, stop));
  EXPECT_FALSE(permits.try_acquire_for(1min, 1, stop));
  EXPECT_FALSE(expiring.try_acquire_for(1s, 1min, stop));
  EXPECT_FALSE(leads.campaign_for(1min, stop));
  EXPECT_FALSE(all.try_acquire_for(1min, {}, stop));
  EXPECT_FALSE(door.admit_for(1min, 1, {}, stop));
  EXPECT_FALSE(gate.wait_for(1min, stop));
  EXPECT_EQ(async_acquire(m, 1min, stop).future().get().error().code, errc::cancelled);
  EXPECT_EQ(s.session.store_operations() - before, 0U);
  // The keeper releases in order: what another one releases before this is seen, too.
  s.session.impl()->keeper().abandon("another", {7, 7}, 1s);
  s.script->await(verb::release, 1);
  EXPECT_EQ(s.script->count(verb::release), 1U);
}

/// Others changed its rows during each of its attempts, once.
class outrun final : public harness::passing_on {
 public:
  using passing_on::passing_on;
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    if (c.verb != verb::acquire || std::exchange(was_, true)) return inner_->permits(name, c);
    return holdfast::failure{errc::busy, "somebody else was faster"};
  }

 private:
  bool was_ = false;
};

TEST(wait_loop, a_conflict_over_a_row_is_not_reported_as_a_held_lock) {
  holdfast::session_options o;
  o.decorate = [](auto inner) { return std::make_unique<outrun>(std::move(inner)); };
  auto waits = holdfast::open("memory:", o), tries = holdfast::open("memory:", o);
  EXPECT_TRUE(mutex(waits, "m").try_acquire_for(1min));
  mutex m{tries, "m"};
  EXPECT_EQ(reason_of([&] { (void)m.try_acquire(); }), errc::unavailable);
}

/// Grants in vain, then makes the request wait, and so on.
class wavering final : public harness::passing_on {
 public:
  using passing_on::passing_on;
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    if (c.verb != verb::acquire) return inner_->permits(name, c);
    if (++asked_ % 2 == 1) {
      holdfast::failure f{errc::unavailable, "granted in vain"};
      f.ack_missing = true;
      return f;
    }
    holdfast::store::permits_reply r;
    r.outcome = holdfast::store::permits_outcome::queued;
    r.retry_after_us = 250'000;
    return r;
  }

 private:
  std::atomic<int> asked_{0};
};

/// Answers once, as with a record that another program has damaged, that the wait lasts for ever.
class without_end final : public harness::passing_on {
 public:
  using passing_on::passing_on;
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    if (c.verb != verb::acquire || std::exchange(asked_, true)) return inner_->permits(name, c);
    holdfast::store::permits_reply r;
    r.outcome = holdfast::store::permits_outcome::queued;
    r.retry_after_us = std::numeric_limits<std::int64_t>::max();
    return r;
  }

 private:
  bool asked_ = false;
};

TEST(wait_loop, a_wait_that_a_store_calls_endless_is_polled_again_later) {
  stage s;
  auto o = s.options();
  o.decorate = [](auto inner) { return std::make_unique<without_end>(std::move(inner)); };
  auto session = holdfast::open("memory:", o);
  mutex m{session, "m", {.local_time = 0ms}};
  std::thread waiter([&] { m.lock(), m.unlock(); });
  harness::eventually("it sleeps for long", [&] {
    const auto wakes = s.clock->next_wake();
    return wakes != holdfast::forever && wakes - s.clock->now() > 1h;
  });
  s.clock->advance(25h);
  waiter.join();
}

/// Queues the first request, as etcd and ZooKeeper do: it does not know when the lease ahead ends.
class without_ends final : public harness::passing_on {
 public:
  explicit without_ends(std::unique_ptr<holdfast::store::session_store> inner)
      : passing_on(std::move(inner)), can_(inner_->can()) {
    can_.shared_queue_leases = false;
  }
  const holdfast::store::capabilities& can() const noexcept override { return can_; }
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    if (c.verb != verb::acquire || std::exchange(asked_, true)) return inner_->permits(name, c);
    holdfast::store::permits_reply r;
    r.outcome = holdfast::store::permits_outcome::queued;
    r.position = 1;
    r.retry_after_us = 1'000'000;
    return r;
  }

 private:
  holdfast::store::capabilities can_;
  bool asked_ = false;
};

// After an outage all waiters of all programs ask at the same moment. They must not do so for ever.
TEST(wait_loop, a_waiter_polls_at_a_time_of_its_own_where_no_end_is_known) {
  stage s;
  auto o = s.options();
  o.decorate = [](auto inner) { return std::make_unique<without_ends>(std::move(inner)); };
  fair_mutex m{holdfast::open("memory:", o), "m"};
  auto waiter = async_acquire(m, 1h).future();
  s.await_wake_within(1s);
  EXPECT_LT(s.clock->next_wake(), s.clock->now() + 1s);
  EXPECT_GE(s.clock->next_wake(), s.clock->now() + 750ms);
  s.clock->advance(1s);
  EXPECT_TRUE(waiter.get().ok());
}

/// A store whose records were edited by hand.
class edited final : public harness::passing_on {
 public:
  using passing_on::passing_on;
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    auto reply = inner_->permits(name, c);
    if (reply && c.verb == verb::acquire) reply->expires_at = expires_at;
    return reply;
  }
  static inline std::int64_t expires_at = 0;
};

TEST(wait_loop, a_grant_whose_record_names_any_end_lasts_no_longer_than_a_lease_may) {
  using limits = std::numeric_limits<std::int64_t>;
  holdfast::session_options o;
  o.decorate = [](auto inner) { return std::make_unique<edited>(std::move(inner)); };
  const auto s = holdfast::open("memory:", o);
  for (const std::int64_t end : {std::int64_t{10'000'000'000'000'000}, limits::max()}) {
    edited::expires_at = end;
    const auto got = holdfast::mutex(s, "m").try_acquire();
    ASSERT_TRUE(got) << end;
    EXPECT_GT(got->remaining(), 1h) << end;
    EXPECT_LE(got->remaining(), holdfast::max_lease) << end;
  }
  edited::expires_at = limits::min();
  EXPECT_THROW((void)holdfast::mutex(s, "m").try_acquire(), holdfast::error);
}

TEST(wait_loop, a_store_of_late_grants_stays_unavailable_although_it_queues_us) {
  stage s;
  auto o = s.options();
  o.decorate = [](auto inner) { return std::make_unique<wavering>(std::move(inner)); };
  auto session = holdfast::open("memory:", o);
  mutex m{session, "m"};
  std::atomic<bool> over{false};
  std::thread waiter([&] {
    EXPECT_EQ(reason_of([&] { m.lock(); }), errc::unavailable);
    over = true;
  });
  harness::eventually("it gives up", [&] { return harness::pass(*s.clock, 1s), over.load(); });
  waiter.join();
}

/// Grants in vain once, then makes the request wait for long, fails once more, and grants.
class once_in_vain final : public harness::passing_on {
 public:
  once_in_vain(std::unique_ptr<session_store> inner, bool twice)
      : passing_on(std::move(inner)), twice_(twice) {}
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    if (c.verb != verb::acquire) return inner_->permits(name, c);
    const int asked = ++asked_;
    if (asked == 1 || asked == lets_wait) {
      const bool in_vain = asked == 1 || twice_;
      holdfast::failure f{errc::unavailable, in_vain ? "granted in vain" : "away", true};
      f.ack_missing = in_vain;
      return f;
    }
    if (asked > lets_wait) return inner_->permits(name, c);
    holdfast::store::permits_reply r;
    r.outcome = holdfast::store::permits_outcome::queued;
    r.retry_after_us = 1'000'000;
    return r;
  }

 private:
  static constexpr int lets_wait = 200;
  const bool twice_;
  std::atomic<int> asked_{0};
};

void expect_to_get_it_after_a_grant_in_vain_long_ago(bool and_another) {
  stage s;
  auto o = s.options();
  o.decorate = [and_another](auto inner) {
    return std::make_unique<once_in_vain>(std::move(inner), and_another);
  };
  auto session = holdfast::open("memory:", o);
  mutex m{session, "m"};
  std::atomic<bool> over{false};
  std::thread waiter([&] {
    EXPECT_EQ(reason_of([&] { m.lock(); }), errc{});
    over = true;
  });
  harness::eventually("it is over", [&] { return harness::pass(*s.clock, 1s), over.load(); });
  waiter.join();
}

TEST(wait_loop, an_old_late_grant_and_one_outage_do_not_end_a_wait) {
  expect_to_get_it_after_a_grant_in_vain_long_ago(false);
}

TEST(wait_loop, two_late_grants_far_apart_do_not_end_a_wait) {
  expect_to_get_it_after_a_grant_in_vain_long_ago(true);
}

TEST(wait_loop, a_lost_notification_is_noticed_within_a_second) {
  stage s;
  fair_mutex m{s.session, "m"};
  lease held = m.acquire();
  std::thread waiter([&] { EXPECT_TRUE(m.acquire()); });
  s.await_waiters("m", 1);
  s.await_wake_within(1s);
  s.script->set(verb::release, fault::drop_notification);
  EXPECT_FALSE(held.release());
  EXPECT_EQ(s.seen->count(event_kind::notification_gap), 0U);
  s.clock->advance(1s);
  waiter.join();
  EXPECT_EQ(s.seen->count(event_kind::notification_gap), 1U);
}

TEST(wait_loop, expired_permits_go_to_the_first_waiters) {
  stage s;
  holdfast::expiring_semaphore permits{s.session, "s", 3};
  for (const auto lasts : {300ms, 100ms, 200ms}) EXPECT_TRUE(permits.try_acquire(lasts));
  constexpr auto ready = std::future_status::ready;
  std::vector<std::future<holdfast::result<holdfast::permit>>> waiters;
  for (std::size_t i = 0; i < 3; ++i) {
    waiters.push_back(async_acquire(permits, 1h).future());
    s.await_waiters("s", i + 1);
  }
  for (auto& waiter : waiters) {
    harness::eventually("one sleeps until the next permit ends",
                        [&] { return s.clock->next_wake() == s.clock->now() + 100ms; });
    s.clock->advance(100ms);
    harness::eventually("it has one", [&] { return waiter.wait_for(0s) == ready; });
    EXPECT_TRUE(waiter.get().ok());
  }
}

TEST(wait_loop, tries_once_more_at_the_deadline_and_leaves_nothing_behind) {
  stage s;
  fair_mutex m{s.session, "m"};
  lease held = m.acquire();
  std::thread waiter([&] { EXPECT_FALSE(m.try_acquire_for(500ms)); });
  s.await_waiters("m", 1);
  s.clock->advance(500ms);
  waiter.join();
  EXPECT_TRUE(s.session.show("m").waiters.empty());
  EXPECT_EQ(s.seen->count(event_kind::gave_up), 1U);
}

TEST(wait_loop, a_timeout_of_zero_or_less_is_one_try) {
  stage s;
  mutex m{s.session, "m"};
  EXPECT_TRUE(m.try_acquire_for(0s));
  EXPECT_TRUE(m.try_acquire_for(-5s));
  EXPECT_TRUE(m.try_acquire_until(std::chrono::system_clock::time_point{}));
  EXPECT_TRUE(m.try_acquire_for(std::chrono::hours::max())) << "saturated, not overflowing";
}

TEST(wait_loop, a_cancelled_waiter_leaves_the_queue) {
  stage s;
  fair_mutex m{s.session, "m"};
  lease held = m.acquire();
  std::stop_source stop;
  std::thread waiter(
      [&] { EXPECT_EQ(reason_of([&] { (void)m.acquire(stop.get_token()); }), errc::cancelled); });
  s.await_waiters("m", 1);
  stop.request_stop();
  waiter.join();
  EXPECT_TRUE(s.session.show("m").waiters.empty());
}

TEST(wait_loop, a_wait_cancelled_before_it_began_sends_no_request) {
  stage s;
  mutex m{s.session, "m"};
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(m.try_acquire_for(1s, stop.get_token()));
  EXPECT_EQ(s.script->count(verb::acquire), 0U);
}

TEST(wait_loop, a_grant_that_races_with_a_cancel_is_never_left_without_a_holder) {
  for (int round = 0; round < 200; ++round) {
    stage s;
    fair_mutex m{s.session, "m"};
    lease held = m.acquire();
    std::stop_source stop;
    std::optional<lease> won;
    std::thread waiter([&] { won = m.try_acquire_for(1h, stop.get_token()); });
    s.await_waiters("m", 1);
    std::thread canceller([&] { stop.request_stop(); });
    EXPECT_FALSE(held.release());
    canceller.join();
    waiter.join();
    const auto info = s.session.show("m");
    EXPECT_EQ(info.holders.size(), won ? 1U : 0U);
    EXPECT_TRUE(info.waiters.empty());
  }
}

TEST(wait_loop, a_repeated_acquire_after_a_lost_reply_gets_the_same_grant) {
  stage s;
  mutex m{s.session, "m"};
  s.script->set(verb::acquire, fault::drop_reply);
  std::optional<lease> got;
  std::thread taker([&] { got = m.try_acquire_for(5s); });
  s.script->await(verb::acquire, 1);
  s.script->set(verb::acquire, fault::none);
  harness::eventually("acquired", [&] {
    harness::pass(*s.clock, 50ms);
    return s.seen->count(event_kind::acquired) == 1;
  });
  taker.join();
  ASSERT_TRUE(got);
  const auto info = s.session.show("m");
  ASSERT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(info.holders[0].fence, got->fence());
}

TEST(wait_loop, a_try_whose_reply_was_lost_leaves_no_orphan) {
  stage s;
  mutex m{s.session, "m"};
  s.script->set(verb::acquire, fault::drop_reply);
  try {
    (void)m.try_acquire();
    FAIL() << "the store was away";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::unavailable);
    EXPECT_TRUE(e.outcome_unknown());
    EXPECT_TRUE(e.retryable());
  }
  harness::eventually("the keeper gives it back",
                      [&] { return s.session.show("m").holders.empty(); });
}

TEST(wait_loop, an_unanswered_queue_entry_at_a_condition_is_removed) {
  stage s;
  mutex m{s.session, "m"};
  holdfast::condition_variable changed{s.session, "c"};
  std::unique_lock lock{m};
  s.script->set(verb::acquire, fault::drop_reply);
  std::stop_source stop;
  std::thread stops([&, before = s.script->count(verb::acquire)] {
    s.script->await(verb::acquire, before + 1);
    stop.request_stop();
  });
  EXPECT_FALSE(changed.wait(lock, stop.get_token(), [] { return false; }));
  stops.join();
  EXPECT_NO_THROW(m.check());
  harness::eventually("the keeper leaves", [&] { return s.session.show("c").waiters.empty(); });
}

TEST(wait_loop, a_wait_without_a_deadline_ends_after_the_store_timeout) {
  stage s;
  mutex m{s.session, "m"};
  s.script->set(verb::acquire, fault::drop_request);
  std::atomic<bool> over = false;
  std::thread taker([&] {
    EXPECT_EQ(reason_of([&] { (void)m.acquire(); }), errc::unavailable);
    over = true;
  });
  harness::eventually("gave up", [&] {
    harness::pass(*s.clock, 1s);
    return over.load();
  });
  taker.join();
}

TEST(wait_loop, a_dead_successor_costs_the_claim_time_and_not_its_lease) {
  stage s;
  fair_mutex m{s.session, "m"};
  // The first waiter never takes its grant: its notification is lost and its process asks no more.
  holdfast::store::permits_command mute;
  mute.verb = verb::acquire;
  mute.owner = {1, 2};
  mute.wait = true;
  mute.lease_us = 30'000'000;
  mute.queue_lease_us = 4'000'000;
  lease held = m.acquire();
  ASSERT_TRUE(s.session.impl()->permits("m", mute));
  std::thread waiter([&] { EXPECT_TRUE(m.acquire()); });
  s.await_waiters("m", 2);
  const auto before = s.clock->now();
  EXPECT_FALSE(held.release());
  harness::eventually("acquired", [&] {
    harness::to_next_wake(*s.clock, 4s);
    return s.seen->count(event_kind::acquired) == 2;
  });
  waiter.join();
  EXPECT_LT(s.clock->now() - before, 4s);
}

TEST(wait_loop, a_session_that_closed_while_queued_is_skipped_at_once) {
  stage s("memory:passed");
  fair_mutex m{s.session, "m"};
  lease held = m.acquire();
  {
    auto other = holdfast::open("memory:passed", s.options());
    holdfast::store::permits_command c;
    c.verb = verb::acquire;
    c.owner = {1, 2};
    c.wait = true;
    c.lease_us = 30'000'000;
    c.queue_lease_us = 4'000'000;
    c.peer = other.impl()->peer();
    ASSERT_TRUE(other.impl()->permits("m", c));
  }
  std::thread waiter([&] { EXPECT_TRUE(m.acquire()); });
  s.await_waiters("m", 1);
  EXPECT_FALSE(held.release());
  waiter.join();
}

TEST(wait_loop, a_lock_without_renewal_lasts_its_whole_lease_also_after_a_wait) {
  stage s;
  fair_mutex a{s.session, "m"}, b{s.session, "m", {.lease = 10s, .renew = false}};
  lease held = a.acquire();
  std::chrono::nanoseconds left{};
  std::thread waiter([&] {
    const lease mine = b.acquire();
    left = mine.remaining();
  });
  s.await_waiters("m", 1);
  EXPECT_FALSE(held.release());
  waiter.join();
  EXPECT_GT(left, 9s);
}

TEST(wait_loop, a_store_timeout_without_end_keeps_trying) {
  stage s;
  auto options = s.options();
  options.store_timeout = std::chrono::milliseconds::max();
  auto session = holdfast::open("memory:", options);
  s.script->set(verb::acquire, fault::drop_request);
  std::thread taker([&] { EXPECT_TRUE(mutex(session, "m").acquire()); });
  for (std::size_t tries = 1; tries <= 5; ++tries) {
    harness::eventually("tried again", [&] {
      harness::pass(*s.clock, 1s);
      return s.script->count(verb::acquire) > tries;
    });
  }
  s.script->set(verb::acquire, fault::none);
  harness::eventually("acquired", [&] {
    harness::pass(*s.clock, 1s);
    return s.seen->count(event_kind::acquired) == 1;
  });
  taker.join();
}

TEST(with_lock, returns_results_that_are_move_only_or_references) {
  stage s;
  mutex m{s.session, "m"};
  EXPECT_EQ(*with_lock(m, [] { return std::make_unique<int>(7); }), 7);
  int there = 1;
  static_assert(std::is_same_v<decltype(with_lock(m, [&]() -> int& { return there; })), int&>);
  with_lock(m, [&]() -> int& { return there; }) = 2;
  EXPECT_EQ(there, 2);
  EXPECT_EQ(with_lock(m, [](lease& l) { return l.fence() > 0; }), true);
  with_lock(m, [] {});
}

TEST(with_lock, a_lock_lost_during_the_work_is_not_overlooked) {
  stage s;
  mutex m{s.session, "m"};
  EXPECT_EQ(reason_of([&] { (void)with_lock(m, [&] { return s.session.force_release("m"); }); }),
            errc::lost);
}

}  // namespace
