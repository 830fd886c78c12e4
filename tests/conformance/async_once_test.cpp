#include <future>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"
#include "harness/why.hpp"

// Asynchronous requests that are sent once, or only read: their results equal those of the
// synchronous forms.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using harness::why;
using holdfast::errc;
using holdfast::lease;
using holdfast::rate_limiter;
using holdfast::refused_by;
using holdfast::result;

/// So slow that nothing is refilled while a test runs.
constexpr auto slowly = 24h;

class async_looks : public suite {};
INSTANTIATE_TEST_SUITE_P(stores, async_looks, testing::ValuesIn(cells({"semaphore"})), cell_name);

TEST_P(async_looks, a_session_shows_lists_and_force_releases) {
  holdfast::semaphore permits{here_, name_, 3};
  EXPECT_EQ(async_available(permits).future().get().value(), 3U);
  const lease two = permits.acquire(2);
  EXPECT_EQ(async_available(permits).future().get().value(), 1U);
  EXPECT_EQ(async_names(here_).future().get().value(), here_.names());
  const auto shown = async_show(here_, name_).future().get().value();
  EXPECT_EQ(shown.capacity, 3U);
  EXPECT_EQ(shown.holders.at(0).weight, 2U);
  EXPECT_EQ(async_force_release(here_, name_, "nobody").future().get().value(), 0U);
  EXPECT_EQ(async_force_release(here_, name_).future().get().value(), 1U);
  EXPECT_EQ(async_available(permits).future().get().value(), 3U);
}

TEST_P(async_looks, an_error_is_in_the_result_or_refused_at_once) {
  holdfast::semaphore permits{here_, name_, 3};
  const lease one = permits.acquire(1);
  holdfast::semaphore four{here_, name_, 4};
  EXPECT_EQ(why(async_available(four).future().get()), errc::capacity_mismatch);
  EXPECT_EQ(reason_of([&] { (void)async_show(here_, ""); }), errc::invalid_name);
}

class async_looks_by_id : public suite {};
INSTANTIATE_TEST_SUITE_P(stores, async_looks_by_id,
                         testing::ValuesIn(cells({"expiring_semaphore"})), cell_name);

TEST_P(async_looks_by_id, free_permits_are_counted) {
  holdfast::expiring_semaphore permits{here_, name_, 2};
  const auto mine = permits.acquire(30s);
  EXPECT_EQ(async_available(permits).future().get().value(), 1U);
}

class async_latches : public suite {};
INSTANTIATE_TEST_SUITE_P(stores, async_latches, testing::ValuesIn(cells({"latch"})), cell_name);

TEST_P(async_latches, remaining_arrivals_are_counted_and_a_removed_latch_starts_over) {
  holdfast::latch three{here_, name_, 3};
  EXPECT_EQ(async_remaining(three).future().get().value(), 3U);
  three.count_down(2);
  EXPECT_EQ(async_remaining(three).future().get().value(), 1U);
  holdfast::latch four{here_, name_, 4};
  EXPECT_EQ(why(async_remaining(four).future().get()), errc::capacity_mismatch);
  EXPECT_TRUE(async_remove(three).future().get());
  EXPECT_EQ(async_remaining(four).future().get().value(), 4U);
}

class async_elections : public suite {};
INSTANTIATE_TEST_SUITE_P(stores, async_elections, testing::ValuesIn(cells({"election"})),
                         cell_name);

TEST_P(async_elections, an_observer_without_a_thread_learns_of_each_leader) {
  holdfast::election mine{here_, name_, {.note = "first"}};
  auto stream = mine.observe();
  EXPECT_FALSE(async_current(mine).future().get().value());
  EXPECT_EQ(why(async_next(stream, 0s).future().get()), errc::busy);
  auto first = mine.campaign();
  const auto now = async_current(mine).future().get().value();
  EXPECT_EQ(now.value().note, "first");
  EXPECT_EQ(async_next(stream).future().get().value().term, first.term());
  std::stop_source stop;
  auto next = async_next(stream, {}, stop.get_token()).future();
  stop.request_stop();
  EXPECT_EQ(why(next.get()), errc::cancelled);
  EXPECT_FALSE(first.resign());
  const auto second = mine.campaign();
  EXPECT_EQ(async_next(stream).future().get().value().term, second.term());
}

class async_rates : public suite {
 protected:
  std::uint64_t left() { return tokens_.peek().rules.at(0).remaining; }

  rate_limiter tokens_{here_, "tokens", {{.tokens = 3, .per = slowly}}};
  holdfast::semaphore slots_{here_, name_, 2};
  holdfast::admission door_{tokens_, slots_};
};
INSTANTIATE_TEST_SUITE_P(stores, async_rates, testing::ValuesIn(cells({"rate_limiter"})),
                         cell_name);

TEST_P(async_rates, tokens_can_be_reserved_refunded_and_counted) {
  EXPECT_TRUE(async_peek(tokens_, 3).future().get().value());
  EXPECT_TRUE(async_reserve(tokens_, 3, 0s).future().get().value());
  EXPECT_FALSE(async_reserve(tokens_, 1, 1s).future().get().value()) << "not so soon";
  EXPECT_GT(async_peek(tokens_).future().get().value().wait, 1h);
  EXPECT_GT(async_reserve(tokens_, 1, slowly).future().get().value().wait, 1h);
  EXPECT_TRUE(async_refund(tokens_, 3).future().get());
  EXPECT_EQ(left(), 1U) << "one of the three comes back until the reservation is due";
  EXPECT_EQ(reason_of([&] { (void)async_refund(tokens_, 4); }), errc::invalid_argument);
}

TEST_P(async_rates, a_permit_and_tokens_are_acquired_together_or_refused) {
  const auto in = async_admit(door_, 2).future().get().value();
  EXPECT_TRUE(in);
  EXPECT_EQ(in.permit.state(), holdfast::lease_state::held);
  EXPECT_EQ(left(), 1U);
  EXPECT_EQ(async_admit(door_, 2, {}, 0s).future().get().value().why, refused_by::tokens);
  EXPECT_EQ(async_admit(door_, 2, {}, 1min).future().get().value().why, refused_by::tokens);
  EXPECT_EQ(holders(), 1U);
  const lease other = slots_.acquire();
  EXPECT_EQ(async_admit(door_, 1, {}, 0s).future().get().value().why, refused_by::permits);
  EXPECT_EQ(async_admit(door_, 1, {}, 5ms).future().get().value().why, refused_by::permits);
  expect_no_waiters();
  EXPECT_EQ(left(), 1U);
}

TEST_P(async_rates, a_waiter_for_a_permit_enters_when_one_is_free_or_is_cancelled) {
  lease all = slots_.acquire(2);
  std::stop_source stop;
  auto waits = async_admit(door_).future();
  until_waiting(1);
  auto called_off = async_admit(door_, 1, {}, {}, stop.get_token()).future();
  until_waiting(2);
  stop.request_stop();
  EXPECT_EQ(why(called_off.get()), errc::cancelled);
  EXPECT_EQ(left(), 3U) << "a waiter takes nothing";
  EXPECT_FALSE(all.release());
  EXPECT_TRUE(waits.get().value());
  EXPECT_EQ(left(), 2U);
}

}  // namespace
}  // namespace conformance
