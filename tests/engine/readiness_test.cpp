#include "base/readiness.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <thread>

#include "harness/caught_signals.hpp"

// Each driver that reads its own socket uses it to wait.
namespace {

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::boot_time;
using holdfast::base::next_sleep;
using holdfast::base::sleep_until_ready;
using holdfast::base::wait_until_ready;

class readiness : public testing::Test {
 protected:
  ~readiness() override { ::close(fd_); }
  void make_ready() const {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(fd_, &one, sizeof one), ssize_t{sizeof one});
  }
  const int fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

TEST_F(readiness, a_caught_signal_ends_no_wait) {
  const harness::caught_signals meanwhile;
  std::thread other([&] {
    while (harness::caught_signals::count() < 5) std::this_thread::yield();
    make_ready();
  });
  EXPECT_TRUE(wait_until_ready(fd_, POLLIN, holdfast::forever));
  other.join();
}

TEST_F(readiness, a_descriptor_that_is_not_ready_is_awaited_until_the_deadline) {
  const boot_time deadline = boot_clock::now() + 10ms;
  const harness::caught_signals meanwhile;
  EXPECT_FALSE(wait_until_ready(fd_, POLLIN, deadline));
  EXPECT_GE(boot_clock::now(), deadline);
}

TEST_F(readiness, a_ready_descriptor_counts_even_at_the_deadline) {
  EXPECT_FALSE(wait_until_ready(fd_, POLLIN, boot_time::min()));
  make_ready();
  EXPECT_TRUE(wait_until_ready(fd_, POLLIN, boot_time::min()));
}

// If a thread slept in poll() once until a lease ends, it could wake up late by a two-hundredth of
// its sleep.
TEST(next_sleep, ends_in_time_also_if_the_kernel_is_as_late_as_it_may_be) {
  constexpr auto always = 50us;
  for (auto left = 1ns; left < 24h; left += left / 3 + 1ns) {
    const auto length = next_sleep(left);
    EXPECT_GT(length, 0ns) << left.count();
    EXPECT_LE(length + length / 200, left + always) << left.count();
  }
}

TEST(next_sleep, is_one_of_few) {
  const auto sleeps_for = [](std::chrono::nanoseconds left) {
    int sleeps = 0;
    for (; left > 0ns; ++sleeps) left -= next_sleep(left);
    return sleeps;
  };
  EXPECT_EQ(sleeps_for(1ns), 1);
  EXPECT_EQ(sleeps_for(10ms), 1);
  EXPECT_EQ(sleeps_for(250ms), 2);
  EXPECT_EQ(sleeps_for(30s), 3);
  EXPECT_EQ(sleeps_for(24h), 5);
}

TEST_F(readiness, a_sleep_ends_when_one_is_ready_or_its_time_is_over) {
  pollfd one{fd_, POLLIN, 0};
  EXPECT_EQ(sleep_until_ready({&one, 1}, -1ns), 0);
  EXPECT_EQ(sleep_until_ready({&one, 1}, 1ms), 0);
  make_ready();
  EXPECT_EQ(sleep_until_ready({&one, 1}, 24h), 1);
  EXPECT_EQ(one.revents, POLLIN);
}

}  // namespace
