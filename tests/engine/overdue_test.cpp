#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "harness/passing_on.hpp"
#include "stage.hpp"

// Waits without a thread whose deadline passes while their session's thread is at work for others.
namespace {

using namespace engine_test;
using holdfast::rate_limiter;

/// Each command about tokens takes a millisecond of the clock.
class slow_tokens final : public harness::passing_on {
 public:
  slow_tokens(std::unique_ptr<session_store> inner,
              std::shared_ptr<holdfast::testing::fake_clock> clock)
      : passing_on(std::move(inner)), clock_(std::move(clock)) {}
  holdfast::result<holdfast::store::rate_reply> rate(
      std::string_view name, const holdfast::store::rate_command& c) override {
    clock_->advance(1ms);
    return inner_->rate(name, c);
  }

 private:
  const std::shared_ptr<holdfast::testing::fake_clock> clock_;
};

TEST(overdue, a_thousand_takes_of_a_round_trip_each_end_in_time) {
  stage s;
  auto o = s.options();
  o.decorate = [clock = s.clock](auto inner) {
    return std::make_unique<slow_tokens>(std::move(inner), clock);
  };
  const auto session = holdfast::open("memory:", o);
  rate_limiter limiter{session, "r", {{.tokens = 1, .per = 1h}}};
  ASSERT_TRUE(limiter.try_take());
  constexpr std::size_t takes = 1'000;
  std::vector<std::chrono::nanoseconds> took(takes);
  std::atomic<std::size_t> over{0};
  for (auto& mine : took) {
    async_take(limiter, 1, {}, 100ms).start([&, began = s.clock->now()](auto) {
      mine = s.clock->now() - began;
      ++over;
    });
  }
  harness::eventually("all end", [&] { return over == takes; });
  EXPECT_LE(*std::max_element(took.begin(), took.end()), 200ms)
      << "a tenth of a second after the deadline at most";
}

}  // namespace
