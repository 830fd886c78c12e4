#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>

#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"
#include "harness/shared_servers.hpp"
#include "harness/temp_dir.hpp"

// multi_lock over each way in which a store acquires several names: in one transaction (memory,
// sqlite), in one script (redis), one by one (a store behind faults).
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::multi_lease;
using holdfast::multi_lock;
using holdfast::mutex;

int fresh() {
  static std::atomic<int> number{0};
  return ++number;
}

template <class F>
errc reason_of(F f) {
  try {
    f();
  } catch (const holdfast::error& e) {
    return e.reason();
  }
  return errc{};
}

class multi_locks : public testing::TestWithParam<std::string> {
 protected:
  holdfast::session open(holdfast::session_options o = {}) {
    if (GetParam() == "one_by_one") o.decorate = holdfast::testing::faulty({});
    return holdfast::open(url_, std::move(o));
  }
  std::string make_url() {
    const auto id = std::to_string(getpid()) + "-" + std::to_string(fresh());
    if (GetParam() == "sqlite") return "sqlite:" + dir_.file("locks.db");
    if (GetParam() == "redis") return harness::url_of_servers("redis") + "?prefix=multi-" + id;
    return "memory:multi-" + id;
  }
  bool is_free(const std::string& name) { return here_.show(name).holders.empty(); }
  /// A wait that is given up leaves a call under way; what that call acquires is released then (ADR
  /// 94).
  void soon_unused(const std::string& name) {
    harness::eventually(name + " is unused", [&] {
      const auto info = here_.show(name);
      return info.holders.empty() && info.waiters.empty();
    });
  }
  void until_waiting(const std::string& name, std::size_t n) {
    harness::eventually("waiters", [&] { return here_.show(name).waiters.size() == n; });
  }

  harness::temp_dir dir_;
  std::string url_ = make_url();
  holdfast::session here_ = open();
  holdfast::session there_ = open();
  mutex a_{here_, "a"}, b_{here_, "b"};
  holdfast::shared_mutex stock_{here_, "stock"};
  holdfast::semaphore licences_{here_, "licences", 3};
  mutex other_b_{there_, "b"};
};

INSTANTIATE_TEST_SUITE_P(stores, multi_locks,
                         testing::Values("memory", "one_by_one", "sqlite", "redis"),
                         [](const auto& cell) { return cell.param; });

TEST_P(multi_locks, acquires_members_of_all_modes_and_releases_all_of_them) {
  multi_lock all{b_, shared(stock_), permits(licences_, 2), a_};
  auto held = all.acquire();
  EXPECT_EQ(held.state(), holdfast::lease_state::held);
  EXPECT_FALSE(other_b_.try_acquire());
  EXPECT_TRUE(stock_.try_acquire_shared());
  EXPECT_FALSE(stock_.try_acquire());
  EXPECT_EQ(licences_.available(), 1u);
  EXPECT_FALSE(held.release());
  EXPECT_FALSE(held);
  for (const auto* name : {"a", "b", "stock", "licences"}) EXPECT_TRUE(is_free(name)) << name;
}

TEST_P(multi_locks, fences_are_in_the_order_of_the_members_and_grow_for_each) {
  multi_lock all{b_, a_};
  const auto first = all.acquire().fences();
  const auto second = all.acquire().fences();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(here_.show("b").last_fence == 0 || here_.show("b").last_fence == second[0], true);
  EXPECT_GT(second[0], first[0]);
  EXPECT_GT(second[1], first[1]);
}

TEST_P(multi_locks, a_try_that_finds_one_taken_takes_nothing) {
  const auto taken = other_b_.acquire();
  multi_lock all{a_, b_, licences_};
  EXPECT_FALSE(all.try_acquire());
  EXPECT_TRUE(is_free("a"));
  EXPECT_TRUE(is_free("licences"));
  EXPECT_TRUE(here_.show("b").waiters.empty());
}

TEST_P(multi_locks, a_timed_out_wait_leaves_nothing_behind) {
  const auto taken = other_b_.acquire();
  multi_lock all{a_, b_, licences_};
  EXPECT_FALSE(all.try_acquire_for(20ms));
  soon_unused("a");
  until_waiting("b", 0);
}

TEST_P(multi_locks, a_wait_that_is_cancelled_leaves_nothing_behind) {
  mutex c(here_, "c"), other_c(there_, "c");
  const auto taken = other_c.acquire();
  multi_lock all{a_, b_, c};
  std::stop_source stop;
  auto got = harness::concurrently(
      [&] { return reason_of([&] { (void)all.acquire(stop.get_token()); }); });
  until_waiting("c", 1);
  stop.request_stop();
  EXPECT_EQ(got.get(), errc::cancelled);
  soon_unused("a");
  soon_unused("b");
  until_waiting("c", 0);
}

TEST_P(multi_locks, waits_for_each_taken_member_and_keeps_the_earlier_ones) {
  auto taken_b = other_b_.acquire();
  mutex other_c(there_, "c"), c(here_, "c");
  auto taken_c = other_c.acquire();
  multi_lock all{c, b_, a_};
  auto got = harness::concurrently([&] { return all.acquire(); });
  until_waiting("b", 1);
  EXPECT_FALSE(is_free("a"));
  (void)taken_b.release();
  until_waiting("c", 1);
  (void)taken_c.release();
  auto held = got.get();
  EXPECT_NO_THROW(held.check());
  EXPECT_EQ(held.fences().size(), 3u);
}

TEST_P(multi_locks, locks_that_name_the_same_in_other_orders_never_wait_for_each_other) {
  int counter = 0;
  const auto work = [&](holdfast::session s, bool forwards) {
    mutex x(s, "a"), y(s, "b");
    multi_lock both(forwards ? std::vector<holdfast::multi_member>{x, y}
                             : std::vector<holdfast::multi_member>{y, x});
    for (int i = 0; i < 20; ++i) {
      const std::lock_guard guard{both};
      ++counter;
    }
  };
  auto one = harness::concurrently([&] { work(here_, true); });
  auto two = harness::concurrently([&] { work(there_, false); });
  one.get();
  two.get();
  EXPECT_EQ(counter, 40);
}

TEST_P(multi_locks, standard_scoped_lock_takes_it_and_its_members) {
  multi_lock both{a_, b_};
  mutex c(here_, "c");
  {
    const std::scoped_lock guard{both, c};
    EXPECT_FALSE(is_free("c"));
    EXPECT_EQ(reason_of([&] { both.lock(); }), errc::deadlock);
    EXPECT_FALSE(both.try_lock());
    EXPECT_EQ(both.fences().size(), 2u);
    EXPECT_NO_THROW(both.check());
  }
  {
    const std::scoped_lock guard{b_, a_};
    EXPECT_FALSE(both.try_lock());
  }
  EXPECT_EQ(reason_of([&] { both.check(); }), errc::not_owner);
}

TEST_P(multi_locks, a_force_released_member_is_the_loss_of_all) {
  multi_lock all{a_, b_};
  auto held = all.acquire();
  EXPECT_EQ(there_.force_release("b"), 1u);
  EXPECT_EQ(reason_of([&] { held.extend(); }), errc::lost);
  EXPECT_TRUE(held.lost().stop_requested());
  EXPECT_EQ(held.state(), holdfast::lease_state::lost);
  EXPECT_EQ(held.remaining(), 0ns);
  EXPECT_EQ(reason_of([&] { held.check(); }), errc::lost);
  EXPECT_EQ(held.release(), errc::lost);
  EXPECT_TRUE(is_free("a"));
}

TEST_P(multi_locks, a_loss_callback_may_release_at_once) {
  multi_lock all{a_, b_};
  auto held = all.acquire();
  int told = 0;
  std::optional<std::stop_callback<std::function<void()>>> listening;
  listening.emplace(held.lost(), [&] {
    ++told;
    EXPECT_EQ(held.release(), errc::lost);
    listening.reset();
  });
  EXPECT_EQ(there_.force_release("b"), 1u);
  EXPECT_EQ(reason_of([&] { held.extend(); }), errc::lost);
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(held);
  EXPECT_TRUE(is_free("a") && is_free("b"));
}

TEST_P(multi_locks, members_of_two_stores_are_acquired_and_released_as_one) {
  auto elsewhere = holdfast::open("memory:elsewhere-" + std::to_string(fresh()));
  mutex far(elsewhere, "far"), rival(elsewhere, "far");
  multi_lock all{far, a_, b_};
  {
    const auto held = all.acquire();
    EXPECT_FALSE(rival.try_acquire());
    EXPECT_FALSE(other_b_.try_acquire());
  }
  auto taken = rival.acquire();
  EXPECT_FALSE(all.try_acquire());
  EXPECT_FALSE(all.try_acquire_for(20ms));
  soon_unused("a");
  auto got = harness::concurrently([&] { return all.acquire(); });
  harness::eventually("waiter", [&] { return elsewhere.show("far").waiters.size() == 1; });
  (void)taken.release();
  EXPECT_NO_THROW(got.get().check());
}

// A store that refuses has not failed, however short the time for failures is.
TEST(multi_locks_of_three_stores, a_waiter_for_the_second_has_the_first_and_leaves_the_third) {
  const auto open = [](const std::string& number) {
    holdfast::session_options o;
    o.store_timeout = 0ms;
    return holdfast::open("memory:" + number + "-of-three", o);
  };
  auto one = open("1"), two = open("2"), three = open("3");
  mutex first(one, "x"), second(two, "x"), third(three, "x");
  mutex rival_of_first(one, "x"), rival(two, "x"), rival_of_third(three, "x");
  multi_lock all{third, first, second};
  auto taken = rival.acquire();
  EXPECT_FALSE(all.try_acquire_for(5ms));
  auto got = harness::concurrently([&] { return all.acquire(); });
  harness::eventually(
      "waiter", [&] { return two.show("x").waiters.size() == 1 && !rival_of_first.try_acquire(); });
  EXPECT_TRUE(rival_of_third.try_acquire());
  (void)taken.release();
  EXPECT_NO_THROW(got.get().check());
}

TEST_P(multi_locks, impossible_arguments_are_refused_before_any_lock_is_acquired) {
  EXPECT_EQ(reason_of([&] { multi_lock(std::vector<holdfast::multi_member>{}); }),
            errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { multi_lock both({a_, b_, a_}); }), errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { multi_lock both({b_, other_b_}); }), errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { (void)permits(licences_, 4); }), errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { (void)permits(licences_, 0); }), errc::invalid_argument);
  mutex shorter(here_, "shorter", {.lease = 5s});
  EXPECT_EQ(reason_of([&] { multi_lock both({a_, shorter}); }), errc::invalid_argument);
  multi_lock fine{a_, b_};
  EXPECT_EQ(reason_of([&] { (void)fine.acquire(1ms); }), errc::invalid_argument);
}

TEST_P(multi_locks, a_member_of_another_kind_takes_nothing_and_is_named) {
  holdfast::semaphore not_a_mutex(there_, "b", 2);
  const auto taken = not_a_mutex.acquire();
  multi_lock both{a_, b_};
  try {
    (void)both.acquire();
    FAIL();
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::kind_mismatch);
    EXPECT_EQ(e.name(), "b");
  }
  EXPECT_TRUE(is_free("a"));
}

TEST_P(multi_locks, eight_that_are_free_are_one_command) {
  std::vector<std::unique_ptr<mutex>> owned;
  std::vector<holdfast::multi_member> members;
  for (int i = 0; i < 8; ++i) {
    owned.push_back(std::make_unique<mutex>(here_, "m" + std::to_string(i)));
    members.emplace_back(*owned.back());
  }
  multi_lock all(members);
  const auto before = here_.store_operations();
  auto held = all.acquire();
  EXPECT_EQ(here_.store_operations() - before, 1u);
}

}  // namespace
