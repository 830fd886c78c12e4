#include <cmath>
#include <future>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <limits>

#include "engine/stage.hpp"
#include "harness/concurrently.hpp"
#include "primitive/extremes.hpp"

// Each call that takes a time, of each primitive: zero and less is one try, and a time that no
// clock reaches is for ever. The sanitizer lane also reports overflows.
namespace {

using namespace engine_test;
using primitive_test::expect_used_or_refused;
using primitive_test::extremes;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// A free lock is acquired at once, whatever the time-out.
template <class Try>
void expect_had(Try try_for) {
  for (const auto d : extremes<hours>()) EXPECT_TRUE(try_for(d)) << d.count() << " h";
  for (const auto d : extremes<nanoseconds>()) EXPECT_TRUE(try_for(d)) << d.count() << " ns";
  constexpr double infinite = std::numeric_limits<double>::infinity();
  for (const double s : {-infinite, -1e300, 0.0, 1e300, infinite, std::nan("")})
    EXPECT_TRUE(try_for(std::chrono::duration<double>(s))) << s << " s";
}

/// A held lock is not waited for with a zero time-out: nobody advances this clock.
template <class Try>
void expect_not_had(Try try_for) {
  for (const auto d : {hours::min(), hours(-1), hours(0)}) EXPECT_FALSE(try_for(d)) << d.count();
  for (const auto d : {nanoseconds::min(), nanoseconds(-1), nanoseconds(0)})
    EXPECT_FALSE(try_for(d)) << d.count();
  EXPECT_FALSE(try_for(std::chrono::duration<double>(std::nan("")))) << "what is not a number";
}

struct extreme_waits : testing::Test {
  stage s{"memory:extreme-waits"};
  const holdfast::session elsewhere = holdfast::open("memory:extreme-waits", {.clock = s.clock});
};

TEST_F(extreme_waits, for_exclusive_locks_are_one_try_or_for_ever) {
  const auto expect = [&]<class Lock>(Lock& mine, Lock& theirs) {
    expect_had([&](auto d) { return mine.try_acquire_for(d).has_value(); });
    expect_had([&](auto d) { return async_acquire(mine, d).future().get().ok(); });
    expect_had([&](auto d) {
      const bool had = mine.try_lock_for(d);
      if (had) mine.unlock();
      return had;
    });
    const auto held = theirs.acquire();
    expect_not_had([&](auto d) { return mine.try_acquire_for(d).has_value(); });
    expect_not_had([&](auto d) { return mine.try_lock_for(d); });
  };
  holdfast::mutex m{s.session, "m"}, other_m{elsewhere, "m"};
  expect(m, other_m);
  holdfast::fair_mutex f{s.session, "f"}, other_f{elsewhere, "f"};
  expect(f, other_f);
  holdfast::shared_mutex rw{s.session, "rw"}, other_rw{elsewhere, "rw"};
  expect(rw, other_rw);
  holdfast::recursive_mutex r{s.session, "r"};
  expect_had([&](auto d) {
    const bool had = r.try_lock_for(d);
    if (had) r.unlock();
    return had;
  });
}

TEST_F(extreme_waits, for_readers_and_permits_are_one_try_or_for_ever) {
  holdfast::shared_mutex rw{s.session, "rw"}, other_rw{elsewhere, "rw"};
  expect_had([&](auto d) { return rw.try_acquire_shared_for(d).has_value(); });
  expect_had([&](auto d) { return async_acquire_shared(rw, d).future().get().ok(); });
  const auto writer = other_rw.acquire();
  expect_not_had([&](auto d) { return rw.try_acquire_shared_for(d).has_value(); });
  holdfast::semaphore some{s.session, "some", 3}, theirs{elsewhere, "some", 3};
  expect_had([&](auto d) { return some.try_acquire_for(d, 2).has_value(); });
  expect_had([&](auto d) { return async_acquire(some, 2, d).future().get().ok(); });
  const auto all = theirs.acquire(3);
  expect_not_had([&](auto d) { return some.try_acquire_for(d, 2).has_value(); });
  holdfast::counting_semaphore counted{s.session, "counted", 1};
  expect_had([&](auto d) {
    const bool had = counted.try_acquire_for(d);
    if (had) counted.release();
    return had;
  });
  holdfast::expiring_semaphore expiring{s.session, "expiring", 1};
  expect_had([&](auto d) {
    const auto permit = expiring.try_acquire_for(1h, d);
    return permit && expiring.release(permit->id);
  });
  const auto last = expiring.acquire(1h);
  expect_not_had([&](auto d) { return expiring.try_acquire_for(1h, d).has_value(); });
}

TEST_F(extreme_waits, for_other_participants_are_one_poll_or_for_ever) {
  holdfast::latch open{s.session, "open", 1}, closed{s.session, "closed", 1};
  open.count_down();
  expect_had([&](auto d) { return open.wait_for(d); });
  expect_had([&](auto d) { return async_wait(open, d).future().get().ok(); });
  expect_not_had([&](auto d) { return closed.wait_for(d); });
  holdfast::barrier alone{s.session, "alone", 1}, both{s.session, "both", 2};
  expect_had([&](auto d) {
    auto mine = alone.arrive();
    return alone.wait_for(mine, d);
  });
  auto mine = both.arrive();
  expect_not_had([&](auto d) { return both.wait_for(mine, d); });
  holdfast::mutex m{s.session, "m"};
  holdfast::condition_variable changed{s.session, "changed"};
  std::unique_lock lock{m};
  expect_had([&](auto d) { return changed.wait_for(lock, d, [] { return true; }); });
  expect_not_had([&](auto d) { return changed.wait_for(lock, d, [] { return false; }); });
  EXPECT_TRUE(lock.owns_lock());
}

TEST_F(extreme_waits, to_lead_are_one_try_or_for_ever) {
  holdfast::election e{s.session, "e"}, theirs{elsewhere, "e"};
  expect_had([&](auto d) { return e.campaign_for(d).has_value(); });
  expect_had([&](auto d) { return async_campaign(e, d).future().get().ok(); });
  const auto leads = theirs.campaign();
  expect_not_had([&](auto d) { return e.campaign_for(d).has_value(); });
  expect_had([&](auto d) { return e.observe().next_for(d).has_value(); });
}

TEST_F(extreme_waits, for_tokens_are_one_try_or_for_ever) {
  holdfast::rate_limiter many{s.session, "many", {{.tokens = 1'000, .per = 1h}}};
  holdfast::rate_limiter few{s.session, "few", {{.tokens = 1, .per = 1h}}};
  expect_had([&](auto d) { return many.take_for(1, d).taken; });
  expect_had([&](auto d) { return async_take(many, 1, {}, d).future().get().ok(); });
  EXPECT_TRUE(few.try_take());
  expect_not_had([&](auto d) { return few.take_for(1, d).taken; });
  holdfast::semaphore some{s.session, "some", 1};
  holdfast::admission door{many, some}, full{few, some};
  expect_had([&](auto d) { return bool(door.admit_for(d)); });
  expect_not_had([&](auto d) { return bool(full.admit_for(d)); });
}

TEST_F(extreme_waits, for_several_locks_are_one_try_or_for_ever) {
  holdfast::mutex a{s.session, "a"}, b{s.session, "b"}, other_a{elsewhere, "a"};
  holdfast::multi_lock all{a, b};
  holdfast::both two{a, b};
  holdfast::redlock quorum{{s.session}, "q"};
  const auto try_each = [&](auto expect) {
    expect([&](auto d) { return all.try_acquire_for(d).has_value(); });
    expect([&](auto d) { return two.try_acquire_for(d).has_value(); });
  };
  try_each([](auto call) { expect_had(call); });
  expect_had([&](auto d) { return async_acquire(all, d).future().get().ok(); });
  expect_had([&](auto d) {
    auto got = quorum.try_acquire_for(d);
    return got && !got->release();
  });
  expect_had([&](auto d) {
    auto got = async_acquire(quorum, d).future().get();
    return got && !got->release();
  });
  const auto held = other_a.acquire();
  try_each([](auto call) { expect_not_had(call); });
  const auto theirs = quorum.acquire();
  expect_not_had([&](auto d) { return quorum.try_acquire_for(d).has_value(); });
  expect_not_had([&](auto d) { return async_acquire(quorum, d).future().get().ok(); });
}

TEST_F(extreme_waits, as_the_length_of_a_lease_are_used_or_refused) {
  holdfast::mutex a{s.session, "a"}, b{s.session, "b"};
  holdfast::multi_lock all{a, b};
  holdfast::redlock quorum{{s.session}, "q"};
  holdfast::mutex c{s.session, "c"};
  auto held = c.acquire();
  expect_used_or_refused<milliseconds>([&](auto d) { held.extend(d); });
  expect_used_or_refused<milliseconds>(
      [&](auto d) { (void)async_extend(held, d).future().get().value(); });
  EXPECT_EQ(held.state(), holdfast::lease_state::held);
  expect_used_or_refused<milliseconds>([&](auto d) { (void)all.acquire(d); });
  expect_used_or_refused<milliseconds>([&](auto d) { (void)quorum.acquire(d); });
  auto several = all.acquire();
  expect_used_or_refused<milliseconds>([&](auto d) { several.extend(d); });
  expect_used_or_refused<milliseconds>(
      [&](auto d) { (void)async_extend(several, d).future().get().value(); });
  EXPECT_EQ(several.state(), holdfast::lease_state::held);
}

// The store reserves tokens for 31 days ahead at most. A wait that may last longer asks again.
TEST_F(extreme_waits, for_tokens_reach_further_than_a_reservation) {
  constexpr auto day = 24h;
  holdfast::rate_limiter daily{s.session, "daily", {{.tokens = 1, .per = day}}};
  const auto began = s.clock->now();
  for (int i = 0; i < 32; ++i) EXPECT_TRUE(daily.reserve(1, 31 * day)) << i;
  EXPECT_FALSE(daily.reserve(1, 31 * day));
  EXPECT_FALSE(daily.take_for(1, 31 * day)) << "known at once";
  EXPECT_FALSE(async_take(daily, 1, {}, 31 * day).future().get().value());
  auto thread = harness::concurrently([&] { return daily.take(); });
  auto pending = async_take(daily, 1, {}, 36'500 * day).future();
  const auto over = [](const auto& f) { return f.wait_for(0s) == std::future_status::ready; };
  for (int i = 0; i < 9'999 && !(over(thread) && over(pending)); ++i) {
    harness::to_next_wake(*s.clock, 99 * day);
  }
  ASSERT_TRUE(over(thread) && over(pending));
  EXPECT_TRUE(thread.get());
  EXPECT_TRUE(pending.get().value());
  EXPECT_GE(s.clock->now() - began, 33 * day);
}

}  // namespace
