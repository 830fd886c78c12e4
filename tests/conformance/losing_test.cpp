#include <algorithm>
#include <thread>

#include "conformance/cell.hpp"
#include "conformance/events.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"

// Leases that end, that are kept, and that are taken away.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::event_kind;
using holdfast::lease;
using holdfast::lease_state;
using holdfast::lock_options;

class losing : public suite {
 protected:
  std::unique_ptr<exclusive> make(holdfast::session s, lock_options o = {}) const {
    return make_exclusive(GetParam().primitive, std::move(s), name_, o);
  }
  /// A lease that nobody renews, after it has ended.
  lease ended() const {
    lease held = make(here_, {.lease = lease_of(holdfast::min_lease), .renew = false})->acquire();
    harness::eventually("the lease ends", [&] { return held.state() == lease_state::lost; });
    return held;
  }
  std::unique_ptr<exclusive> rival_ = make(another());
};

INSTANTIATE_TEST_SUITE_P(stores, losing,
                         testing::ValuesIn(cells({"mutex", "lingering_mutex", "fair_mutex",
                                                  "shared_mutex", "semaphore"})),
                         cell_name);

TEST_P(losing, a_lease_without_renewal_expires_and_reports_it) {
  lease held = make(here_, {.lease = lease_of(holdfast::min_lease), .renew = false})->acquire();
  std::atomic<bool> told{false};
  const std::stop_callback on_loss{held.lost(), [&] { told = true; }};
  harness::eventually("the loss is told", [&] { return told.load(); });
  EXPECT_EQ(held.state(), lease_state::lost);
  EXPECT_EQ(held.remaining(), 0ns);
  EXPECT_EQ(reason_of([&] { held.check(); }), errc::lost);
}

TEST_P(losing, the_next_holder_of_an_expired_lock_has_a_greater_fence) {
  const lease old =
      make(here_, {.lease = lease_of(holdfast::min_lease), .renew = false})->acquire();
  const lease next = rival_->acquire();
  EXPECT_GT(next.fence(), old.fence());
  EXPECT_EQ(old.state(), lease_state::lost) << "known here before the store gave it away";
}

TEST_P(losing, releasing_a_lost_lock_does_not_affect_the_new_holder) {
  lease old = ended();
  const lease next = rival_->acquire();
  EXPECT_EQ(old.release(), make_error_code(errc::lost));
  EXPECT_NO_THROW(next.check());
  EXPECT_EQ(holders(), 1u);
  EXPECT_FALSE(make(here_)->try_acquire());
}

TEST_P(losing, destroying_a_lost_lease_does_not_affect_the_new_holder) {
  auto old = std::make_unique<lease>(ended());
  const lease next = rival_->acquire();
  EXPECT_NO_THROW(old.reset());
  EXPECT_EQ(holders(), 1u);
}

TEST_P(losing, extending_a_lost_lease_fails_and_does_not_affect_the_new_holder) {
  lease old = ended();
  const lease next = rival_->acquire();
  const auto left = [&] { return here_.show(name_).holders.at(0).expires_in; };
  const auto until = left();  // unknown for a lock of mode=session
  EXPECT_EQ(reason_of([&] { old.extend(); }), errc::lost);
  EXPECT_EQ(reason_of([&] { old.extend(1h); }), errc::lost);
  ASSERT_EQ(left().has_value(), until.has_value());
  EXPECT_LE(left().value_or(0ms), until.value_or(0ms) + 1ms);
  EXPECT_EQ(old.state(), lease_state::lost);
}

TEST_P(losing, a_callback_registered_after_the_loss_is_called_as_well) {
  const lease old = ended();
  EXPECT_TRUE(old.lost().stop_requested());
  bool told = false;
  const std::stop_callback on_loss{old.lost(), [&] { told = true; }};
  EXPECT_TRUE(told);
}

TEST_P(losing, a_lease_may_be_released_while_a_callback_awaits_its_loss) {
  lease held = make(here_)->acquire();
  std::atomic<bool> told{false};
  const std::stop_callback on_loss{held.lost(), [&] { told = true; }};
  EXPECT_FALSE(held.release());
  EXPECT_FALSE(told);
}

TEST_P(losing, a_listener_that_releases_does_not_harm_the_keeper) {
  auto held = std::make_unique<lease>(
      make(here_, {.lease = lease_of(holdfast::min_lease), .renew = false})->acquire());
  const lease other = make_exclusive(GetParam().primitive, here_, "other")->acquire();
  std::atomic<bool> told{false};
  const std::stop_callback on_loss{held->lost(), [&] {
                                     (void)held->release();
                                     told = true;
                                   }};
  harness::eventually("the loss is told", [&] { return told.load(); });
  EXPECT_NO_THROW(other.check());
}

TEST_P(losing, a_kept_lease_outlives_its_length) {
  const lease held = make(here_, {.lease = lease_of(3s)})->acquire();
  const auto fence = held.fence();
  EXPECT_FALSE(rival_->try_acquire_for(3200ms));
  EXPECT_NO_THROW(held.check());
  EXPECT_EQ(held.fence(), fence);
  EXPECT_FALSE(held.lost().stop_requested());
}

TEST_P(losing, a_lock_that_names_no_lease_time_has_that_of_its_session) {
  auto session = another({.lease = 7s});
  const lease held = make(session)->acquire();
  EXPECT_LE(held.remaining(), 7s);
  EXPECT_GT(held.remaining(), 0s);
  EXPECT_LE(here_.show(name_).holders.at(0).expires_in.value_or(0ms), 7s);
}

TEST_P(losing, no_lease_is_kept_alive_beyond_max_hold) {
  const lease held = make(here_, {.lease = lease_of(200ms), .max_hold = 400ms})->acquire();
  const lease next = rival_->acquire();
  EXPECT_EQ(held.state(), lease_state::lost);
  EXPECT_GT(next.fence(), held.fence());
}

TEST_P(losing, max_hold_ends_the_lock_at_the_store_with_any_lease) {
  const auto asked = std::chrono::steady_clock::now();
  lease held = make(here_, {.lease = 30s, .max_hold = lease_of(300ms)})->acquire();
  try {
    held.extend(20s);
  } catch (const holdfast::error& e) {  // the request came when the hold had ended
    EXPECT_EQ(e.reason(), errc::lost);
    EXPECT_GT(std::chrono::steady_clock::now() - asked, lease_of(300ms) / 2);
  }
  ASSERT_TRUE(rival_->try_acquire_for(10s));
  EXPECT_EQ(held.state(), lease_state::lost);
}

TEST_P(losing, a_lease_can_be_made_longer_and_shorter_while_the_keeper_renews_it) {
  const auto watcher = std::make_shared<events>();
  lease held = make(another({.observer = watcher}), {.lease = 40s})->acquire();
  for (int i = 0; i < 200; ++i) held.extend(10s * (3 + i % 3));
  EXPECT_NO_THROW(held.check());
  EXPECT_LE(held.remaining(), 50s);
  held.extend(4s);
  harness::eventually("the keeper renews it", [&] {
    const auto told = watcher->all();
    const auto short_ones = std::count_if(told.begin(), told.end(), [](const events::one& e) {
      return e.kind == event_kind::renewed && e.margin <= 4s;
    });
    return short_ones > 1;  // one is that extension
  });
  EXPECT_NO_THROW(held.check());
  EXPECT_LE(held.remaining(), 4s);
}

TEST_P(losing, a_force_released_lock_passes_on_and_its_former_holder_learns_of_it) {
  const auto watcher = std::make_shared<events>();
  const lease held = make(another({.observer = watcher}), {.lease = lease_of(1s)})->acquire();
  EXPECT_EQ(here_.force_release(name_), 1u);
  const lease next = rival_->acquire();
  EXPECT_GT(next.fence(), held.fence());
  harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
  EXPECT_EQ(reason_of([&] { held.check(); }), errc::lost);
  harness::eventually("the observer is told",
                      [&] { return watcher->count(event_kind::lost) == 1; });
  EXPECT_NO_THROW(next.check());
}

TEST_P(losing, a_force_release_by_short_id_releases_only_that_hold) {
  lease held = make(here_)->acquire();
  EXPECT_EQ(here_.force_release(name_, "zzzzzzzz"), 0u);
  EXPECT_NO_THROW(held.extend());
  EXPECT_EQ(here_.force_release(name_, held.short_id().substr(0, 7)), 0u) << "a part of one";
  EXPECT_EQ(here_.force_release(name_, held.short_id()), 1u);
  EXPECT_EQ(here_.force_release(name_, held.short_id()), 0u);
  EXPECT_EQ(here_.force_release("nobody:uses:this"), 0u);
}

TEST_P(losing, the_observer_is_notified_of_every_hold_and_every_failed_wait) {
  const auto watcher = std::make_shared<events>();
  const auto lock = make(another({.observer = watcher}));
  lease blocks = rival_->acquire();
  EXPECT_FALSE(lock->try_acquire());
  EXPECT_FALSE(lock->try_acquire_for(1ms));
  blocks = {};
  std::vector<std::pair<event_kind, std::uint64_t>> happened{{event_kind::busy, 0},
                                                             {event_kind::gave_up, 0}};
  for (int i = 0; i < 2; ++i) {
    lease held = lock->acquire();
    happened.emplace_back(event_kind::acquired, held.fence());
    happened.emplace_back(event_kind::released, held.fence());
    (void)held.release();
  }
  std::vector<std::pair<event_kind, std::uint64_t>> told;
  for (const auto& e : watcher->all()) {
    // These two are about the session, and happen at any time.
    if (e.kind == event_kind::paused || e.kind == event_kind::notification_gap) continue;
    EXPECT_EQ(e.name, name_);
    EXPECT_TRUE(e.kind != event_kind::gave_up || e.code == errc::timed_out) << e.code.message();
    told.emplace_back(e.kind, e.fence);
  }
  EXPECT_EQ(told, happened);
}

TEST_P(losing, an_observer_that_throws_does_no_harm) {
  const auto session = another({.observer = std::make_shared<broken_observer>()});
  EXPECT_FALSE(make(session)->acquire().release());
  lease held = make(session, {.lease = lease_of(holdfast::min_lease), .renew = false})->acquire();
  harness::eventually("the loss is told", [&] { return held.lost().stop_requested(); });
  EXPECT_EQ(held.release(), make_error_code(errc::lost));
}

}  // namespace
}  // namespace conformance
