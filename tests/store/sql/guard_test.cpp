#include <gtest/gtest.h>

#include <chrono>
#include <holdfast/error.hpp>
#include <holdfast/guard.hpp>

#include "harness/failing.hpp"

namespace {

using namespace std::chrono_literals;
using harness::outcome_of;
using holdfast::errc;
namespace guard = holdfast::guard;

TEST(guards_of_a_resource, the_fence_is_set_and_compared_in_one_statement) {
  EXPECT_EQ(guard::fenced_update("stock", "n = n - 1", "id = 7 or id = 8", 42),
            "update stock set n = n - 1, fence = 42 where (id = 7 or id = 8) and fence <= 42");
  EXPECT_EQ(guard::fenced_update("s", "n = 1", "true", 7, "last"),
            "update s set n = 1, last = 7 where (true) and last <= 7");
}

TEST(guards_of_a_resource, no_fence_is_no_guard_and_refused) {
  for (const auto& wrong : {outcome_of([] { (void)guard::fenced_update("s", "n = 1", "true", 0); }),
                            outcome_of([] { (void)guard::fenced_update("s", "", "true", 1); }),
                            outcome_of([] { (void)guard::fenced_set("key", "value", 0); })}) {
    EXPECT_EQ(wrong.reason, errc::invalid_argument) << wrong.text;
  }
}

TEST(optimistic_loop, reads_again_before_each_attempt_and_returns_the_replaced_value) {
  int now = 0;
  const int seen = guard::compare_and_update([&] { return ++now; }, [](int at) { return at == 3; },
                                             {.first_pause = 1us});
  EXPECT_EQ(seen, 3);
}

TEST(optimistic_loop, ends_with_busy_after_its_last_attempt) {
  int attempts = 0;
  const guard::retries four{.attempts = 4, .first_pause = 1us, .longest_pause = 2us};
  const auto given_up = outcome_of([&] {
    (void)guard::compare_and_update([] { return 0; }, [&](int) { return ++attempts == 0; }, four);
  });
  EXPECT_EQ(given_up.reason, errc::busy);
  EXPECT_EQ(attempts, 4);
}

TEST(optimistic_loop, passes_on_exceptions_of_its_functions) {
  EXPECT_THROW((void)guard::compare_and_update([]() -> int { throw 5; }, [](int) { return true; }),
               int);
}

}  // namespace
