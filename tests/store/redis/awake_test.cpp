#include "store/redis/awake.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace {

using namespace std::chrono_literals;
using holdfast::boot_time;
using holdfast::store::redis::awake;
using holdfast::store::redis::io;

/// A server that answers after so many reads, each of which takes a microsecond.
class awake_for : public testing::Test {
 protected:
  bool answered_after(int reads) {
    int left = reads;
    const auto found = thread_.wait(
        [&] {
          ++reads_;
          now_ += 1us;
          return holdfast::store::redis::io_result{left-- > 0 ? io::again : io::done};
        },
        [&] { return now_; }, 50us);
    return found.status == io::done;
  }

  awake thread_;
  boot_time now_{};
  int reads_ = 0;
};

constexpr int too_many = 1'000;

TEST_F(awake_for, a_server_that_answers_soon) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(answered_after(20));
}

TEST_F(awake_for, a_slow_server_only_rarely) {
  for (int i = 0; i < 1'000; ++i) EXPECT_FALSE(answered_after(too_many));
  EXPECT_LT(reads_, 12 * 52);
}

TEST_F(awake_for, a_server_that_answers_at_once_or_only_a_thread_that_sleeps_only_rarely) {
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_FALSE(answered_after(too_many));
    (void)answered_after(0);
  }
  EXPECT_LT(reads_, 20 * 52);
}

TEST_F(awake_for, a_server_that_has_become_fast_again) {
  EXPECT_FALSE(answered_after(too_many));
  int slept = 0;
  while (!answered_after(20)) ++slept;
  EXPECT_EQ(slept, 2);
  EXPECT_FALSE(answered_after(too_many));
  while (!answered_after(20)) ++slept;
  EXPECT_EQ(slept, 4) << "the answer after the first wait has made up for it";
}

}  // namespace
