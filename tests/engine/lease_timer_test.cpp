#include "lease/lease_timer.hpp"

#include <gtest/gtest.h>
#include <holdfast/options.hpp>

namespace {

using namespace std::chrono_literals;
using holdfast::boot_time;
using holdfast::lease_state;
using holdfast::engine::lease_timer;
using step = lease_timer::step;

const boot_time start{1h};
const auto margin = start + 30s - lease_timer::sure_until(start, 30s);

lease_timer granted(bool renew = true, boot_time max_hold_until = holdfast::forever) {
  return lease_timer({30s, renew, max_hold_until}, start, start + 30s - margin);
}

TEST(lease_timer, renews_after_a_third_of_the_lease) {
  auto t = granted();
  EXPECT_EQ(t.next(), start + (30s - margin) / 3);
  EXPECT_EQ(t.due(start + 9s), step::none);
  EXPECT_EQ(t.due(start + 10s), step::renew);
  EXPECT_EQ(t.due(start + 10s), step::none) << "one renewal at a time";
}

TEST(lease_timer, counts_the_renewed_lease_from_before_it_was_sent) {
  auto t = granted();
  (void)t.due(start + 10s);
  t.renewed(start + 10s, start + 10s, 30s);
  EXPECT_EQ(t.valid_until(), start + 40s - margin);
  EXPECT_EQ(t.next(), start + 20s);
}

TEST(lease_timer, of_a_hand_over_is_a_claim_until_it_is_renewed) {
  EXPECT_FALSE(granted().is_claim());
  lease_timer t({30s, true, holdfast::forever, true}, start, start + 500ms);
  EXPECT_TRUE(t.is_claim());
  ASSERT_TRUE(t.begin(start + 100ms));
  (void)t.failed(start + 200ms);
  EXPECT_TRUE(t.is_claim());
  ASSERT_TRUE(t.begin(start + 300ms));
  (void)t.renewed(start + 400ms, start + 300ms, 30s);
  EXPECT_FALSE(t.is_claim());
}

TEST(lease_timer, keeps_an_unrenewed_lease_unrenewed_after_a_failed_extension) {
  auto t = granted(false);
  ASSERT_TRUE(t.begin(start + 1s));
  (void)t.failed(start + 2s);
  EXPECT_EQ(t.next(), t.valid_until());
  EXPECT_EQ(t.due(start + 20s), step::none);
  EXPECT_EQ(t.due(start + 30s), step::lost);
}

TEST(lease_timer, reports_the_loss_a_margin_before_the_end_in_any_state_of_the_renewal) {
  auto t = granted();
  ASSERT_EQ(t.due(start + 10s), step::renew);
  EXPECT_EQ(t.due(start + 15s), step::suspect) << "not back for a sixth of the lease";
  EXPECT_EQ(t.state(), lease_state::suspect);
  EXPECT_EQ(t.next(), start + 30s - margin);
  EXPECT_EQ(t.due(start + 30s - margin), step::lost);
  EXPECT_EQ(t.state(), lease_state::lost);
  EXPECT_EQ(t.due(start + 40s), step::none) << "told once";
}

TEST(lease_timer, a_renewal_that_comes_back_after_the_loss_changes_nothing) {
  auto t = granted();
  (void)t.due(start + 10s);
  ASSERT_EQ(t.due(start + 30s), step::lost);
  EXPECT_FALSE(t.renewed(start + 31s, start + 10s, 30s));
  EXPECT_EQ(t.state(), lease_state::lost);
}

TEST(lease_timer, a_renewal_that_comes_after_the_end_changes_nothing) {
  auto t = granted();
  (void)t.due(start + 10s);
  EXPECT_FALSE(t.renewed(start + 30s - margin, start + 10s, 30s));
  EXPECT_EQ(t.valid_until(), start + 30s - margin);
  EXPECT_EQ(t.due(start + 30s - margin), step::lost);
}

TEST(lease_timer, runs_one_renewal_at_a_time) {
  auto t = granted();
  EXPECT_TRUE(t.begin(start));
  EXPECT_FALSE(t.begin(start));
  EXPECT_EQ(t.due(start + 12s), step::suspect);
  t.renewed(start + 12s, start + 12s, 30s);
  EXPECT_TRUE(t.begin(start + 13s));
}

TEST(lease_timer, a_failed_renewal_makes_the_lease_suspect_and_is_repeated_soon) {
  auto t = granted();
  (void)t.due(start + 10s);
  EXPECT_TRUE(t.failed(start + 11s));
  EXPECT_EQ(t.state(), lease_state::suspect);
  EXPECT_EQ(t.next(), start + 12s) << "a thirtieth of the lease";
  EXPECT_EQ(t.due(start + 12s), step::renew);
  EXPECT_FALSE(t.failed(start + 12s)) << "it was suspect before";
}

TEST(lease_timer, a_late_success_of_a_renewal_makes_the_lease_held_again) {
  auto t = granted();
  (void)t.due(start + 10s);
  t.failed(start + 11s);
  (void)t.due(start + 12s);
  EXPECT_TRUE(t.renewed(start + 12s, start + 12s, 30s));
  EXPECT_EQ(t.state(), lease_state::held);
}

TEST(lease_timer, a_lease_without_renewal_expires) {
  auto t = granted(false);
  EXPECT_EQ(t.next(), start + 30s - margin);
  EXPECT_EQ(t.due(start + 30s), step::lost);
}

TEST(lease_timer, is_never_held_beyond_max_hold) {
  auto t = granted(true, start + 35s);
  (void)t.due(start + 10s);
  t.renewed(start + 10s, start + 10s, 30s);
  EXPECT_EQ(t.valid_until(), start + 35s);
  (void)t.due(start + 20s);
  t.renewed(start + 20s, start + 20s, 30s);
  EXPECT_EQ(t.due(start + 35s), step::lost);
}

TEST(lease_timer, a_lease_near_max_hold_is_renewed_as_often_as_before) {
  auto t = granted(true, start + 35s);
  EXPECT_FALSE(t.at_max_hold());
  (void)t.due(start + 10s);
  t.renewed(start + 10s, start + 10s, 30s);
  EXPECT_TRUE(t.at_max_hold());
  EXPECT_EQ(t.next(), start + 20s);
  ASSERT_EQ(t.due(start + 20s), step::renew);
  t.renewed(start + 20s, start + 20s, 15200ms);
  EXPECT_EQ(t.next(), start + 30s) << "not sooner, because less is asked for";
  ASSERT_EQ(t.due(start + 30s), step::renew);
  t.failed(start + 30s);
  EXPECT_EQ(t.state(), lease_state::suspect);
  const auto again = t.next();
  ASSERT_EQ(t.due(again), step::renew);
  EXPECT_TRUE(t.renewed(again, again, 5s)) << "held again";
}

TEST(lease_timer, a_requested_lease_lasts_at_least_the_wanted_time_and_hardly_longer) {
  for (const std::chrono::nanoseconds sure : {150ms, 1'000ms, 1'001ms, 59'999ms}) {
    const auto lease = lease_timer::lasting(sure, 1ms);
    EXPECT_GE(lease_timer::sure_until(start, lease), start + sure);
    EXPECT_LE(lease, sure + sure / 90 + 4ms);
  }
  EXPECT_EQ(lease_timer::lasting(-1h, 1ms), holdfast::min_lease);
  EXPECT_EQ(lease_timer::lasting(1ms, 1s), 1s);
  EXPECT_EQ(lease_timer::lasting(1s, 1s), 2s);
  EXPECT_EQ(lease_timer::lasting(holdfast::saturated_nanoseconds(std::chrono::hours::max()), 1ms),
            holdfast::max_lease);
}

TEST(lease_timer, a_grant_to_claim_is_renewed_at_a_third_of_the_remaining_time) {
  lease_timer t({30s, true, holdfast::forever}, start, start + 480ms);
  EXPECT_EQ(t.next(), start + 160ms);
  ASSERT_EQ(t.due(start + 160ms), step::renew);
  t.failed(start + 170ms);
  EXPECT_LE(t.next(), start + 300ms) << "the next try comes before the claim is over";
}

}  // namespace
