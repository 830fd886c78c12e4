#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/both.hpp>
#include <holdfast/holdfast.hpp>
#include <thread>

#include "harness/detached_task.hpp"
#include "harness/eventually.hpp"

// A coroutine that retries again and again what cannot begin continues each time at its own depth,
// and not in a call within a call.
namespace {

using holdfast::errc;

constexpr int tries = 100'000;

template <class Begin>
harness::detached_task ask_again_and_again(Begin begin, int& refused) {
  for (int i = 0; i < tries; ++i) {
    const auto how = co_await begin();
    if (!how && how.error().code == errc::forked) ++refused;
  }
}

/// In a child of fork(), where nothing can begin.
template <class Begin>
void expect_no_deeper(Begin begin) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    int refused = 0;
    ask_again_and_again(begin, refused);
    ::_exit(refused == tries ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

struct what_cannot_begin : testing::Test {
  holdfast::session session = holdfast::open("memory:");
  holdfast::mutex m{session, "m"}, n{session, "n"};
};

TEST_F(what_cannot_begin, is_retried_a_hundred_thousand_times_without_a_deeper_stack) {
  expect_no_deeper([&] { return async_acquire(m); });
}

TEST_F(what_cannot_begin, is_retried_through_another_operation_without_a_deeper_stack) {
  holdfast::both pair{m, n};
  expect_no_deeper([&] { return async_acquire(pair); });
}

TEST_F(what_cannot_begin, that_is_brief_work_is_retried_without_a_deeper_stack) {
  expect_no_deeper([&] { return async_names(session); });
}

// The converse: what has begun continues where its result arrives, as always.
TEST_F(what_cannot_begin, does_not_change_the_thread_that_gets_the_result) {
  std::thread::id where;
  std::atomic<bool> over{false};
  const auto wait = [&]() -> harness::detached_task {
    const auto how = co_await async_acquire(m);
    EXPECT_TRUE(how);
    where = std::this_thread::get_id();
    over = true;
  };
  wait();
  harness::eventually("it goes on", [&] { return over.load(); });
  EXPECT_NE(where, std::this_thread::get_id());
}

}  // namespace
