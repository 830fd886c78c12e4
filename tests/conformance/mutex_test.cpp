#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"

// Rules of mutex and fair_mutex beyond those of all lockables.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lease;

class mutexes : public suite {
 protected:
  std::unique_ptr<holdfast::mutex> make(holdfast::session s, holdfast::lock_options o = {}) const {
    if (GetParam().primitive == "mutex")
      return std::make_unique<holdfast::mutex>(s, name_, of_row(o));
    return std::make_unique<holdfast::fair_mutex>(s, name_, of_row(o));
  }
  std::unique_ptr<holdfast::mutex> lock_ = make(here_);
  std::unique_ptr<holdfast::mutex> rival_ = make(another());
};

INSTANTIATE_TEST_SUITE_P(stores, mutexes, testing::ValuesIn(cells({"mutex", "fair_mutex"})),
                         cell_name);

TEST_P(mutexes, the_holding_thread_s_second_lock_is_a_deadlock_and_is_refused) {
  lock_->lock();
  EXPECT_EQ(reason_of([&] { lock_->lock(); }), errc::deadlock);
  EXPECT_FALSE(lock_->try_lock());
  EXPECT_NO_THROW(lock_->check());
  lock_->unlock();
  EXPECT_TRUE(now_had([&] { return rival_->try_lock(); }));
}

TEST_P(mutexes, with_lock_returns_the_result_and_releases) {
  EXPECT_EQ(holdfast::with_lock(*lock_, [] { return 42; }), 42);
  int changed = 0;
  holdfast::with_lock(*lock_, [&](lease& held) {
    EXPECT_GT(held.fence(), 0u);
    EXPECT_FALSE(rival_->try_lock());
    changed = 7;
  });
  EXPECT_EQ(changed, 7);
  int& same = holdfast::with_lock(*lock_, [&]() -> int& { return changed; });
  EXPECT_EQ(&same, &changed);
  const auto unique = holdfast::with_lock(*lock_, [] { return std::make_unique<int>(3); });
  EXPECT_EQ(*unique, 3);
  EXPECT_TRUE(now_had([&] { return rival_->try_lock(); }));
}

TEST_P(mutexes, with_lock_passes_on_an_exception_and_releases) {
  EXPECT_THROW(holdfast::with_lock(*lock_, []() -> int { throw std::out_of_range("work"); }),
               std::out_of_range);
  EXPECT_TRUE(now_had([&] { return rival_->try_lock(); }));
}

TEST_P(mutexes, with_lock_does_not_let_a_loss_be_overlooked) {
  const auto lock = make(here_, {.lease = lease_of(holdfast::min_lease), .renew = false});
  const auto work = [&](lease& held) {
    harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
    return 1;
  };
  EXPECT_EQ(reason_of([&] { (void)holdfast::with_lock(*lock, work); }), errc::lost);
  EXPECT_TRUE(now_had([&] { return rival_->try_lock(); }));
}

TEST_P(mutexes, a_wrapped_function_runs_under_the_lock_with_its_arguments_and_result) {
  auto add = lock_->wrap([&](int a, int b) {
    EXPECT_FALSE(rival_->try_lock());
    EXPECT_GT(lock_->fence(), 0u);
    return a + b;
  });
  EXPECT_EQ(add(2, 3), 5);
  EXPECT_EQ(add(4, 5), 9);
  EXPECT_TRUE(now_had([&] { return rival_->try_lock(); }));
}

TEST_P(mutexes, mutex_kinds_share_a_name_and_exclude_each_other) {
  holdfast::mutex plain{here_, "shared:name", of_row()};
  std::optional<holdfast::fair_mutex> fair;
  if (here_.can().fair) fair.emplace(another(), "shared:name");
  holdfast::recursive_mutex recursive{another(), "shared:name", of_row()};
  plain.lock();
  EXPECT_FALSE(fair && fair->try_lock());
  EXPECT_FALSE(recursive.try_lock());
  plain.unlock();
  EXPECT_TRUE(now_had([&] { return recursive.try_lock(); }));
  EXPECT_FALSE(plain.try_lock());
  EXPECT_FALSE(fair && fair->try_lock());
}

TEST_P(mutexes, a_lease_and_a_std_hold_of_one_object_exclude_each_other) {
  const lease held = lock_->acquire();
  EXPECT_FALSE(lock_->try_lock());
  EXPECT_EQ(lock_->fence(), 0u);
}

TEST_P(mutexes, a_free_mutex_costs_one_round_trip_to_acquire_and_one_to_release) {
  holdfast::mutex lock{here_, "cheap", of_row()};
  const auto before = here_.store_operations();
  for (int i = 0; i < 10; ++i) {
    lock.lock();
    lock.unlock();
  }
  EXPECT_EQ(here_.store_operations() - before, 20u);
}

}  // namespace
}  // namespace conformance
