#include <gtest/gtest.h>

#include <atomic>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"
#include "harness/shared_memory.hpp"

// Processes killed and stopped while they take tokens.
namespace {

using namespace fault_test;
using namespace std::chrono_literals;
using harness::child;
using holdfast::rate_limiter;

constexpr std::uint64_t burst = 3'000;

struct tally {
  std::atomic<std::uint64_t> went_through;
};

rate_limiter limiter(const holdfast::session& s) {
  return rate_limiter{s, "api", {{.tokens = burst, .per = 24h * 31}}};
}

// Arguments: URL PAGE. Takes tokens until there are none.
const harness::role taker{"taker", [](const std::vector<std::string>& args) {
                            auto session = holdfast::open(args[0]);
                            harness::shared<tally> page(args[1]);
                            auto api = limiter(session);
                            while (api.try_take()) ++page->went_through;
                            harness::say("none left");
                            return 0;
                          }};

// Argument: URL. Waits for tokens that come in a month.
const harness::role patient{"patient", [](const std::vector<std::string>& args) {
                              auto session = holdfast::open(args[0]);
                              (void)limiter(session).take(burst);
                              return 0;
                            }};

TEST(limits, takers_killed_at_any_moment_let_no_more_through_and_lose_a_token_each_at_most) {
  ground g;
  harness::shared<tally> page(g.page);
  auto session = holdfast::open(g.url);
  constexpr std::uint64_t kills = 6;
  for (std::uint64_t i = 1; i <= kills; ++i) {
    child first("taker", {g.url, g.page});
    child second("taker", {g.url, g.page});
    harness::eventually("they take", [&] { return page->went_through >= i * 50; });
    first.kill();
    second.kill();
  }
  child last("taker", {g.url, g.page});
  EXPECT_EQ(last.expect_line(), "none left");
  const std::uint64_t through = page->went_through;
  // Each token takes a quarter of an hour of a month.
  EXPECT_LE(through, burst + 1);
  EXPECT_GE(through + 2 * kills, burst);
  EXPECT_FALSE(limiter(session).peek(2));
}

TEST(limits, a_stopped_or_killed_waiter_does_not_block_other_requests) {
  ground g;
  auto session = holdfast::open(g.url);
  auto api = limiter(session);
  EXPECT_TRUE(api.try_take(100));
  child waits("patient", {g.url});
  harness::eventually("it has reserved", [&] { return api.peek().rules.at(0).remaining == 0; });
  g.stop(waits);
  EXPECT_FALSE(api.try_take());
  waits.kill();
  EXPECT_FALSE(api.try_take()) << "what it reserved stays reserved";
  api.refund(burst);
  EXPECT_TRUE(api.try_take()) << "until somebody gives it back";
}

}  // namespace
