#include <gtest/gtest.h>

#include <future>
#include <holdfast/guard.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>

#include "engine/stage.hpp"
#include "harness/concurrently.hpp"
#include "harness/next_wake.hpp"
#include "primitive/common.hpp"
#include "primitive/extremes.hpp"

// Whatever duration an option gets: it is refused by name, or has the stated effect. The sanitizer
// lane also reports overflows.
namespace {

using namespace engine_test;
using fault = holdfast::testing::fault;
using verb = holdfast::store::permits_verb;
using primitive_test::expect_used_or_refused;
using primitive_test::extremes;
using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(extreme_durations, of_a_session_are_used_or_refused) {
  expect_used_or_refused<milliseconds>([](auto d) {
    const auto s = holdfast::open("memory:", {.lease = d});
    EXPECT_FALSE(holdfast::mutex(s, "m").acquire().release());
  });
  expect_used_or_refused<milliseconds>([](auto d) {
    const auto s = holdfast::open("memory:", {.store_timeout = d});
    EXPECT_FALSE(holdfast::mutex(s, "m").acquire().release());
  });
}

TEST(extreme_durations, of_a_lock_are_used_or_refused) {
  stage s;
  const auto expect = [&](auto name, auto set) {
    expect_used_or_refused<std::remove_reference_t<decltype(*name)>>([&](auto d) {
      holdfast::lock_options o;
      set(o, d);
      holdfast::mutex m{s.session, "m", o};
      EXPECT_FALSE(m.acquire().release());
      EXPECT_TRUE(m.try_acquire());
      holdfast::recursive_mutex again{s.session, "m", o};
      again.lock();
      again.unlock();
    });
  };
  expect(static_cast<milliseconds*>(nullptr), [](auto& o, auto d) { o.lease = d; });
  expect(static_cast<milliseconds*>(nullptr), [](auto& o, auto d) { o.max_hold = d; });
  expect(static_cast<microseconds*>(nullptr), [](auto& o, auto d) { o.local_time = d; });
  expect(static_cast<microseconds*>(nullptr), [](auto& o, auto d) { o.linger = d; });
}

// From zero, which means the store's turn at once, to for ever.
TEST(extreme_durations, an_endless_local_time_never_ends) {
  stage s;
  holdfast::lock_options o;
  o.local_time = microseconds::max();
  holdfast::mutex m{s.session, "m", o};
  auto held = std::make_optional(m.acquire());
  auto next = harness::concurrently([&] { return m.acquire().fence(); });
  const auto fence = held->fence();
  held.reset();
  EXPECT_GT(next.get(), fence);
}

TEST(extreme_durations, of_a_redlock_are_used_or_refused) {
  const auto expect = [](auto set) {
    expect_used_or_refused<milliseconds>([&](auto d) {
      // A busy machine does not answer within a millisecond of the true clock.
      const auto clock = std::make_shared<holdfast::testing::fake_clock>();
      std::vector<holdfast::session> nodes;
      for (int i = 0; i < 3; ++i) nodes.push_back(holdfast::open("memory:", {.clock = clock}));
      holdfast::redlock_options o;
      set(o, d);
      holdfast::redlock lock{nodes, "job", o};
      EXPECT_FALSE(lock.acquire().release());
      EXPECT_TRUE(lock.try_acquire());
      EXPECT_TRUE(lock.try_acquire_for(1h));
    });
  };
  expect([](auto& o, auto d) { o.lease = d; });
  expect([](auto& o, auto d) { o.node_timeout = d; });
  expect([](auto& o, auto d) { o.trust_after = d; });
}

// A majority is away, and comes back after longer than an overflow would have waited.
TEST(extreme_durations, a_redlock_waits_for_ever_for_nodes_that_are_away) {
  auto clock = std::make_shared<holdfast::testing::fake_clock>();
  auto way = std::make_shared<script>();
  way->set(verb::acquire, fault::drop_request);
  holdfast::testing::fault_plan plan;
  plan.choose = [way](auto, auto, auto v) { return way->choose(v); };
  holdfast::session_options o;
  o.clock = clock;
  o.store_timeout = milliseconds::max();
  o.decorate = holdfast::testing::faulty(plan, clock);
  holdfast::redlock lock{
      {holdfast::open("memory:", o)}, "job", {.node_timeout = milliseconds::max()}};
  auto got = harness::concurrently([&] { return lock.acquire().fence(); });
  harness::eventually("asked again and again", [&] {
    harness::pass(*clock, 1min);
    return lock.attempts() >= 10;
  });
  way->set(verb::acquire, fault::none);
  harness::eventually("the end of it", [&] {
    harness::pass(*clock, 1s);
    return got.wait_for(0s) == std::future_status::ready;
  });
  EXPECT_GT(got.get(), 0u);
}

TEST(extreme_durations, of_counted_values_are_used_or_refused) {
  stage s;
  expect_used_or_refused<std::chrono::seconds>([&](auto d) {
    holdfast::latch l{s.session, "l", 1, {.keep = d}};
    l.count_down();
  });
  // In milliseconds, of which there are 2^64, that is less than two seconds.
  const std::chrono::seconds wraps{18'446'744'073'709'553};
  EXPECT_THROW(holdfast::latch(s.session, "l", 1, {.keep = wraps}), holdfast::error);
  expect_used_or_refused<milliseconds>([&](auto d) {
    holdfast::barrier b{s.session, "b", 1, {.lease = d}};
    (void)b.arrive_and_wait();
  });
  expect_used_or_refused<milliseconds>([&](auto d) {
    holdfast::election e{s.session, "e", {.lease = d}};
    EXPECT_FALSE(e.campaign().resign());
  });
  expect_used_or_refused<milliseconds>([&](auto d) {
    holdfast::expiring_semaphore e{s.session, "x", 1};
    const auto p = e.acquire(d);
    EXPECT_TRUE(e.try_extend(p.id, d));
    EXPECT_TRUE(e.release(p.id));
  });
  expect_used_or_refused<microseconds>([&](auto d) {
    holdfast::rate_limiter r{s.session, "r" + std::to_string(d.count()), {{.tokens = 1, .per = d}}};
    (void)r.try_take();
  });
  expect_used_or_refused<milliseconds>([&](auto d) {
    holdfast::rate_limiter r{s.session,
                             "local",
                             {{.tokens = 9, .per = 1s, .burst = 9}},
                             {.local_tokens = 3, .local_time = d}};
    (void)r.try_take();
  });
  expect_used_or_refused<microseconds>([&](auto d) {
    holdfast::rate_limiter r{s.session, "ahead", {{.tokens = 9, .per = 1s}}};
    (void)r.reserve(1, d);
  });
}

TEST(extreme_durations, of_a_wait_are_one_try_or_for_ever) {
  stage s;
  holdfast::mutex m{s.session, "m"};
  for (const auto d : extremes<std::chrono::hours>()) {
    EXPECT_TRUE(m.try_acquire_for(d)) << d.count();
    EXPECT_TRUE(async_acquire(m, d).future().get().ok()) << d.count();
  }
  for (const auto d : extremes<std::chrono::nanoseconds>()) {
    EXPECT_TRUE(m.try_acquire_for(d)) << d.count();
  }
  using wide = std::chrono::time_point<std::chrono::system_clock, std::chrono::hours>;
  EXPECT_TRUE(m.try_acquire_until(wide::min()));
  EXPECT_TRUE(m.try_acquire_until(wide::max()));
  const auto taken = m.acquire();
  EXPECT_FALSE(holdfast::mutex(s.session, "m").try_acquire_for(std::chrono::hours::min()));
}

// In a record that another program wrote: a time that no clock can show is unknown, and one in the
// past has ended.
TEST(extreme_durations, in_records_of_others_are_shown_as_unknown_or_ended) {
  using limits = std::numeric_limits<std::int64_t>;
  const auto of = [](std::int64_t since, std::int64_t expires_at) {
    return holdfast::primitive::describe({}, 1, "host 1 program", since, expires_at, 1'000'000);
  };
  const std::chrono::system_clock::time_point unknown{};
  for (const auto odd : {limits::min(), limits::max(), std::int64_t{1} << 60,
                         std::int64_t{20'000'000'000'000'000}}) {
    EXPECT_EQ(of(odd, 0).since, unknown) << odd;
  }
  const auto year_2200 = std::chrono::microseconds(7'258'118'400'000'000);
  EXPECT_EQ(of(year_2200.count(), 0).since, unknown + year_2200);
  EXPECT_EQ(of(0, limits::min()).expires_in, 0ms);
  EXPECT_EQ(of(0, 1'500'000).expires_in, 500ms);
}

TEST(extreme_durations, of_pauses_are_no_pause_or_the_longest) {
  for (const auto d : extremes<microseconds>()) {
    int tries = 0;
    const holdfast::guard::retries how{.attempts = 3, .first_pause = d, .longest_pause = 1us};
    (void)holdfast::guard::compare_and_update([] { return 0; }, [&](int) { return ++tries == 3; },
                                              how);
    EXPECT_EQ(tries, 3);
  }
}

TEST(saturated_add, of_any_unit_is_now_or_later_and_never_earlier) {
  using holdfast::boot_time;
  using holdfast::forever;
  using holdfast::saturated_add;
  for (const auto from : {boot_time::min(), boot_time{}, boot_time{} + 1h, forever}) {
    EXPECT_EQ(saturated_add(from, milliseconds::min()), from);
    EXPECT_EQ(saturated_add(from, std::chrono::hours(-1)), from);
    EXPECT_GE(saturated_add(from, milliseconds::max()), from);
    EXPECT_GE(saturated_add(from, std::chrono::nanoseconds::max()), from);
  }
  EXPECT_EQ(saturated_add(boot_time{} + 1h, milliseconds::max()), forever);
  EXPECT_EQ(saturated_add(boot_time{} + 1h, std::chrono::hours::max()), forever);
  EXPECT_EQ(saturated_add(boot_time{}, 1500us), boot_time{} + 1'500'000ns);
}

}  // namespace
