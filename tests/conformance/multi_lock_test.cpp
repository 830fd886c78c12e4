#include <array>
#include <future>
#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"
#include "harness/why.hpp"

// All of several names or none, however a store acquires them: in one step, or one after the other,
// under one owner id.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::multi_lease;
using holdfast::multi_lock;
using holdfast::mutex;
using holdfast::session;

/// The members, and another session with a lock for each of them.
class multi_locks : public suite {
 protected:
  static constexpr std::size_t count = 3;
  using names = std::array<std::string, count>;
  using mutexes = std::array<std::unique_ptr<mutex>, count>;

  mutexes make(const session& s) const {
    mutexes made;
    for (std::size_t i = 0; i < count; ++i) made[i] = std::make_unique<mutex>(s, names_[i]);
    return made;
  }
  /// Whether the other session can acquire it; it releases it again.
  bool is_free(std::size_t i) const { return static_cast<bool>(others_[i]->try_acquire()); }
  /// A try that ends in time leaves a call under way; what that call acquires is released then.
  void soon_free(std::size_t i) const {
    harness::eventually(names_[i] + " is free", [&] { return is_free(i); });
  }
  void soon_no_waiters(const std::string& name) const {
    harness::eventually("nobody waits for " + name, [&] { return waiting(name) == 0; });
  }
  void expect_all_free() const {
    for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(is_free(i)) << names_[i];
  }
  std::size_t waiting(const std::string& name) const {
    if (!GetParam().store.lists_waiters) return store_.waiting(name);
    return here_.show(name).waiters.size();
  }
  void until_one_waits(const std::string& name) const {
    harness::eventually("one waits for " + name, [&] { return waiting(name) == 1; });
  }
  void expect_shown(const multi_lease& held) const {
    for (std::size_t i = 0; i < count; ++i) {
      const auto info = here_.show(names_[i]);
      ASSERT_EQ(info.holders.size(), 1U) << names_[i];
      const auto shown = info.holders[0].fence;
      EXPECT_TRUE(shown == held.fences()[i] || (!here_.can().fences && shown == 0)) << names_[i];
    }
  }

  const names names_{"g1", "g2", "g3"};
  session there_ = another();
  const mutexes members_ = make(here_), others_ = make(there_);
  multi_lock all_{*members_[0], *members_[1], *members_[2]};
};

INSTANTIATE_TEST_SUITE_P(stores, multi_locks, testing::ValuesIn(cells({"multi_lock"})), cell_name);

TEST_P(multi_locks, all_members_are_held_and_all_are_released) {
  multi_lease held = all_.acquire();
  EXPECT_NO_THROW(held.check());
  for (std::size_t i = 0; i < count; ++i) EXPECT_FALSE(is_free(i)) << names_[i];
  EXPECT_FALSE(held.release());
  expect_all_free();
}

TEST_P(multi_locks, a_try_that_finds_a_held_member_acquires_no_member) {
  for (std::size_t taken = 0; taken < count; ++taken) {
    const auto other = others_[taken]->acquire();
    EXPECT_FALSE(all_.try_acquire()) << names_[taken] << " is held by another session";
    EXPECT_FALSE(all_.try_acquire_for(5ms)) << names_[taken] << " is held by another session";
    EXPECT_NO_THROW(other.check());
    for (std::size_t i = 0; i < count; ++i) {
      if (i != taken) soon_free(i);
    }
    EXPECT_FALSE(is_free(taken)) << names_[taken];
    soon_no_waiters(names_[taken]);
  }
  expect_all_free();
}

TEST_P(multi_locks, a_wait_keeps_the_earlier_members_and_blocks_at_the_first_held_one) {
  auto second = others_[1]->acquire();
  auto third = others_[2]->acquire();
  auto got = harness::concurrently([&] { return all_.acquire(); });
  until_one_waits(names_[1]);
  EXPECT_FALSE(is_free(0));
  EXPECT_FALSE(second.release());
  until_one_waits(names_[2]);
  EXPECT_FALSE(is_free(1));
  EXPECT_FALSE(third.release());
  const multi_lease held = got.get();
  EXPECT_NO_THROW(held.check());
  for (std::size_t i = 0; i < count; ++i) EXPECT_FALSE(is_free(i)) << names_[i];
}

TEST_P(multi_locks, a_wait_that_is_cancelled_leaves_nothing_behind) {
  const auto taken = others_[1]->acquire();
  std::stop_source stop;
  auto got = harness::concurrently(
      [&] { return reason_of([&] { (void)all_.acquire(stop.get_token()); }); });
  until_one_waits(names_[1]);
  stop.request_stop();
  EXPECT_EQ(got.get(), errc::cancelled);
  soon_no_waiters(names_[1]);
  soon_free(0);
  soon_free(2);
}

TEST_P(multi_locks, waiters_for_single_locks_enter_when_they_are_released) {
  multi_lease held = all_.acquire();
  std::array<std::future<holdfast::lease>, count> singles;
  for (std::size_t i = 0; i < count; ++i) {
    singles[i] = harness::concurrently([&, i] { return others_[i]->acquire(); });
    until_one_waits(names_[i]);
  }
  EXPECT_FALSE(held.release());
  for (auto& one : singles) EXPECT_NO_THROW(one.get().check());
}

TEST_P(multi_locks, each_member_has_the_fence_of_its_own_name_and_it_grows) {
  auto last = all_.acquire().fences();
  ASSERT_EQ(last.size(), count);
  for (int round = 0; round < 3; ++round) {
    // So that the names have not been acquired equally often.
    for (int i = 0; i <= round; ++i) last[1] = others_[1]->acquire().fence();
    const multi_lease held = all_.acquire();
    expect_shown(held);
    const auto now = held.fences();
    for (std::size_t i = 0; i < count; ++i) EXPECT_GT(now[i], last[i]) << names_[i];
    last = now;
  }
}

TEST_P(multi_locks, an_extension_keeps_every_member_and_its_fence) {
  (void)others_[1]->acquire();
  multi_lease held = all_.acquire();
  const auto fences = held.fences();
  held.extend();
  EXPECT_EQ(held.fences(), fences);
  expect_shown(held);
  for (std::size_t i = 0; i < count; ++i) EXPECT_FALSE(is_free(i)) << names_[i];
  EXPECT_FALSE(held.release());
  expect_all_free();
}

TEST_P(multi_locks, without_a_thread_an_extension_keeps_every_member_and_its_fence) {
  multi_lease held = all_.acquire();
  const auto fences = held.fences();
  EXPECT_TRUE(async_extend(held).future().get());
  EXPECT_EQ(held.fences(), fences);
  expect_shown(held);
  for (std::size_t i = 0; i < count; ++i) EXPECT_FALSE(is_free(i)) << names_[i];
  EXPECT_FALSE(held.release());
  expect_all_free();
}

TEST_P(multi_locks, without_a_thread_an_extension_names_the_lost_member) {
  multi_lease held = all_.acquire();
  EXPECT_EQ(there_.force_release(names_[1]), 1U);
  const auto taken = others_[1]->acquire();
  const auto extended = async_extend(held).future().get();
  ASSERT_EQ(harness::why(extended), errc::lost);
  EXPECT_EQ(extended.error().name, names_[1]);
  EXPECT_TRUE(held.lost().stop_requested());
  EXPECT_TRUE(held.release());
  EXPECT_NO_THROW(taken.check());
  EXPECT_TRUE(is_free(0));
  EXPECT_TRUE(is_free(2));
}

TEST_P(multi_locks, the_loss_of_a_member_is_a_loss_of_all_and_a_release_frees_the_others) {
  multi_lease held = all_.acquire();
  EXPECT_EQ(there_.force_release(names_[1]), 1U);
  const auto taken = others_[1]->acquire();
  EXPECT_EQ(reason_of([&] { held.extend(); }), errc::lost);
  EXPECT_TRUE(held.lost().stop_requested());
  EXPECT_EQ(reason_of([&] { held.check(); }), errc::lost);
  EXPECT_TRUE(held.release());
  EXPECT_NO_THROW(taken.check());
  EXPECT_EQ(here_.show(names_[1]).holders.size(), 1U) << "what is another one's was left alone";
  EXPECT_TRUE(is_free(0));
  EXPECT_TRUE(is_free(2));
  EXPECT_FALSE(all_.try_acquire());
}

// Otherwise two could wait for each other: one keeps the second name and waits for the first again,
// the other has the first and waits for the second.
TEST_P(multi_locks, a_waiter_that_loses_a_member_releases_all_and_begins_anew) {
  auto second = others_[1]->acquire();
  const auto takes_all = [](multi_lock& all) { return all.try_acquire_for(20s).has_value(); };
  auto first = harness::concurrently([&] { return takes_all(all_); });
  until_one_waits(names_[1]);
  EXPECT_EQ(there_.force_release(names_[0]), 1U);
  const session third = another();
  const mutexes its = make(third);
  multi_lock others{*its[0], *its[1], *its[2]};
  auto next = harness::concurrently([&] { return takes_all(others); });
  harness::eventually("the first name is taken again", [&] { return !is_free(0); });
  EXPECT_FALSE(second.release());
  EXPECT_TRUE(next.get());
  EXPECT_TRUE(first.get());
}

TEST_P(multi_locks, without_a_thread_a_waiter_that_loses_a_member_begins_anew) {
  auto second = others_[1]->acquire();
  auto got = async_acquire(all_, 20s).future();
  until_one_waits(names_[1]);
  std::optional<holdfast::lease> first;
  while (!first) {  // it may ask at that moment, and have it again
    (void)there_.force_release(names_[0]);
    first = others_[0]->try_acquire();
  }
  EXPECT_FALSE(second.release());
  harness::eventually("the second is given back", [&] { return is_free(1); });
  EXPECT_FALSE(first->release());
  EXPECT_NO_THROW(got.get().value().check());
}

TEST_P(multi_locks, locks_that_name_the_same_in_other_orders_exclude_each_other) {
  constexpr int rounds = 8;
  std::array<int, count> counters{};  // each is guarded by the lock of that number
  const auto add = [&] {
    for (int& c : counters) ++c;
  };
  std::vector<std::thread> threads;
  for (const bool forwards : {true, false}) {
    threads.emplace_back([&, forwards] {
      const auto mine = make(another());
      multi_lock some(forwards ? std::vector<holdfast::multi_member>{*mine[0], *mine[1], *mine[2]}
                               : std::vector<holdfast::multi_member>{*mine[2], *mine[1], *mine[0]});
      for (int i = 0; i < rounds; ++i) {
        const std::lock_guard guard{some};
        add();
      }
    });
  }
  for (std::size_t one = 0; one < count; ++one) {
    threads.emplace_back([&, one] {
      const auto mine = make(another());
      for (int i = 0; i < rounds; ++i) {
        const std::lock_guard guard{*mine[one]};
        ++counters[one];
      }
    });
  }
  for (auto& t : threads) t.join();
  for (const int c : counters) EXPECT_EQ(c, 3 * rounds);
}

TEST_P(multi_locks, a_lease_that_the_store_cannot_keep_is_refused_before_anything_is_taken) {
  const std::chrono::milliseconds step(here_.can().lease_step_ms);
  for (const auto bad : {99ms, 2s + step / 2, std::chrono::seconds(here_.can().max_lease_s) + step,
                         std::chrono::milliseconds::max()}) {
    if (bad == 2s) continue;  // any number of milliseconds
    EXPECT_EQ(reason_of([&] { (void)all_.acquire(bad); }), errc::invalid_argument) << bad.count();
    expect_all_free();
  }
  const auto held = all_.acquire(3s);
  EXPECT_NO_THROW(held.check());
}

TEST_P(multi_locks, without_a_thread_a_wait_acquires_each_held_member_in_turn) {
  auto taken = others_[1]->acquire();
  auto asked = async_acquire(all_).future();
  until_one_waits(names_[1]);
  EXPECT_FALSE(taken.release());
  multi_lease held = asked.get().value();
  EXPECT_NO_THROW(held.check());
  for (std::size_t i = 0; i < count; ++i) EXPECT_FALSE(is_free(i)) << names_[i];
  expect_shown(held);
  (void)async_release(std::move(held)).future().get().value();
  expect_all_free();
}

/// The stores that have them all: a mutex, a shared_mutex, and the permits of a semaphore.
std::vector<cell> cells_with_all_modes() {
  auto all = cells({"multi_lock"});
  std::erase_if(all, [](const cell& c) {
    const auto lacks = [&](const char* what) {
      return std::find(c.store.lacks.begin(), c.store.lacks.end(), what) != c.store.lacks.end();
    };
    return lacks("shared_mutex") || lacks("semaphore");
  });
  return all;
}

class mixed_multi_locks : public suite {
 protected:
  session there_ = another();
  mutex orders_{here_, name_}, other_orders_{there_, name_};
  holdfast::shared_mutex stock_{here_, "stock"}, other_stock_{there_, "stock"};
  holdfast::semaphore licences_{here_, "licences", 3}, other_licences_{there_, "licences", 3};
  multi_lock all_{orders_, shared(stock_), permits(licences_, 2)};
};

INSTANTIATE_TEST_SUITE_P(stores, mixed_multi_locks, testing::ValuesIn(cells_with_all_modes()),
                         cell_name);

TEST_P(mixed_multi_locks, each_member_is_taken_in_its_own_mode) {
  multi_lease held = all_.acquire();
  EXPECT_FALSE(other_orders_.try_acquire());
  EXPECT_FALSE(other_stock_.try_acquire()) << "a writer beside a reader";
  EXPECT_TRUE(other_stock_.try_acquire_shared()) << "a reader beside a reader";
  EXPECT_EQ(other_licences_.available(), 1U);
  EXPECT_FALSE(other_licences_.try_acquire(2));
  EXPECT_TRUE(other_licences_.try_acquire());
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(other_orders_.try_acquire());
  EXPECT_TRUE(other_stock_.try_acquire());
  EXPECT_TRUE(other_licences_.try_acquire(3));
}

TEST_P(mixed_multi_locks, a_member_that_cannot_be_acquired_keeps_all_members_free) {
  const auto nothing_is_taken = [&] {
    EXPECT_FALSE(all_.try_acquire());
    EXPECT_FALSE(all_.try_acquire_for(5ms));
  };
  {
    const auto writes = other_stock_.acquire();
    nothing_is_taken();
    harness::eventually("the mutex is free",
                        [&] { return other_orders_.try_acquire().has_value(); });
    harness::eventually("all permits", [&] { return other_licences_.try_acquire(3).has_value(); });
  }
  {
    const auto uses = other_licences_.acquire(2);
    nothing_is_taken();
    harness::eventually("the mutex is free",
                        [&] { return other_orders_.try_acquire().has_value(); });
    harness::eventually("nobody reads", [&] { return other_stock_.try_acquire().has_value(); });
  }
  harness::eventually("all permits", [&] { return other_licences_.try_acquire(3).has_value(); });
  const auto reads = other_stock_.acquire_shared();
  const auto uses = other_licences_.acquire(1);
  EXPECT_TRUE(all_.try_acquire()) << "beside a reader, and with the permits that are left";
}

TEST_P(mixed_multi_locks, a_writer_of_all_members_enters_after_the_last_reader) {
  multi_lock reads{shared(stock_), permits(licences_, 1)};
  multi_lock reads_too{shared(other_stock_), permits(other_licences_, 1)};
  multi_lock writes{other_stock_, permits(other_licences_, 3)};
  multi_lease one = reads.acquire();
  multi_lease two = reads_too.acquire();
  EXPECT_FALSE(writes.try_acquire());
  EXPECT_FALSE(one.release());
  EXPECT_FALSE(writes.try_acquire());
  auto got = harness::concurrently([&] { return writes.acquire(); });
  harness::eventually("it waits", [&] {
    return here_.show("licences").waiters.size() + here_.show("stock").waiters.size() == 1;
  });
  EXPECT_FALSE(two.release());
  EXPECT_NO_THROW(got.get().check());
}

// ---- both: two locks, of which some programs know only one

class both_locks : public suite {
 protected:
  using all_that_know_both = holdfast::both<mutex, mutex>;

  session there_ = another();
  mutex old_{here_, name_}, new_{here_, "new:" + name_};
  mutex knows_old_{there_, name_}, knows_new_{there_, "new:" + name_};
  all_that_know_both both_{old_, new_};
};

INSTANTIATE_TEST_SUITE_P(stores, both_locks, testing::ValuesIn(cells({"both"})), cell_name);

TEST_P(both_locks, are_held_against_sessions_that_know_one_and_both_are_released) {
  auto held = both_.acquire();
  EXPECT_NO_THROW(held.check());
  EXPECT_FALSE(knows_old_.try_acquire());
  EXPECT_FALSE(knows_new_.try_acquire());
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(knows_old_.try_acquire());
  EXPECT_TRUE(knows_new_.try_acquire());
}

TEST_P(both_locks, are_both_refused_if_either_is_taken) {
  {
    const auto taken = knows_new_.acquire();
    EXPECT_FALSE(both_.try_acquire());
    EXPECT_TRUE(knows_old_.try_acquire());
  }
  const auto taken = knows_old_.acquire();
  EXPECT_FALSE(both_.try_acquire());
  EXPECT_TRUE(knows_new_.try_acquire());
}

TEST_P(both_locks, are_acquired_together_when_the_later_one_is_free) {
  auto taken = knows_new_.acquire();
  auto got = harness::concurrently([&] { return both_.acquire(); });
  harness::eventually("it has the old one", [&] { return !knows_old_.try_acquire(); });
  EXPECT_FALSE(taken.release());
  EXPECT_NO_THROW(got.get().check());
}

}  // namespace
}  // namespace conformance
