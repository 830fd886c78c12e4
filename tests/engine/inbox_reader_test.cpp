#include <gtest/gtest.h>

#include <thread>

#include "stage.hpp"

// One thread of a session reads its inbox for all waiters. The clock stands still, so no waiter
// polls.
namespace {

using namespace engine_test;
using holdfast::fair_mutex;

TEST(inbox_reader, that_got_its_notification_passes_the_reading_on) {
  stage s("memory:readers");
  auto other = holdfast::open("memory:readers", {.clock = s.clock});
  auto a = fair_mutex(other, "a").acquire(), b = fair_mutex(other, "b").acquire();
  fair_mutex here_a{s.session, "a"}, here_b{s.session, "b"};
  std::atomic<int> acquired{0};
  const auto wait_for = [&](fair_mutex& m) {
    std::jthread t([&](const std::stop_token& stop) {
      if (const auto mine = m.try_acquire_for(1h, stop)) ++acquired;
    });
    s.await_waiters(m.name(), 1);
    return t;
  };
  const auto reader = wait_for(here_a), next = wait_for(here_b);
  EXPECT_FALSE(a.release());
  harness::eventually("the reader has its own", [&] { return acquired == 1; });
  EXPECT_FALSE(b.release());
  harness::eventually("the next hears of its own", [&] { return acquired == 2; });
}

}  // namespace
