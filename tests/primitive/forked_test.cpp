#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <holdfast/holdfast.hpp>

#include "harness/failing.hpp"

// What a child of fork() is told before it touches anything that a thread of its parent may have
// left locked, or counted.
namespace {

using namespace std::chrono_literals;
using holdfast::errc;

/// What it says in a child.
errc in_a_child(const std::function<void()>& action) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(static_cast<int>(harness::outcome_of(action).reason));
  int how = 0;
  EXPECT_EQ(::waitpid(pid, &how, 0), pid);
  EXPECT_TRUE(WIFEXITED(how));
  return static_cast<errc>(WEXITSTATUS(how));
}

TEST(a_child, has_none_of_the_tokens_that_its_parent_keeps) {
  const auto s = holdfast::open("memory:");
  holdfast::rate_limiter limiter(s, "api", {{.tokens = 50, .per = 1h}}, {.local_tokens = 50});
  ASSERT_TRUE(limiter.try_take());
  EXPECT_EQ(in_a_child([&] { (void)limiter.try_take(); }), errc::forked);
}

TEST(a_child, holds_nothing_that_a_thread_of_its_parent_had_locked) {
  const auto s = holdfast::open("memory:");
  holdfast::mutex m(s, "m");
  holdfast::recursive_mutex r(s, "r");
  holdfast::shared_mutex rw(s, "rw");
  m.lock(), r.lock(), rw.lock();
  EXPECT_EQ(in_a_child([&] { m.lock(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { (void)m.try_lock(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { r.lock(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { rw.lock(); }), errc::forked);
  m.unlock(), r.unlock(), rw.unlock();
}

TEST(a_child, holds_none_of_several_that_a_thread_of_its_parent_had_locked) {
  const auto s = holdfast::open("memory:");
  holdfast::mutex m(s, "m");
  holdfast::multi_lock all{m};
  holdfast::redlock most{{s}, "most"};
  all.lock(), most.lock();
  EXPECT_EQ(in_a_child([&] { all.lock(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { (void)all.try_lock(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { most.lock(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { (void)most.try_lock(); }), errc::forked);
  all.unlock(), most.unlock();
}

TEST(a_child, is_told_so_by_the_forms_without_a_thread) {
  const auto s = holdfast::open("memory:");
  holdfast::rate_limiter limiter(s, "api", {{.tokens = 50, .per = 1h}});
  EXPECT_EQ(in_a_child([&] {
              auto told = async_take(limiter, 1).future().get();
              if (!told) holdfast::throw_failure(std::move(told.error()));
            }),
            errc::forked);
  holdfast::redlock most{{s}, "most"};
  auto held = most.acquire();
  EXPECT_EQ(in_a_child([&] { (void)async_acquire(most).future().get().value(); }), errc::forked);
  EXPECT_EQ(in_a_child([&] { (void)async_release(std::move(held)).future().get().value(); }),
            errc::forked);
  EXPECT_FALSE(held.release());
}

}  // namespace
