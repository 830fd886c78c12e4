#include "base/reconnect_pause.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/time_share.hpp"

// When a broken connection may be made again.
namespace {

using namespace std::chrono_literals;
using holdfast::boot_time;
using holdfast::base::reconnect_pause;

constexpr boot_time now{1h};

void expect_pause(const reconnect_pause& p, std::chrono::nanoseconds whole) {
  EXPECT_GE(p.until() - now, whole / 2);
  EXPECT_LE(p.until() - now, whole);
}

TEST(reconnect_pause, is_zero_after_a_useful_connection) {
  reconnect_pause p;
  EXPECT_LT(p.until(), now);
  p.begin(true, now);
  EXPECT_EQ(p.until(), now);
}

TEST(reconnect_pause, doubles_from_failure_to_failure_up_to_a_second) {
  reconnect_pause p;
  for (auto whole = 5ms; whole < 1s; whole *= 2) {
    p.begin(false, now);
    expect_pause(p, whole);
  }
  for (int more = 0; more < 3; ++more) {
    p.begin(false, now);
    expect_pause(p, 1s);
  }
  p.begin(true, now);
  EXPECT_EQ(p.until(), now);
  p.begin(false, now);
  expect_pause(p, 5ms);
}

TEST(reconnect_pause, differs_from_client_to_client) {
  std::set<boot_time> seen;
  for (int client = 0; client < 20; ++client) {
    reconnect_pause p;
    p.begin(false, now);
    seen.insert(p.until());
  }
  EXPECT_GT(seen.size(), 10U);
}

TEST(time_share, of_silent_addresses_leaves_time_for_the_last_address) {
  using holdfast::base::share_until;
  constexpr auto until = now + 6s;
  EXPECT_EQ(share_until(until, 3, now), now + 2s);
  EXPECT_EQ(share_until(until, 2, now + 2s), now + 4s);
  EXPECT_EQ(share_until(until, 1, now + 4s), until);
  EXPECT_EQ(share_until(until, 1, until + 1s), until + 1s) << "no time is left";
}

}  // namespace
