#include <gtest/gtest.h>

#include <chrono>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <memory>
#include <thread>

#include "exhaustion/failing_memory.hpp"
#include "harness/eventually.hpp"
#include "session/session_impl.hpp"

// A lock that a process holds goes from thread to thread without an allocation: none of these
// threads has any memory left.
namespace exhaustion {
namespace {

using namespace std::chrono_literals;
using holdfast::mutex;

struct idle_path : testing::Test {
  std::shared_ptr<holdfast::testing::fake_clock> clock =
      std::make_shared<holdfast::testing::fake_clock>();
  holdfast::session session = holdfast::open("memory:", {.clock = clock});
  mutex kept{session, "kept", {.local_time = 1h, .linger = 1h}};
  void SetUp() override { kept.lock(), kept.unlock(); }
};

TEST_F(idle_path, of_an_idle_lock_allocates_nothing) {
  const auto before = session.store_operations();
  {
    const no_memory_after now(0, of::this_thread, how::for_good);
    for (int i = 0; i < 100; ++i) kept.lock(), kept.unlock();
    EXPECT_FALSE(no_memory_after::failed());
  }
  EXPECT_EQ(session.store_operations(), before);
}

TEST_F(idle_path, of_a_lease_that_is_taken_and_released_allocates_nothing) {
  const no_memory_after now(0, of::this_thread, how::for_good);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(kept.acquire().release());
  EXPECT_FALSE(no_memory_after::failed());
}

TEST_F(idle_path, of_a_lock_that_another_thread_has_passed_on_allocates_nothing) {
  const auto& queue = session.impl()->local_queue_of("kept");
  const auto before = session.store_operations();
  kept.lock();
  bool failed = true;
  std::thread next([&] { kept.lock(), kept.unlock(); });
  harness::eventually("it waits", [&] { return queue->waiting() == 1; });
  {
    const no_memory_after now(0, of::everybody, how::for_good);
    kept.unlock();
    const enough_memory here;
    next.join();
    failed = no_memory_after::failed();
  }
  EXPECT_FALSE(failed);
  EXPECT_EQ(session.store_operations(), before);
}

}  // namespace
}  // namespace exhaustion
