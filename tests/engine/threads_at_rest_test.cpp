#include "harness/threads_at_rest.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <holdfast/testing.hpp>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

/// Works also on a machine so loaded that a second is not enough.
bool rest_in_the_end() {
  for (int i = 0; i < 60; ++i) {
    if (harness::until_threads_rest()) return true;
  }
  return false;
}

TEST(threads_at_rest, are_all_asleep) {
  std::mutex mutex;
  std::condition_variable cv;
  bool over = false;
  std::vector<std::jthread> all;
  for (int i = 0; i < 5; ++i) {
    all.emplace_back([&] {
      std::unique_lock lock{mutex};
      cv.wait(lock, [&] { return over; });
    });
  }
  EXPECT_TRUE(rest_in_the_end());
  {
    const std::lock_guard guard{mutex};
    over = true;
  }
  cv.notify_all();
}

TEST(threads_at_rest, are_not_at_rest_while_one_computes) {
  std::atomic<bool> over{false};
  const std::jthread busy([&] {
    while (!over) {
    }
  });
  EXPECT_FALSE(harness::until_threads_rest());
  over = true;
}

// Each turn the thread wakes up by the clock and computes for longer than a check of it takes.
TEST(threads_at_rest, have_finished_the_work_of_their_wake_up) {
  holdfast::testing::fake_clock clock;
  std::atomic<int> done{0};
  std::atomic<bool> over{false};
  const std::jthread works([&] {
    std::mutex mutex;
    std::condition_variable cv;
    while (!over) {
      const auto due = clock.now() + 1s;
      std::unique_lock lock{mutex};
      while (clock.now() < due) clock.wait_until(lock, cv, due);
      const auto until = std::chrono::steady_clock::now() + 3ms;
      while (std::chrono::steady_clock::now() < until) {
      }
      ++done;
    }
  });
  EXPECT_TRUE(rest_in_the_end()) << "it waits for the first time";
  for (int turn = 0; turn < 20; ++turn) {
    clock.advance(1s);
    EXPECT_TRUE(rest_in_the_end());
    EXPECT_EQ(done, turn + 1);
  }
  over = true;
  clock.advance(1s);
}

}  // namespace
