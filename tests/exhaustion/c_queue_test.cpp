#ifdef HOLDFAST_WITH_C

#include <gtest/gtest.h>
#include <holdfast/holdfast.h>
#include <poll.h>

#include "exhaustion/failing_memory.hpp"

namespace exhaustion {
namespace {

struct c_queue : testing::Test {
  c_queue() {
    EXPECT_EQ(holdfast_open("memory:", nullptr, &session, nullptr), HOLDFAST_OK);
    EXPECT_EQ(holdfast_mutex(session, "m", nullptr, &lock, nullptr), HOLDFAST_OK);
    EXPECT_EQ(holdfast_queue_open(&queue, &fd, nullptr), HOLDFAST_OK);
  }
  ~c_queue() override {
    for (const void* one : {static_cast<const void*>(lock), static_cast<const void*>(queue),
                            static_cast<const void*>(session)}) {
      EXPECT_EQ(holdfast_close(one, nullptr), HOLDFAST_OK);
    }
  }
  void await_an_event() const {
    pollfd there{fd, POLLIN, 0};
    while (::poll(&there, 1, -1) != 1) {
    }
  }

  holdfast_session* session = nullptr;
  holdfast_lock* lock = nullptr;
  holdfast_queue* queue = nullptr;
  int fd = -1;
};

// A program that looks at the event although the call failed would take a lease of nothing for one.
TEST_F(c_queue, an_event_whose_lease_finds_no_memory_is_not_shown_and_comes_again) {
  holdfast_wait how{};
  how.size = sizeof how;
  how.timeout_ns = -1;
  how.queue = queue;
  how.tag = 7;
  ASSERT_EQ(holdfast_acquire(lock, &how, nullptr, nullptr), HOLDFAST_OK);
  int failed = 0;
  holdfast_event event{};
  event.size = sizeof event;
  for (int n = 0;; ++n) {
    await_an_event();
    int code = HOLDFAST_OK;
    {
      const no_memory_after now(n, of::this_thread);
      code = holdfast_queue_next(queue, 0, &event, nullptr);
    }
    if (code == HOLDFAST_OK) break;
    ++failed;
    EXPECT_EQ(code, HOLDFAST_OVERLOADED);
    EXPECT_EQ(event.kind, 0);
    EXPECT_EQ(event.tag, 0u);
    EXPECT_EQ(event.lease, nullptr);
  }
  EXPECT_GT(failed, 0);
  EXPECT_EQ(event.kind, HOLDFAST_DONE);
  EXPECT_EQ(event.tag, 7u);
  EXPECT_EQ(holdfast_lease_check(event.lease, nullptr), HOLDFAST_OK);
  EXPECT_EQ(holdfast_release(event.lease, nullptr, nullptr), HOLDFAST_OK);
}

}  // namespace
}  // namespace exhaustion

#endif
