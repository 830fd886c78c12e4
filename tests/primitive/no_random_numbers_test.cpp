#include <gtest/gtest.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "engine/slow_to_answer.hpp"
#include "engine/stage.hpp"
#include "harness/failing.hpp"
#include "session/session_impl.hpp"

// The behaviour where the kernel gives no random numbers, as under a filter of system calls.
namespace {
thread_local bool kernel_refuses = false;
}  // namespace

extern "C" ssize_t getrandom(void* to, std::size_t size, unsigned flags) {
  if (kernel_refuses) return errno = ENOSYS, -1;
  return ::syscall(SYS_getrandom, to, size, flags);
}

namespace {

using namespace engine_test;

// Ids are drawn from a stock, so the stock may be empty at any step of a call.
TEST(without_random_numbers, tokens_of_a_refused_admission_are_refunded_nevertheless) {
  constexpr int stock = 32;
  for (int drawn = 1; drawn <= stock; ++drawn) {
    stage s;
    const auto late = std::make_shared<delay>();
    late->each = 11s;
    auto o = s.options();
    o.decorate = [&](auto inner) {
      return std::make_unique<slow_to_answer>(std::move(inner), late, s.clock);
    };
    const auto session = holdfast::open("memory:", o);
    holdfast::semaphore permits(session, "permits", 1, {.lease = 10s});
    holdfast::rate_limiter tokens(session, "tokens", {{.tokens = 5, .per = 1h}});
    holdfast::admission door(tokens, permits);
    for (int i = 0; i < drawn; ++i) (void)session.impl()->new_owner();
    kernel_refuses = true;
    EXPECT_THROW((void)door.try_admit(), holdfast::error);
    kernel_refuses = false;
    EXPECT_EQ(tokens.peek().rules.at(0).remaining, 5U) << drawn;
  }
}

}  // namespace
