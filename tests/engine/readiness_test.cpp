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

TEST_F(readiness, what_is_not_ready_is_waited_for_until_the_time_is_up) {
  const boot_time deadline = boot_clock::now() + 10ms;
  const harness::caught_signals meanwhile;
  EXPECT_FALSE(wait_until_ready(fd_, POLLIN, deadline));
  EXPECT_GE(boot_clock::now(), deadline);
}

TEST_F(readiness, what_is_ready_counts_when_the_time_is_up) {
  EXPECT_FALSE(wait_until_ready(fd_, POLLIN, boot_time::min()));
  make_ready();
  EXPECT_TRUE(wait_until_ready(fd_, POLLIN, boot_time::min()));
}

}  // namespace
