#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "harness/passing_on.hpp"
#include "stage.hpp"

// Asynchronous waits whose deadline passes while their session's thread works for others.
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

TEST(overdue, a_wait_ends_in_time_while_a_thousand_takes_cost_a_round_trip_each) {
  stage s;
  auto o = s.options();
  o.decorate = [clock = s.clock](auto inner) {
    return std::make_unique<slow_tokens>(std::move(inner), clock);
  };
  const auto session = holdfast::open("memory:", o);
  rate_limiter limiter{session, "r", {{.tokens = 1, .per = 1h}}};
  ASSERT_TRUE(limiter.try_take());
  holdfast::mutex m{session, "m"};
  const auto held = m.acquire();
  std::atomic<std::int64_t> took_ms{-1};
  async_acquire(m, 50ms).start(
      [&, began = s.clock->now()](auto) { took_ms = (s.clock->now() - began) / 1ms; });
  constexpr std::size_t takes = 1'000;
  std::atomic<std::size_t> over{0};
  for (std::size_t i = 0; i < takes; ++i) {
    async_take(limiter, 1, {}, 10min).start([&](auto) { ++over; });
  }
  harness::eventually("all end", [&] { return over == takes && took_ms >= 0; });
  EXPECT_LE(took_ms, 150) << "a tenth of a second after the deadline at most";
}

}  // namespace
