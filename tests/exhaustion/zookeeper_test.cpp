#ifdef HOLDFAST_WITH_ZOOKEEPER
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "harness/failing.hpp"
#include "harness/failing_threads.hpp"

// ZooKeeper's client ends the program if it cannot start one of its two threads.
namespace exhaustion {
namespace {

using harness::no_thread_after;

TEST(zookeeper_without_threads, reports_an_error_and_the_program_continues) {
  for (const int there_are : {0, 1}) {
    const no_thread_after now(there_are, no_thread_after::how::for_good);
    const auto refused = harness::outcome_of_opening("zookeeper://127.0.0.1:1?connect_timeout=1ms");
    EXPECT_EQ(refused.reason, holdfast::errc::unavailable) << refused.text;
    EXPECT_TRUE(harness::contains(refused.text, "limit of threads")) << refused.text;
  }
}

}  // namespace
}  // namespace exhaustion
#endif
