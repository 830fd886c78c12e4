#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"

namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::admission;
using holdfast::admitted;
using holdfast::errc;
using holdfast::rate_limiter;
using holdfast::rate_rule;
using holdfast::refused_by;
using holdfast::semaphore;

/// So slow that nothing is refilled while a test runs.
constexpr auto slowly = 24h;

std::vector<rate_rule> rule(std::uint64_t tokens, std::chrono::microseconds per = slowly) {
  return {{.tokens = tokens, .per = per}};
}

class admissions : public suite {
 protected:
  std::uint64_t left() { return tokens_.peek().rules.at(0).remaining; }

  rate_limiter tokens_{here_, "tokens", rule(3)};
  semaphore slots_{here_, name_, 2};
  admission door_{tokens_, slots_};
};

INSTANTIATE_TEST_SUITE_P(stores, admissions, testing::ValuesIn(cells({"admission"})), cell_name);

TEST_P(admissions, an_admission_takes_both_and_returns_only_the_permit) {
  admitted in = door_.try_admit();
  ASSERT_TRUE(in);
  EXPECT_EQ(in.rate.rules.at(0).remaining, 2u);
  EXPECT_GT(in.permit.fence(), 0u);
  EXPECT_EQ(in.permit.state(), holdfast::lease_state::held);
  EXPECT_EQ(holders(), 1u);
  EXPECT_FALSE(in.permit.release());
  EXPECT_EQ(holders(), 0u);
  EXPECT_EQ(left(), 2u);
}

TEST_P(admissions, without_a_permit_no_tokens_are_taken) {
  const auto all = slots_.acquire(2);
  const admitted in = door_.try_admit();
  EXPECT_FALSE(in);
  EXPECT_EQ(in.why, refused_by::permits);
  EXPECT_FALSE(in.permit);
  EXPECT_EQ(left(), 3u);
  EXPECT_EQ(waiters(), 0u);
}

TEST_P(admissions, without_tokens_no_permit_is_taken) {
  ASSERT_TRUE(tokens_.try_take(2));
  const admitted in = door_.try_admit(2);
  EXPECT_FALSE(in);
  EXPECT_EQ(in.why, refused_by::tokens);
  EXPECT_GT(in.rate.wait, 1h) << "enough for Retry-After";
  EXPECT_EQ(in.rate.rules.at(0).remaining, 1u);
  EXPECT_EQ(holders(), 0u);
  EXPECT_TRUE(door_.try_admit(1)) << "a smaller one fits";
}

TEST_P(admissions, a_waiter_enters_when_a_permit_is_free) {
  auto all = slots_.acquire(2);
  admitted in;
  std::thread waits([&] { in = door_.admit(); });
  until_waiting(1);
  EXPECT_EQ(left(), 3u) << "a waiter takes nothing";
  EXPECT_FALSE(all.release());
  waits.join();
  EXPECT_TRUE(in);
  EXPECT_EQ(holders(), 1u);
  EXPECT_EQ(left(), 2u);
}

TEST_P(admissions, a_waiter_that_finds_no_tokens_passes_the_permit_on) {
  auto all = slots_.acquire(2);
  std::stop_source stop;
  admitted in;
  std::thread waits([&] { in = door_.admit(1, {}, stop.get_token()); });
  until_waiting(1);
  ASSERT_TRUE(tokens_.try_take(3));
  EXPECT_FALSE(all.release());
  const auto next = slots_.acquire(2);
  stop.request_stop();
  waits.join();
  EXPECT_FALSE(in);
  EXPECT_EQ(holders(), 1u);
  expect_no_waiters();
}

TEST_P(admissions, a_waiter_for_tokens_enters_when_there_are_some) {
  rate_limiter quick{here_, "quick", rule(1, 2ms)};
  admission door{quick, slots_};
  for (int i = 0; i < 4; ++i) {
    const admitted in = door.admit();
    ASSERT_TRUE(in);
    EXPECT_EQ(holders(), 1u);
  }
}

TEST_P(admissions, tokens_that_come_too_late_are_refused_at_once) {
  ASSERT_TRUE(tokens_.try_take(3));
  const admitted in = door_.admit_for(1h);
  EXPECT_EQ(in.why, refused_by::tokens);
  EXPECT_EQ(holders(), 0u);
  EXPECT_EQ(waiters(), 0u);
}

TEST_P(admissions, a_wait_for_a_permit_ends_at_its_deadline) {
  const auto all = slots_.acquire(2);
  EXPECT_EQ(door_.admit_for(5ms).why, refused_by::permits);
  EXPECT_EQ(door_.admit_until(std::chrono::steady_clock::now() + 5ms).why, refused_by::permits);
  expect_no_waiters();
  EXPECT_EQ(left(), 3u);
}

TEST_P(admissions, many_at_once_never_exceed_the_permits_and_use_all_tokens) {
  std::atomic<int> inside{0}, most{0}, came{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto mine = another();
      rate_limiter twelve{mine, "twelve", rule(12)};
      semaphore slots{mine, name_, 2};
      admission door{twelve, slots};
      for (admitted in = door.try_admit(); in.why != refused_by::tokens; in = door.try_admit()) {
        if (!in) continue;
        const int now = ++inside;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        ++came;
        (void)twelve.peek();  // long enough for another request to come in, if it could
        --inside;
        (void)in.permit.release();
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(came, 12);
  EXPECT_LE(most, 2);
  EXPECT_EQ(holders(), 0u);
}

TEST_P(admissions, an_impossible_request_is_refused_and_changes_nothing) {
  EXPECT_EQ(reason_of([&] { (void)door_.try_admit(4); }), errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { (void)door_.try_admit(0); }), errc::invalid_argument);
  semaphore elsewhere{another(), name_, 2};
  EXPECT_EQ(reason_of([&] { admission(tokens_, elsewhere); }), errc::invalid_argument);
  semaphore same{here_, "tokens", 2};
  EXPECT_EQ(reason_of([&] { admission(tokens_, same); }), errc::invalid_argument);
  semaphore other{here_, name_, 3};
  const auto held = slots_.acquire();
  EXPECT_EQ(reason_of([&] { (void)admission(tokens_, other).try_admit(); }),
            errc::capacity_mismatch);
  EXPECT_EQ(left(), 3u);
}

}  // namespace
}  // namespace conformance
