#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "conformance/fault_script.hpp"
#include "harness/eventually.hpp"
#include "harness/failing.hpp"

namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::latch;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

class latches : public suite {
 protected:
  latch three_{here_, name_, 3};
  latch rival_{another(), name_, 3};
};

INSTANTIATE_TEST_SUITE_P(stores, latches, testing::ValuesIn(cells({"latch"})), cell_name);

TEST_P(latches, each_counts_down_and_opens_at_zero) {
  EXPECT_EQ(three_.remaining(), 3u);
  EXPECT_FALSE(three_.try_wait());
  three_.count_down();
  EXPECT_EQ(rival_.remaining(), 2u);
  EXPECT_FALSE(rival_.wait_for(10ms));
  rival_.count_down(2);
  EXPECT_EQ(three_.remaining(), 0u);
  EXPECT_TRUE(three_.try_wait());
  EXPECT_TRUE(rival_.wait_for(0ms));
  three_.wait();
}

TEST_P(latches, a_try_sends_one_request_and_reports_a_missing_answer) {
  fault_script script;
  const latch cut{
      another({.store_timeout = 1h, .decorate = holdfast::testing::faulty(script.plan())}), name_,
      3};
  for (const fault f : {fault::drop_request, fault::drop_reply}) {
    script.next(verb::inspect, f);
    EXPECT_EQ(reason_of([&] { (void)cut.try_wait(); }), errc::unavailable);
  }
  EXPECT_EQ(script.met(), 2);
  EXPECT_FALSE(cut.try_wait());
}

TEST_P(latches, all_waiters_go_on_when_the_latch_opens) {
  std::atomic<int> through{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 10; ++i) {
    threads.emplace_back([&, i] {
      (i % 2 == 0 ? three_ : rival_).wait();
      ++through;
    });
  }
  until_waiting(10);
  three_.count_down(2);
  EXPECT_EQ(through, 0);
  rival_.count_down();
  for (auto& t : threads) t.join();
  EXPECT_EQ(through, 10);
  EXPECT_EQ(waiters(), 0u);
}

TEST_P(latches, waiters_that_arrive_go_on_together) {
  std::atomic<int> arrived{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      ++arrived;
      (i % 2 == 0 ? three_ : rival_).arrive_and_wait();
      EXPECT_EQ(arrived, 3);
    });
  }
  for (auto& t : threads) t.join();
}

TEST_P(latches, a_count_of_zero_or_more_than_remains_is_refused) {
  const auto refused = harness::outcome_of([&] { three_.count_down(4); });
  EXPECT_EQ(refused.reason, errc::invalid_argument);
  EXPECT_TRUE(harness::contains(refused.text, "with 3 left to count")) << refused.text;
  EXPECT_TRUE(here_.names().empty());
  three_.count_down(2);
  for (const std::uint32_t bad : {0u, 2u, 0xffffffffu}) {
    EXPECT_EQ(reason_of([&] { three_.count_down(bad); }), errc::invalid_argument) << bad;
  }
  EXPECT_EQ(three_.remaining(), 1u);
  three_.count_down();
  EXPECT_EQ(reason_of([&] { three_.count_down(); }), errc::invalid_argument) << "it is open";
}

TEST_P(latches, a_wait_may_end_by_its_deadline_or_be_cancelled) {
  EXPECT_FALSE(three_.wait_for(10ms));
  EXPECT_FALSE(three_.wait_for(-1h));
  EXPECT_FALSE(three_.wait_until(std::chrono::steady_clock::now() + 10ms));
  std::stop_source stop;
  std::thread waiter([&] { EXPECT_FALSE(rival_.wait(stop.get_token())); });
  until_waiting(1);
  stop.request_stop();
  waiter.join();
  expect_no_waiters();
  EXPECT_FALSE(three_.wait_for(1h, stop.get_token()));
}

TEST_P(latches, another_count_on_its_name_is_refused) {
  three_.count_down();
  latch four{here_, name_, 4};
  EXPECT_EQ(reason_of([&] { four.count_down(); }), errc::capacity_mismatch);
  EXPECT_EQ(reason_of([&] { (void)four.wait_for(1h); }), errc::capacity_mismatch);
  EXPECT_EQ(three_.remaining(), 2u);
}

TEST_P(latches, a_removed_latch_starts_over_for_its_waiters_too) {
  three_.count_down(2);
  std::thread waiter([&] { rival_.wait(); });
  until_waiting(1);
  three_.remove();
  EXPECT_EQ(three_.remaining(), 3u);
  until_waiting(1);
  three_.count_down(3);
  waiter.join();
  three_.remove();
  EXPECT_TRUE(here_.names().empty());
  three_.remove();
}

TEST_P(latches, an_open_latch_stays_open_for_later_waiters) {
  three_.count_down(3);
  latch late{another(), name_, 3};
  late.wait();
  EXPECT_TRUE(late.try_wait());
}

TEST_P(latches, an_unused_latch_is_forgotten) {
  latch brief{here_, "brief", 2, {.keep = 1s}};
  brief.count_down();
  harness::eventually("it is forgotten", [&] { return brief.remaining() == 2; });
  EXPECT_TRUE(here_.names().empty());
  EXPECT_TRUE(holdfast::mutex(here_, "brief").try_lock()) << "the name is free for anything";
}

// The latch without a waiter was used later.
TEST_P(latches, a_latch_that_has_a_waiter_is_not_forgotten) {
  latch brief{here_, "brief", 2, {.keep = 3s}};
  latch waited_for{here_, name_, 2, {.keep = 3s}};
  std::thread waiter([&] { latch{another(), name_, 2, {.keep = 3s}}.wait(); });
  until_waiting(1);
  waited_for.count_down();
  brief.count_down();
  harness::eventually("the other one is forgotten", [&] { return brief.remaining() == 2; });
  EXPECT_EQ(waited_for.remaining(), 1u);
  waited_for.count_down();
  waiter.join();
}

TEST_P(latches, many_arrivals_at_once_are_all_counted) {
  latch many{here_, "many", 200};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      latch mine{another(), "many", 200};
      for (int j = 0; j < 25; ++j) mine.count_down();
    });
  }
  many.wait();
  for (auto& t : threads) t.join();
  EXPECT_EQ(many.remaining(), 0u);
}

TEST_P(latches, impossible_counts_and_keeps_are_refused) {
  for (const std::uint32_t bad : {0u, 1'000'001u, 0xffffffffu}) {
    EXPECT_THROW(latch(here_, "n", bad), holdfast::error) << bad;
  }
  for (const auto bad : {0s, -1s, std::chrono::seconds(24h * 32), std::chrono::seconds::max()}) {
    EXPECT_THROW(latch(here_, "n", 1, {.keep = bad}), holdfast::error) << bad.count();
  }
  EXPECT_NO_THROW(latch(here_, "n", 1'000'000, {.keep = 24h * 31}));
}

}  // namespace
}  // namespace conformance
