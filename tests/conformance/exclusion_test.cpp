#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"

// Rules for everything that has one holder at a time: mutex, fair_mutex, shared_mutex as a writer,
// and a semaphore all of whose permits are taken at once. First the rules about sequences of calls.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lease;
using holdfast::lease_state;

class exclusion : public suite {
 protected:
  std::unique_ptr<exclusive> make(holdfast::session s, holdfast::lock_options o = {}) const {
    return make_exclusive(GetParam().primitive, std::move(s), name_, o);
  }
  std::unique_ptr<exclusive> lock_ = make(here_);
  std::unique_ptr<exclusive> rival_ = make(another());
};

INSTANTIATE_TEST_SUITE_P(
    stores, exclusion,
    testing::ValuesIn(cells({"mutex", "fair_mutex", "shared_mutex", "semaphore"})), cell_name);

TEST_P(exclusion, a_free_lock_is_acquired_at_once_and_again_after_its_release) {
  for (int i = 0; i < 3; ++i) {
    lease held = lock_->acquire();
    EXPECT_TRUE(held);
    EXPECT_EQ(held.state(), lease_state::held);
    EXPECT_GT(held.remaining(), 0ns);
    EXPECT_NO_THROW(held.check());
    EXPECT_FALSE(held.release());
    EXPECT_FALSE(held);
  }
}

TEST_P(exclusion, a_held_lock_is_acquired_neither_by_another_session_nor_by_the_same) {
  const lease held = lock_->acquire();
  EXPECT_FALSE(rival_->try_acquire());
  EXPECT_FALSE(lock_->try_acquire());
  EXPECT_FALSE(make(here_)->try_acquire());
}

TEST_P(exclusion, another_name_is_another_lock_also_if_only_the_case_differs) {
  const lease held = lock_->acquire();
  for (const char* other : {"Orders", "ORDERS", "orders ", "orders:1", "order"}) {
    EXPECT_TRUE(make_exclusive(GetParam().primitive, here_, other)->try_acquire()) << other;
  }
}

TEST_P(exclusion, a_destroyed_lease_is_released) {
  {
    const lease held = lock_->acquire();
  }
  EXPECT_TRUE(now_had([&] { return rival_->try_acquire().has_value(); }));
}

TEST_P(exclusion, releasing_an_old_handle_again_does_not_touch_the_new_holder) {
  lease held = lock_->acquire();
  EXPECT_FALSE(held.release());
  const lease next = rival_->acquire();
  EXPECT_FALSE(held.release()) << "an empty lease has nothing to give back";
  EXPECT_FALSE(lock_->try_acquire());
  EXPECT_NO_THROW(next.check());
}

TEST_P(exclusion, a_lease_that_is_assigned_releases_its_former_lock) {
  lease held = lock_->acquire();
  held = lease{};
  EXPECT_TRUE(now_had([&] { return rival_->try_acquire().has_value(); }));
}

TEST_P(exclusion, a_moved_lease_holds_and_the_one_it_came_from_does_not) {
  lease held = lock_->acquire();
  const auto fence = held.fence();
  const lease moved = std::move(held);
  EXPECT_FALSE(held);
  EXPECT_EQ(moved.fence(), fence);
  EXPECT_NO_THROW(moved.check());
  EXPECT_FALSE(rival_->try_acquire());
}

TEST_P(exclusion, a_lease_may_be_given_to_another_thread) {
  lease held = lock_->acquire();
  std::thread([taken = std::move(held)]() mutable { EXPECT_FALSE(taken.release()); }).join();
  EXPECT_TRUE(now_had([&] { return rival_->try_acquire().has_value(); }));
}

TEST_P(exclusion, an_empty_lease_reports_that_and_does_no_harm) {
  lease none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.fence(), 0u);
  EXPECT_EQ(none.remaining(), 0ns);
  EXPECT_EQ(none.short_id(), "");
  EXPECT_THROW(none.check(), holdfast::error);
  EXPECT_THROW(none.extend(), holdfast::error);
  EXPECT_FALSE(none.release());
}

TEST_P(exclusion, a_timed_out_wait_acquires_nothing_and_leaves_nothing_behind) {
  const lease held = lock_->acquire();
  EXPECT_FALSE(rival_->try_acquire_for(30ms));
  EXPECT_FALSE(lock_->try_acquire_for(30ms));
  expect_no_waiters();
  EXPECT_EQ(holders(), 1u);
}

TEST_P(exclusion, zero_and_negative_and_tiny_waits_are_one_try) {
  {
    const lease held = lock_->acquire();
    EXPECT_FALSE(rival_->try_acquire_for(0ns));
    EXPECT_FALSE(rival_->try_acquire_for(-1h));
    EXPECT_FALSE(rival_->try_acquire_for(std::chrono::nanoseconds::min()));
    EXPECT_FALSE(rival_->try_acquire_for(1ns));
    expect_no_waiters();
  }
  EXPECT_TRUE(now_had([&] { return rival_->try_acquire_for(0ns).has_value(); }));
  EXPECT_TRUE(now_had([&] { return rival_->try_acquire_for(-1h).has_value(); }));
  EXPECT_TRUE(now_had(
      [&] { return rival_->try_acquire_for(std::chrono::nanoseconds::min()).has_value(); }));
}

TEST_P(exclusion, the_longest_wait_does_not_overflow_into_a_short_one) {
  lease held = lock_->acquire();
  std::optional<lease> got;
  std::thread waiter([&] { got = rival_->try_acquire_for(std::chrono::nanoseconds::max()); });
  until_waiting(1);
  EXPECT_FALSE(held.release());
  waiter.join();
  EXPECT_TRUE(got);
}

TEST_P(exclusion, fences_grow_from_holder_to_holder_over_all_sessions) {
  std::uint64_t last = 0;
  for (int i = 0; i < 10; ++i) {
    const lease held = i % 2 == 0 ? lock_->acquire() : rival_->acquire();
    EXPECT_GT(held.fence(), last);
    last = held.fence();
  }
}

TEST_P(exclusion, a_release_does_not_report_a_loss) {
  lease held = lock_->acquire();
  const std::stop_token lost = held.lost();
  EXPECT_FALSE(held.release());
  EXPECT_FALSE(lost.stop_requested());
}

TEST_P(exclusion, a_lease_outlives_the_objects_it_came_from) {
  lease held;
  {
    const auto session = another();
    const auto lock = make_exclusive(GetParam().primitive, session, name_);
    held = lock->acquire();
  }
  EXPECT_NO_THROW(held.check());
  EXPECT_FALSE(lock_->try_acquire());
  held.extend();
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(now_had([&] { return lock_->try_acquire().has_value(); }));
}

TEST_P(exclusion, a_lease_can_be_lengthened_and_an_impossible_length_changes_nothing) {
  lease held = lock_->acquire();
  held.extend(1h);
  EXPECT_GT(held.remaining(), 30min);
  for (const auto bad : {-1ms, 1ms, std::chrono::milliseconds(24h * 32),
                         std::chrono::milliseconds::max(), std::chrono::milliseconds::min()}) {
    EXPECT_EQ(reason_of([&] { held.extend(bad); }), errc::invalid_argument) << bad.count();
  }
  EXPECT_GT(held.remaining(), 30min);
  held.extend(10s);
  EXPECT_LE(held.remaining(), 10s);
  EXPECT_GT(held.remaining(), 0ns);
}

TEST_P(exclusion, a_lease_ends_here_a_margin_before_it_ends_at_the_store) {
  lease held = make(here_, {.lease = 100s})->acquire();
  EXPECT_LE(held.remaining(), 99s);
  held.extend(100s);
  EXPECT_LE(held.remaining(), 99s);
  EXPECT_GT(held.remaining(), 90s);
}

TEST_P(exclusion, the_store_is_empty_after_the_last_release) {
  (void)lock_->acquire().release();
  EXPECT_FALSE(rival_->acquire().release());
  expect_free();
  const auto info = here_.show(name_);
  EXPECT_EQ(info.kind, "");
  EXPECT_TRUE(info.holders.empty());
  EXPECT_TRUE(here_.names().empty());
}

}  // namespace
}  // namespace conformance
