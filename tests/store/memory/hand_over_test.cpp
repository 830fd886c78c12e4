#include <gtest/gtest.h>

#include <holdfast/testing.hpp>

#include "family/state_family.hpp"
#include "store/memory/memory.hpp"

namespace {

using namespace std::chrono_literals;
using namespace holdfast::store;

// Even if the owner that finds an ended lease has no entry there.
TEST(hand_over, a_hand_over_that_a_stranger_causes_is_written_down) {
  holdfast::testing::fake_clock clock;
  const auto store = holdfast::family::over(memory::open_memory("", clock));
  const auto ask = [&](permits_verb verb, std::uint64_t owner, std::chrono::microseconds lease) {
    permits_command c;
    c.verb = verb;
    c.owner = {0, owner};
    c.wait = true;
    c.lease_us = lease.count();
    c.queue_lease_us = 4'000'000;
    c.peer = store->inbox().peer();
    return store->permits("m", c).value();
  };
  ask(permits_verb::acquire, 1, 1s);
  ask(permits_verb::acquire, 2, 30s);
  clock.advance(1s);
  EXPECT_EQ(ask(permits_verb::release, 3, 1s).outcome, permits_outcome::absent);
  clock.advance(2500ms);  // longer than the claim; the queue entry would still last
  EXPECT_EQ(ask(permits_verb::renew, 2, 1s).outcome, permits_outcome::absent)
      << "its claim began with the hand-over, and is over";
}

}  // namespace
