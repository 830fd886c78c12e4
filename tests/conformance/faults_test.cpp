#include <thread>

#include "conformance/cell.hpp"
#include "conformance/events.hpp"
#include "conformance/exclusive.hpp"
#include "conformance/fault_script.hpp"
#include "harness/eventually.hpp"

// Requests and replies that get lost, one at a time: what the library repeats, what it gives up,
// and that nothing is ever held twice or by nobody.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::event_kind;
using holdfast::lease;
using holdfast::lease_state;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

class faults : public suite {
 protected:
  holdfast::session faulty(std::chrono::milliseconds delay = {},
                           std::shared_ptr<holdfast::observer> watcher = {}) const {
    return another({.store_timeout = 1h,
                    .observer = std::move(watcher),
                    .decorate = holdfast::testing::faulty(script_.plan(delay))});
  }
  holdfast::session impatient() const {
    return another({.store_timeout = 200ms, .decorate = holdfast::testing::faulty(script_.plan())});
  }
  std::unique_ptr<exclusive> make(holdfast::session s, holdfast::lock_options o = {}) const {
    return make_exclusive(GetParam().primitive, std::move(s), name_, o);
  }
  fault_script script_;
  std::unique_ptr<exclusive> lock_ = make(faulty());
  std::unique_ptr<exclusive> rival_ = make(another());
};

INSTANTIATE_TEST_SUITE_P(
    stores, faults, testing::ValuesIn(cells({"mutex", "fair_mutex", "shared_mutex", "semaphore"})),
    cell_name);

TEST_P(faults, a_lost_reply_to_acquire_is_repaired_by_a_retry) {
  for (const fault f : {fault::drop_reply, fault::drop_request}) {
    script_.next(verb::acquire, f, 3);
    const lease held = lock_->acquire();
    const auto info = here_.show(name_);
    ASSERT_EQ(info.holders.size(), 1u);
    EXPECT_TRUE(shows_fence(info.holders[0].fence, held));
    EXPECT_EQ(info.holders[0].short_id, held.short_id());
    EXPECT_TRUE(info.waiters.empty());
  }
  EXPECT_EQ(script_.met(), 6);
  expect_free();
}

TEST_P(faults, a_lost_reply_in_the_queue_costs_no_entry_and_adds_none) {
  lease held = rival_->acquire();
  script_.next(verb::acquire, fault::drop_reply, 2);
  std::thread waiter([&] { EXPECT_TRUE(lock_->acquire()); });
  until_waiting(1);
  const auto other = make(another());
  std::thread second([&] { EXPECT_TRUE(other->acquire()); });
  until_waiting(2);
  held = {};
  waiter.join();
  second.join();
  until_free();
}

TEST_P(faults, a_try_whose_reply_was_lost_reports_it_and_holds_nothing) {
  script_.next(verb::acquire, fault::drop_reply);
  try {
    (void)lock_->try_acquire();
    FAIL() << "nothing was thrown";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::unavailable);
    EXPECT_TRUE(e.retryable());
    EXPECT_TRUE(e.outcome_unknown());
  }
  until_free();
  EXPECT_TRUE(now_had([&] { return lock_->try_acquire().has_value(); }));
}

TEST_P(faults, a_lost_reply_to_release_is_reported_and_affects_no_later_holder) {
  lease held = lock_->acquire();
  script_.next(verb::release, fault::drop_reply);
  EXPECT_EQ(held.release(), make_error_code(errc::unavailable));
  EXPECT_FALSE(held);
  const lease next = rival_->acquire();
  // The keeper releases once more; that has happened when it has released something after it.
  const auto marker = make_exclusive(GetParam().primitive, faulty(), "marker");
  lease last = marker->acquire();
  script_.next(verb::release, fault::drop_request);
  (void)last.release();
  harness::eventually("the keeper gives back",
                      [&] { return here_.show("marker").holders.empty(); });
  EXPECT_EQ(holders(), 1u);
  EXPECT_NO_THROW(next.check());
}

TEST_P(faults, a_release_that_did_not_reach_the_store_is_repeated_later) {
  const auto watcher = std::make_shared<events>();
  const auto lock = make(faulty({}, watcher), {.lease = 1h});
  {
    const lease held = lock->acquire();
    script_.all(fault::drop_request);
  }
  EXPECT_EQ(watcher->count(event_kind::release_failed), 1);
  EXPECT_EQ(holders(), 1u);
  script_.all(fault::none);
  EXPECT_TRUE(rival_->acquire());
}

TEST_P(faults, an_unavailable_store_is_distinguished_from_a_held_lock) {
  const auto lock = make(impatient());
  script_.all(fault::drop_request);
  EXPECT_EQ(reason_of([&] { (void)lock->acquire(); }), errc::unavailable);
  EXPECT_EQ(reason_of([&] { (void)lock->try_acquire(); }), errc::unavailable);
  // The limit is long enough that the store counts as away and not as slow, even on a slow machine.
  EXPECT_EQ(reason_of([&] { (void)lock->try_acquire_for(1s); }), errc::unavailable);
  script_.all(fault::none);
  EXPECT_TRUE(lock->acquire());
  until_free();
}

TEST_P(faults, a_waiter_for_an_unavailable_store_can_be_cancelled) {
  script_.all(fault::drop_request);
  std::stop_source stop;
  std::thread waiter([&] {
    EXPECT_EQ(reason_of([&] { (void)lock_->acquire(stop.get_token()); }), errc::cancelled);
  });
  harness::eventually("it asked", [&] { return script_.met() >= 2; });
  stop.request_stop();
  waiter.join();
}

TEST_P(faults, a_failed_renewal_makes_a_lease_suspect_and_the_next_good_one_makes_it_held_again) {
  const auto watcher = std::make_shared<events>();
  const lease held = make(faulty({}, watcher), {.lease = 4s})->acquire();
  const auto fence = held.fence();
  script_.next(verb::renew, fault::drop_request);
  harness::eventually("it is held again",
                      [&] { return watcher->count(event_kind::held_again) == 1; });
  EXPECT_EQ(watcher->count(event_kind::suspect), 1);
  EXPECT_EQ(watcher->count(event_kind::renew_failed), 1);
  EXPECT_EQ(held.state(), lease_state::held);
  EXPECT_EQ(held.fence(), fence);
  EXPECT_FALSE(held.lost().stop_requested());
}

TEST_P(faults, without_renewals_the_loss_is_known_here_before_the_next_grant) {
  const lease held = make(faulty(), {.lease = lease_of(400ms)})->acquire();
  script_.all(fault::drop_request);
  const lease next = rival_->acquire();
  EXPECT_EQ(held.state(), lease_state::lost);
  EXPECT_GT(next.fence(), held.fence());
  harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
}

TEST_P(faults, a_renewal_that_hangs_does_not_delay_the_report_of_the_loss) {
  lease held = make(faulty(1'500ms), {.lease = lease_of(400ms)})->acquire();
  script_.next(verb::renew, fault::delay, 1'000);
  const lease next = rival_->acquire();
  EXPECT_EQ(held.state(), lease_state::lost);
  harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
  // The session ends only after its hanging renewal, which came too late and extended nothing.
  EXPECT_EQ(held.release(), make_error_code(errc::lost));
  EXPECT_NO_THROW(next.check());
  const auto info = here_.show(name_);
  ASSERT_EQ(info.holders.size(), 1u);
  EXPECT_EQ(info.holders[0].short_id, next.short_id());
}

TEST_P(faults, an_extension_fails_while_the_store_is_away_and_the_lease_goes_on) {
  lease held = make(faulty(), {.lease = 1h})->acquire();
  script_.all(fault::drop_request);
  EXPECT_EQ(reason_of([&] { held.extend(); }), errc::unavailable);
  EXPECT_NO_THROW(held.check());
  EXPECT_GT(held.remaining(), 30min);
  EXPECT_FALSE(held.lost().stop_requested());
}

TEST_P(faults, a_lost_notification_costs_the_waiter_a_moment_and_not_the_lease) {
  lease held = make(here_, {.lease = 1h})->acquire();
  script_.next(verb::acquire, fault::drop_notification);
  std::thread waiter([&] { EXPECT_TRUE(lock_->acquire()); });
  until_waiting(1);
  held = {};
  waiter.join();
  EXPECT_EQ(script_.met(), 1);
}

}  // namespace
}  // namespace conformance
