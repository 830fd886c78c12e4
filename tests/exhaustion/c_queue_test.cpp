#ifdef HOLDFAST_WITH_C

#include <gtest/gtest.h>
#include <holdfast/holdfast.h>
#include <poll.h>

#include <cstdint>

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

// A program that reads the event although the call failed would take an empty lease for a valid
// one.
TEST_F(c_queue, an_event_without_memory_for_its_lease_is_delivered_later) {
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

// Nobody would give such tokens back: the caller has no decision.
TEST_F(c_queue, a_take_that_finds_no_memory_takes_nothing) {
  holdfast_rule rule{};
  rule.tokens = 100;
  rule.per_us = 3'600'000'000;
  holdfast_limiter* limiter = nullptr;
  ASSERT_EQ(holdfast_limiter_open(session, "r", &rule, 1, 0, &limiter, nullptr), HOLDFAST_OK);
  holdfast_wait how{};
  how.size = sizeof how;
  how.timeout_ns = -1;
  how.queue = queue;
  holdfast_event event{};
  event.size = sizeof event;
  holdfast_decision decision{};
  decision.size = sizeof decision;
  int failed = 0;
  for (int n = 0; decision.taken == 0; ++n) {
    int code = HOLDFAST_OK;
    {
      const no_memory_after now(n, of::this_thread);
      code = holdfast_limiter_take(limiter, 1, nullptr, 0, &how, nullptr, nullptr);
    }
    if (code == HOLDFAST_OK) {
      await_an_event();
      ASSERT_EQ(holdfast_queue_next_decision(queue, 0, &event, &decision, nullptr), HOLDFAST_OK);
      code = event.code;
    }
    if (code != HOLDFAST_OK) ++failed;
  }
  EXPECT_GT(failed, 0);
  EXPECT_EQ(decision.tokens, 1u);
  EXPECT_EQ(decision.remaining, 99u);
  EXPECT_EQ(holdfast_close(limiter, nullptr), HOLDFAST_OK);
}

// A wait for a condition restarts all watches of its lease.
TEST_F(c_queue, a_watch_that_finds_no_memory_watches_nothing) {
  holdfast_lease* lease = nullptr;
  holdfast_condition* condition = nullptr;
  ASSERT_EQ(holdfast_acquire(lock, nullptr, &lease, nullptr), HOLDFAST_OK);
  ASSERT_EQ(holdfast_condition_open(session, "c", &condition, nullptr), HOLDFAST_OK);
  std::uint64_t watches = 0;
  for (int code = HOLDFAST_OVERLOADED; code != HOLDFAST_OK; ++watches) {
    const no_memory_after now(static_cast<long>(watches), of::this_thread);
    code = holdfast_lease_watch(lease, queue, watches, nullptr);
  }
  ASSERT_GT(watches, 1u);
  holdfast_wait how{};
  how.size = sizeof how;
  how.timeout_ns = 1;
  std::uint32_t notified = 0;
  ASSERT_EQ(holdfast_condition_wait(condition, lease, &how, &notified, nullptr), HOLDFAST_OK);
  ASSERT_EQ(holdfast_force_release(session, "m", nullptr, nullptr, nullptr), HOLDFAST_OK);
  ASSERT_EQ(holdfast_lease_extend(lease, 0, nullptr), HOLDFAST_LOST);
  holdfast_event event{};
  event.size = sizeof event;
  ASSERT_EQ(holdfast_queue_next(queue, 0, &event, nullptr), HOLDFAST_OK);
  EXPECT_EQ(event.tag, watches - 1) << "the one that was told of";
  EXPECT_EQ(holdfast_queue_next(queue, 0, &event, nullptr), HOLDFAST_TIMED_OUT);
  EXPECT_EQ(holdfast_close(lease, nullptr), HOLDFAST_OK);
  EXPECT_EQ(holdfast_close(condition, nullptr), HOLDFAST_OK);
}

}  // namespace
}  // namespace exhaustion

#endif
