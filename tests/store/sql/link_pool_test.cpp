#include "store/sql/link_pool.hpp"
#include "harness/concurrently.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <holdfast/testing.hpp>
#include <latch>
#include <list>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "counting_waits.hpp"
#include "harness/eventually.hpp"
#include "harness/forwarding_clock.hpp"
#include "harness/held_mutexes.hpp"
#include "store/sql/options.hpp"

// The connections that a session's threads share.
namespace sql_test {
namespace {

using namespace std::chrono_literals;
using holdfast::store::sql::link_pool;
using holdfast::store::sql::row_link;
using made = holdfast::result<std::unique_ptr<row_link>>;
using holdfast::boot_time;
using holdfast::result;
using holdfast::status;
using holdfast::store::sql::replaced;
using holdfast::store::sql::replacement;
using holdfast::store::sql::rewrite;
using holdfast::store::sql::row;
using entry = holdfast::store::state_store::entry;

// The servers take 0 for a wait without a limit.
TEST(link_options, let_the_server_wait_for_a_lock_for_a_limited_time) {
  for (const auto limit : {1ms, 2ms, 100ms}) {
    holdfast::store::sql::link_options o;
    o.command_timeout = limit;
    EXPECT_GE(patience_of(o), 1ms);
    EXPECT_LE(patience_of(o), limit);
  }
}

TEST(link_pools, have_room_again_after_a_lack_of_memory) {
  int failures = 2;
  link_pool pool(
      [&](auto) -> made {
        if (failures-- > 0) throw std::bad_alloc();
        return holdfast::failure{holdfast::errc::unavailable, "no server"};
      },
      1);
  for (int i = 0; i < 2; ++i)
    EXPECT_THROW((void)pool.borrow(holdfast::boot_time{}), std::bad_alloc);
  const auto next = pool.borrow(holdfast::boot_time{});
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().what, "no server");
}

const holdfast::failure no_server{holdfast::errc::unavailable, "no server"};

const holdfast::failure no_time_left{holdfast::errc::timed_out, "in whole seconds"};

/// A pool of four whose server is away until it is given connections.
struct away_pool {
  made connect(holdfast::boot_time) {
    ++attempts;
    clock.advance(lasts);
    if (answers) return std::unique_ptr<row_link>();
    return ends_early ? no_time_left : no_server;
  }
  holdfast::result<link_pool::loan> borrow() { return pool.borrow(clock.now() + 1h); }

  holdfast::testing::fake_clock clock;
  std::chrono::milliseconds lasts{0};
  std::atomic<int> attempts{0};
  std::atomic<bool> answers{false};
  bool ends_early = false;
  link_pool pool{[this](auto deadline) { return connect(deadline); }, 4, clock};
};

// A server that is slow to accept connections would be kept busy by those that are given up.
TEST(link_pools, try_a_server_again_only_after_a_pause_as_long_as_the_attempt_that_failed) {
  away_pool away;
  away.lasts = 600ms;
  EXPECT_FALSE(away.borrow());
  for (int i = 0; i < 3; ++i) {
    const auto refused = away.borrow();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().what, no_server.what);
  }
  EXPECT_EQ(away.attempts, 1) << "half of the pause is the least";
  away.clock.advance(600ms);
  EXPECT_FALSE(away.borrow());
  EXPECT_EQ(away.attempts, 2);
  away.lasts = 5min;
  away.clock.advance(600ms);
  EXPECT_FALSE(away.borrow());
  away.clock.advance(1s);
  away.answers = true;
  EXPECT_TRUE(away.borrow()) << "no pause is longer than a second";
  EXPECT_TRUE(away.borrow()) << "and it is over with the first that succeeds";
}

// A request with little time left must not delay those that can wait for a slow server.
TEST(link_pools, do_not_hold_up_requests_with_far_more_time_than_the_attempt_that_failed) {
  for (const bool in_whole_seconds : {false, true}) {
    away_pool away;
    away.lasts = 300ms;
    away.ends_early = in_whole_seconds;
    const auto late = away.pool.borrow(away.clock.now() + (in_whole_seconds ? 700ms : 300ms));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, holdfast::errc::unavailable);
    EXPECT_FALSE(away.pool.borrow(away.clock.now() + 500ms)) << "it would fail as well";
    EXPECT_EQ(away.attempts, 1);
    away.ends_early = false, away.lasts = 2s;
    EXPECT_FALSE(away.borrow());
    EXPECT_EQ(away.attempts, 2);
    EXPECT_FALSE(away.borrow()) << "that one had time enough";
    EXPECT_EQ(away.attempts, 2);
  }
}

TEST(link_pools, wait_for_a_pause_that_is_short) {
  away_pool away;
  EXPECT_FALSE(away.borrow());
  away.answers = true;
  auto next = harness::concurrently([&] { return bool(away.borrow()); });
  harness::eventually("it waits", [&] {
    return away.clock.next_wake() != holdfast::forever ||
           next.wait_for(0s) == std::future_status::ready;
  });
  away.clock.advance(5ms);
  EXPECT_TRUE(next.get());
  EXPECT_EQ(away.attempts, 2);
}

/// A connection that works, and is asked nothing.
class idle_link : public row_link {
 public:
  bool usable() const noexcept override { return works; }
  result<std::vector<row>> read(std::span<const std::string_view>, boot_time) override {
    return no_server;
  }
  result<std::vector<replaced>> replace(std::span<const replacement>, boot_time) override {
    return no_server;
  }
  result<std::vector<row>> lock(std::span<const std::string_view>, boot_time) override {
    return no_server;
  }
  status unlock(std::span<const rewrite>, std::int64_t, boot_time) override { return no_server; }
  status sweep(std::span<const std::string>, boot_time) override { return no_server; }
  result<std::vector<entry>> entries(boot_time) override { return no_server; }
  result<std::vector<entry>> entries_behind(std::string_view, std::size_t, boot_time) override {
    return no_server;
  }
  bool works = true;
};

/// Counts the waits that have begun.
class watched_clock final : public harness::forwarding_clock {
 public:
  using forwarding_clock::forwarding_clock;
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  boot_time until) override {
    ++waits;
    forwarding_clock::wait_until(lock, cv, until);
  }
  std::atomic<int> waits{0};
};

/// Four connections may be made, and the server accepts one. It refuses the next one, and another
/// request comes in the pause that follows.
class full_servers : public testing::Test {
 protected:
  full_servers() {
    EXPECT_TRUE(*one_);
    come(refused_, 3h);
    come(later_, 2h);
    clock_.advance(10ms);
  }
  ~full_servers() override { clock_.advance(4h); }  // nobody waits for longer

  result<link_pool::loan> borrow(std::chrono::nanoseconds patience) {
    return pool_.borrow(clock_.now() + patience);
  }
  static bool is_over(const std::future<bool>& served) {
    return served.wait_for(0s) == std::future_status::ready;
  }
  void come(std::future<bool>& served, std::chrono::nanoseconds patience) {
    const int before = watched_.waits;
    const auto deadline = clock_.now() + patience;
    served = harness::concurrently([this, deadline] { return bool(pool_.borrow(deadline)); });
    harness::eventually("it waits", [&] { return watched_.waits > before || is_over(served); });
  }

  holdfast::testing::fake_clock clock_;
  watched_clock watched_{clock_};
  std::atomic<int> asked_{0};
  std::atomic<bool> full_{true};
  link_pool pool_{[this](auto) -> made {
                    if (++asked_ > 1 && full_) return no_server;
                    return std::unique_ptr<row_link>(std::make_unique<idle_link>());
                  },
                  4, watched_};
  std::unique_ptr<result<link_pool::loan>> one_ =
      std::make_unique<result<link_pool::loan>>(borrow(1h));
  std::future<bool> refused_, later_;
};

TEST_F(full_servers, serve_the_queued_requests_with_a_returned_connection) {
  one_.reset();
  EXPECT_TRUE(refused_.get());
  EXPECT_TRUE(later_.get());
}

// Another client may have closed connections: waiting for one of this session alone could take
// until the request's deadline.
TEST_F(full_servers, let_a_refused_request_try_again) {
  full_ = false;
  clock_.advance(1s);
  EXPECT_NO_THROW(harness::eventually("it is served", [&] { return is_over(refused_); }));
  EXPECT_NO_THROW(harness::eventually("and the next one", [&] { return is_over(later_); }));
}

// The refused request, which has to wait before it tries again, would delay it.
TEST_F(full_servers, let_a_request_whose_connection_broke_connect_before_a_refused_request) {
  full_ = false;
  EXPECT_TRUE(pool_.replace(std::move(**one_), clock_.now()));
  EXPECT_TRUE(refused_.get());
  EXPECT_TRUE(later_.get());
}

/// No memory for the first wait.
class poor_clock final : public harness::forwarding_clock {
 public:
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  boot_time until) override {
    if (!std::exchange(had_none_, true)) throw std::bad_alloc();
    forwarding_clock::wait_until(lock, cv, until);
  }

 private:
  bool had_none_ = false;
};

TEST(link_pools, have_room_again_for_a_refused_request_that_finds_no_memory_to_wait) {
  poor_clock clock;
  bool full = false;
  link_pool pool(
      [&](auto) -> made {
        if (std::exchange(full, true)) return no_server;
        return std::unique_ptr<row_link>(std::make_unique<idle_link>());
      },
      2, clock);
  auto one = std::make_unique<result<link_pool::loan>>(pool.borrow(clock.now() + 1h));
  ASSERT_TRUE(*one);
  EXPECT_THROW((void)pool.borrow(clock.now() + 1h), std::bad_alloc);
  one.reset();
  const auto again = pool.borrow(clock.now());
  EXPECT_TRUE(again);
  full = false;
  EXPECT_TRUE(pool.borrow(clock.now() + 1h)) << "there is room for two";
}

TEST_F(full_servers, keep_no_request_waiting_once_it_broke) {
  static_cast<idle_link&>(***one_).works = false;
  one_.reset();
  EXPECT_FALSE(refused_.get());
  EXPECT_FALSE(later_.get());
}

TEST(link_pools, serve_with_connections_returned_while_the_server_refused) {
  holdfast::testing::fake_clock clock;
  std::optional<link_pool::loan> first;
  int asked = 0;
  link_pool pool(
      [&](auto) -> made {
        if (++asked == 1) return std::unique_ptr<row_link>(std::make_unique<idle_link>());
        first.reset();
        return no_server;
      },
      4, clock);
  first = std::move(*pool.borrow(clock.now()));
  EXPECT_TRUE(pool.borrow(clock.now() + 1h));
  EXPECT_EQ(asked, 2);
}

// An attempt costs a server without room as much as an accepted one.
TEST(link_pools, try_a_full_server_again_after_half_a_second_at_least) {
  holdfast::testing::fake_clock clock;
  std::atomic<int> asked{0};
  link_pool pool(
      [&](auto) -> made {
        if (++asked > 1) return no_server;
        return std::unique_ptr<row_link>(std::make_unique<idle_link>());
      },
      4, clock);
  const auto one = pool.borrow(clock.now());
  ASSERT_TRUE(one);
  auto refused =
      harness::concurrently([&, until = clock.now() + 1h] { return bool(pool.borrow(until)); });
  for (int tries = 2; tries < 7; ++tries) {
    const auto pause = [&] { return clock.next_wake() - clock.now(); };
    harness::eventually("it was refused, and waits",
                        [&] { return asked >= tries && pause() > 0s && pause() <= 1h; });
    EXPECT_EQ(asked, tries);
    EXPECT_GE(pause(), 500ms);
    EXPECT_LE(pause(), 1s);
    clock.advance(std::max<std::chrono::nanoseconds>(pause(), 0s));
  }
  clock.advance(1h);
  EXPECT_FALSE(refused.get());
}

/// A connection that takes time to close: others must not wait for it meanwhile.
class closed_link final : public idle_link {
 public:
  explicit closed_link(int& mutexes_held) : most_(mutexes_held) {}
  ~closed_link() override { most_ = std::max(most_, harness::held_mutexes()); }

 private:
  int& most_;
};

TEST(link_pools, close_connections_without_keeping_other_threads_waiting) {
  holdfast::testing::fake_clock clock;
  int made_so_far = 0, held = 0;
  link_pool pool(
      [&](auto) -> made {
        ++made_so_far;
        return std::unique_ptr<row_link>(std::make_unique<closed_link>(held));
      },
      2, clock);
  {
    const auto first = pool.borrow(clock.now()), second = pool.borrow(clock.now());
    ASSERT_TRUE(first && second);
  }
  pool.drop_idle();
  EXPECT_EQ(held, 0);
  const auto first = pool.borrow(clock.now()), second = pool.borrow(clock.now());
  EXPECT_EQ(made_so_far, 4) << "both were closed";
}

TEST(link_pools, do_not_believe_a_slow_failure_after_another_attempt_succeeded) {
  holdfast::testing::fake_clock clock;
  int attempts = 0;
  link_pool pool(
      [&](auto deadline) -> made {
        if (++attempts > 1) return std::unique_ptr<row_link>();
        EXPECT_TRUE(pool.borrow(deadline));
        clock.advance(600ms);
        return no_server;
      },
      4, clock);
  EXPECT_FALSE(pool.borrow(clock.now() + 1h));
  EXPECT_TRUE(pool.borrow(clock.now()));
}

TEST(link_pools, leave_it_to_one_to_try_while_the_server_is_away) {
  constexpr int threads = 4, in_vain = 3;
  holdfast::testing::fake_clock clock;
  std::latch all_there{threads};
  std::atomic<int> attempts{0}, at_once{0};
  link_pool pool(
      [&](auto) -> made {
        const int mine = ++attempts;
        if (mine == 1) return no_server;
        if (mine > in_vain) return std::unique_ptr<row_link>();
        EXPECT_EQ(++at_once, 1);
        all_there.wait();
        for (int i = 0; i < 1'000; ++i) std::this_thread::yield();  // lets others come, if they do
        --at_once;
        return no_server;
      },
      threads, clock);
  EXPECT_FALSE(pool.borrow(clock.now() + 1h));
  clock.advance(1s);
  std::atomic<int> served{0};
  std::vector<std::jthread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      all_there.count_down();
      while (!pool.borrow(clock.now() + 1h)) clock.advance(1ms);
      ++served;
    });
  }
  while (served < threads) clock.advance(1ms);
}

/// A pool of one connection, which is in use.
class busy_pools : public testing::Test {
 protected:
  /// A request that waits for the connection, and keeps it until it is told to return it.
  struct waiter {
    std::promise<void> enough;
    std::future<bool> served;
  };
  /// Returns once the request waits, which the test sees only if each later one has an earlier
  /// deadline.
  waiter& come(std::chrono::nanoseconds patience, std::function<void()> once_served = {}) {
    waiter& w = waiters_.emplace_back();
    const auto deadline = clock_.now() + patience;
    w.served = harness::concurrently([&w, deadline, once_served, this] {
      const auto mine = pool_.borrow(deadline);
      if (mine && once_served) once_served();
      if (mine) w.enough.get_future().wait();
      return bool(mine);
    });
    harness::eventually("it waits", [&] { return clock_.next_wake() == deadline; });
    return w;
  }

  holdfast::testing::fake_clock clock_;
  std::atomic<bool> answers_{true};
  link_pool pool_{[this](auto) -> made {
                    if (!answers_) return no_server;
                    return std::unique_ptr<row_link>();
                  },
                  1, clock_};
  std::list<waiter> waiters_;
};

// Otherwise others could overtake a waiter until its deadline, however fast the server is.
TEST_F(busy_pools, do_not_serve_a_new_request_before_a_waiting_one) {
  for (int i = 0; i < 100; ++i) {
    auto first = std::make_unique<holdfast::result<link_pool::loan>>(pool_.borrow(clock_.now()));
    ASSERT_TRUE(*first);
    waiter& second = come(1h);
    first.reset();
    EXPECT_FALSE(pool_.borrow(clock_.now())) << "it was given back, but to the one that waits";
    second.enough.set_value();
    ASSERT_TRUE(second.served.get());
  }
}

TEST_F(busy_pools, serve_waiters_in_order_of_arrival) {
  auto first = std::make_unique<holdfast::result<link_pool::loan>>(pool_.borrow(clock_.now()));
  ASSERT_TRUE(*first);
  std::vector<int> order;
  constexpr int waiters = 8;
  for (int i = 0; i < waiters; ++i) {
    come(24h - i * 1h, [&order, i] { order.push_back(i); }).enough.set_value();
  }
  first.reset();
  for (waiter& w : waiters_) EXPECT_TRUE(w.served.get());
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(busy_pools, pass_over_a_waiter_whose_deadline_came) {
  auto first = std::make_unique<holdfast::result<link_pool::loan>>(pool_.borrow(clock_.now()));
  ASSERT_TRUE(*first);
  waiter& patient = come(3h);
  waiter& hasty = come(2h);
  clock_.advance(2h);
  EXPECT_FALSE(hasty.served.get());
  first.reset();
  patient.enough.set_value();
  EXPECT_TRUE(patient.served.get());
}

TEST_F(busy_pools, serve_the_waiters_behind_a_waiter_that_gives_up) {
  auto first = std::make_unique<holdfast::result<link_pool::loan>>(pool_.borrow(clock_.now()));
  ASSERT_TRUE(*first);
  waiter& leads = come(3h);
  const auto deadline = clock_.now() + 4h;
  auto behind = harness::concurrently([&] { return bool(pool_.borrow(deadline)); });
  clock_.advance(3h);
  EXPECT_FALSE(leads.served.get());
  harness::eventually("it waits", [&] { return clock_.next_wake() == deadline; });
  first.reset();
  EXPECT_TRUE(behind.get());
}

struct taken_request final : link_pool::request {};

/// Takes that request only.
auto only(const link_pool::request& wanted) {
  return [&wanted](const link_pool::request& r) noexcept {
    return &r == &wanted ? link_pool::wish::take : link_pool::wish::leave;
  };
}

// Another thread carries it out, and may be in the middle of that.
TEST_F(busy_pools, keep_the_thread_of_a_request_that_was_taken_past_its_deadline) {
  counting_waits clock{clock_};
  link_pool pool{[](auto) -> made { return std::unique_ptr<row_link>(); }, 1, clock};
  auto first = pool.borrow(clock.now());
  ASSERT_TRUE(first);
  taken_request mine;
  auto waiting = harness::concurrently([&, deadline = clock.now() + 1h] {
    const auto got = pool.borrow(deadline, mine);
    return got && !*got;
  });
  harness::eventually("it waits", [&] { return clock.waits == 1; });
  {
    link_pool::taken others{pool};
    pool.take(others, only(mine));
    clock_.advance(1h);
    harness::eventually("it waits for the other thread", [&] { return clock.waits == 2; });
  }
  EXPECT_TRUE(waiting.get());
  first = no_server;
  EXPECT_TRUE(pool.borrow(clock.now())) << "a request that was taken takes no connection";
}

// A connection that comes back calls the first in the queue. If that one is taken before it acts,
// the next one must be called, however long the other thread keeps the taken one.
TEST(link_pools, serve_the_next_request_if_the_first_was_called_and_then_taken) {
  for (int i = 0; i < 200; ++i) {
    counting_waits clock;
    link_pool pool{[](auto) -> made { return std::unique_ptr<row_link>(); }, 2, clock};
    auto kept = pool.borrow(clock.now());
    auto comes_back = std::make_unique<result<link_pool::loan>>(pool.borrow(clock.now()));
    ASSERT_TRUE(kept && *comes_back);
    taken_request mine;
    const auto deadline = clock.now() + 1h;
    const auto waits = [&](int n) {
      harness::eventually("it waits", [&] { return clock.waits >= n; });
    };
    auto first = harness::concurrently([&] { return bool(pool.borrow(deadline, mine)); });
    waits(1);
    auto next = harness::concurrently([&] { return bool(pool.borrow(deadline)); });
    waits(2);
    link_pool::taken others{pool};
    comes_back.reset();
    pool.take(others, only(mine));
    const bool served = next.wait_for(10s) == std::future_status::ready;
    kept = no_server;
    ASSERT_TRUE(served);
  }
}

// They came before those that queued meanwhile.
TEST(link_pools, serve_requests_that_came_back_before_the_others_in_their_order) {
  counting_waits clock;
  link_pool pool{[](auto) -> made { return std::unique_ptr<row_link>(); }, 1, clock};
  auto first = pool.borrow(clock.now());
  ASSERT_TRUE(first);
  const auto deadline = clock.now() + 1h;
  std::vector<int> order;
  taken_request a, b, c;
  const auto borrows = [&](int n, taken_request& mine, bool is_taken) {
    const int before = clock.waits;
    auto waiting = harness::concurrently([&, n, is_taken, deadline] {
      if (is_taken) {
        EXPECT_FALSE(pool.borrow(deadline, mine)->has_value());
      }
      const auto got = pool.borrow(deadline, mine);
      order.push_back(n);  // by one thread at a time, the one with the connection
      return got && got->has_value();
    });
    harness::eventually("it waits", [&] { return clock.waits > before; });
    return waiting;
  };
  std::vector<std::future<bool>> all;
  all.push_back(borrows(1, a, true));
  all.push_back(borrows(2, b, true));
  all.push_back(borrows(3, c, false));
  for (auto* const one : {&a, &b}) {
    const int before = clock.waits;
    {
      link_pool::taken others{pool};
      pool.take(others, only(*one));
    }
    harness::eventually("it waits again", [&] { return clock.waits > before; });
  }
  first = no_server;
  for (auto& one : all) EXPECT_TRUE(one.get());
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

// All other threads wait for the pool's mutex meanwhile.
TEST_F(busy_pools, offer_no_request_to_a_thread_that_has_enough) {
  counting_waits clock{clock_};
  link_pool pool{[](auto) -> made { return std::unique_ptr<row_link>(); }, 1, clock};
  auto kept = pool.borrow(clock.now());
  ASSERT_TRUE(kept);
  taken_request requests[3];
  std::vector<std::future<bool>> waiting;
  for (auto& one : requests) {
    const int before = clock.waits;
    waiting.push_back(harness::concurrently([&, deadline = clock.now() + 1h] {
      const auto got = pool.borrow(deadline, one);
      return got && !*got;
    }));
    harness::eventually("it waits", [&] { return clock.waits > before; });
  }
  int offered = 0;
  {
    link_pool::taken others{pool};
    pool.take(others, [&](auto&) noexcept {
      return ++offered == 1 ? link_pool::wish::take : link_pool::wish::enough;
    });
  }
  EXPECT_EQ(offered, 2);
  EXPECT_TRUE(waiting[0].get()) << "it was taken, and came back";
  kept = no_server;
  EXPECT_FALSE(waiting[1].get());
  EXPECT_FALSE(waiting[2].get());
}

TEST_F(busy_pools, serve_a_request_that_no_thread_takes) {
  auto first = std::make_unique<holdfast::result<link_pool::loan>>(pool_.borrow(clock_.now()));
  ASSERT_TRUE(*first);
  taken_request mine;
  const auto deadline = clock_.now() + 1h;
  auto waiting = harness::concurrently([&] {
    const auto got = pool_.borrow(deadline, mine);
    return got && got->has_value();
  });
  harness::eventually("it waits", [&] { return clock_.next_wake() == deadline; });
  {
    link_pool::taken others{pool_};
    pool_.take(others, [](auto&) noexcept { return link_pool::wish::leave; });
  }
  first.reset();
  EXPECT_TRUE(waiting.get());
}

// It has waited for its turn already, and its deadline is the same.
TEST_F(busy_pools, replace_a_broken_connection_before_they_serve_a_waiter) {
  auto first = pool_.borrow(clock_.now());
  ASSERT_TRUE(first);
  waiter& second = come(1h);
  first = pool_.replace(std::move(*first), clock_.now());
  EXPECT_TRUE(first && !first->used());
  first = no_server;
  second.enough.set_value();
  EXPECT_TRUE(second.served.get());
}

TEST_F(busy_pools, give_back_the_room_of_a_connection_that_could_not_be_replaced) {
  auto first = pool_.borrow(clock_.now());
  ASSERT_TRUE(first);
  answers_ = false;
  first = pool_.replace(std::move(*first), clock_.now());
  EXPECT_FALSE(first);
  clock_.advance(1s);
  answers_ = true;
  EXPECT_TRUE(pool_.borrow(clock_.now()));
}

// Its place in the full pool stays its own.
TEST(link_pools, tell_a_broken_request_the_outcome_of_the_attempt_of_another) {
  holdfast::testing::fake_clock clock;
  std::latch tries{1}, may_end{1}, enough{1};
  std::atomic<int> attempts{0};
  link_pool pool(
      [&](auto) -> made {
        if (++attempts == 2) return no_server;
        if (attempts == 3) tries.count_down(), may_end.wait();
        return std::unique_ptr<row_link>();
      },
      2, clock);
  auto mine = pool.borrow(clock.now());
  ASSERT_TRUE(mine);
  EXPECT_FALSE(pool.borrow(clock.now()));
  clock.advance(1s);
  const auto deadline = clock.now() + 2h;
  auto other = harness::concurrently([&] {
    const auto its = pool.borrow(deadline);
    enough.wait();
    return bool(its);
  });
  tries.wait();
  auto again = harness::concurrently([&] {
    mine = pool.replace(std::move(*mine), deadline);
    return bool(mine);
  });
  harness::eventually("it waits", [&] { return clock.next_wake() == deadline; });
  may_end.count_down();
  const auto served = [&] { return again.wait_for(0s) == std::future_status::ready; };
  EXPECT_NO_THROW(harness::eventually("it is served", served));
  clock.advance(3h);
  EXPECT_TRUE(again.get());
  enough.count_down();
  EXPECT_TRUE(other.get());
  EXPECT_EQ(attempts, 4);
}

/// A clock by which a woken thread continues only when the test lets it.
class held_clock final : public harness::forwarding_clock {
 public:
  explicit held_clock(holdfast::clock& to) : forwarding_clock(to) {}
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& woken,
                  holdfast::boot_time until) override {
    forwarding_clock::wait_until(lock, woken, until);
    lock.unlock();
    held.count_down();
    go_on.wait();
    lock.lock();
  }
  std::latch held{1}, go_on{1};
};

TEST(link_pools, report_to_a_request_that_is_not_next_that_others_waited_longer) {
  holdfast::testing::fake_clock time;
  held_clock clock(time);
  link_pool pool([](auto) -> made { return std::unique_ptr<row_link>(); }, 1, clock);
  auto first = pool.borrow(time.now());
  auto second = harness::concurrently([&] { return bool(pool.borrow(time.now() + 1h)); });
  harness::eventually("it waits", [&] { return time.next_wake() != holdfast::forever; });
  const auto full = pool.borrow(time.now());
  ASSERT_FALSE(full);
  EXPECT_TRUE(full.error().what.starts_with("all 1 connections of this session are in use"));
  first = no_server;
  clock.held.wait();
  const auto behind = pool.borrow(time.now());
  ASSERT_FALSE(behind);
  EXPECT_TRUE(behind.error().what.starts_with("other requests waited longer"))
      << behind.error().what;
  clock.go_on.count_down();
  EXPECT_TRUE(second.get());
}

TEST(link_pools, report_an_absent_server_and_not_that_all_connections_are_in_use) {
  holdfast::testing::fake_clock clock;
  std::latch tries{1}, may_end{1};
  int attempts = 0;
  link_pool pool(
      [&](auto) -> made {
        if (++attempts > 1) tries.count_down(), may_end.wait();
        return no_server;
      },
      1, clock);
  EXPECT_FALSE(pool.borrow(clock.now() + 1h));
  clock.advance(1s);
  auto other = harness::concurrently([&] { return bool(pool.borrow(clock.now() + 1h)); });
  tries.wait();
  const auto behind = pool.borrow(clock.now());
  may_end.count_down();
  EXPECT_FALSE(other.get());
  ASSERT_FALSE(behind);
  EXPECT_EQ(behind.error().what, no_server.what);
}

/// One request tries a server that was away, two wait for its result.
class one_tries : public testing::TestWithParam<bool> {
 protected:
  one_tries() {
    EXPECT_FALSE(pool_.borrow(clock_.now() + 1h));
    clock_.advance(1s);
    come(9h);
    tries_.wait();
    for (const auto patience : {3h, 2h}) {
      const auto until = clock_.now() + patience;
      come(patience);
      harness::eventually("it waits", [&] { return clock_.next_wake() == until; });
    }
  }
  ~one_tries() override { clock_.advance(10h); }  // nobody waits for longer

  void come(std::chrono::nanoseconds patience) {
    served_.push_back(harness::concurrently([this, until = clock_.now() + patience] {
      const auto mine = pool_.borrow(until);
      all_over_.count_down();
      all_over_.wait();
      return bool(mine);
    }));
  }
  made connect() {
    if (++attempts_ == 1) return no_server;
    if (attempts_ == 2) tries_.count_down(), may_end_.wait(), clock_.advance(600ms);
    if (!GetParam()) return no_server;
    return std::unique_ptr<row_link>();
  }

  holdfast::testing::fake_clock clock_;
  std::latch tries_{1}, may_end_{1}, all_over_{3};
  std::atomic<int> attempts_{0};
  link_pool pool_{[this](auto) { return connect(); }, 4, clock_};
  std::vector<std::future<bool>> served_;
};

TEST_P(one_tries, and_all_learn_its_outcome_at_once) {
  may_end_.count_down();
  harness::eventually("all of them know", [&] { return all_over_.try_wait(); });
  for (auto& each : served_) EXPECT_EQ(each.get(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(link_pools, one_tries, testing::Bool());

}  // namespace
}  // namespace sql_test
