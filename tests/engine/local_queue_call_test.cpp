#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <thread>

#include "session/session_impl.hpp"
#include "stage.hpp"

// A waiter that is called to take an idle lock, and does not come.
namespace {

using namespace engine_test;
using holdfast::lease;
using holdfast::mutex;
using verb = holdfast::store::permits_verb;

TEST(local_queue, a_waiter_that_gives_up_when_it_is_called_calls_the_next) {
  stage s;
  mutex m{s.session, "m"}, other{s.session, "other"};
  lease held = m.acquire();
  const auto line = s.session.impl()->local_queue_of("m");
  std::stop_source stop;
  auto first = async_acquire(m, {}, stop.get_token()).future();
  harness::eventually("one in line", [&] { return line->waiting() == 1; });
  std::atomic<bool> got{false};
  const std::jthread second(
      [&](const std::stop_token& enough) { got = m.try_acquire_for(1h, enough).has_value(); });
  harness::eventually("two in line", [&] { return line->waiting() == 2; });
  s.script->hang(verb::acquire);
  auto busy = async_acquire(other).future();
  s.script->await(verb::acquire, 2);  // the thread of the first is in the store
  stop.request_stop();
  EXPECT_FALSE(held.release());  // idle, for the first waiter, which has not polled yet
  EXPECT_FALSE(got);
  s.script->let_go();
  EXPECT_EQ(first.get().error().code, holdfast::errc::cancelled);
  harness::eventually("the second has it", [&] { return got.load(); });
  EXPECT_TRUE(busy.get());
}

/// A queued asynchronous waiter whose session's thread is blocked in the store: it does not react
/// when it is called.
struct drowsy : testing::Test {
  void stand_in_line(mutex& m) {
    first.emplace(async_acquire(m).future());
    const auto line = s.session.impl()->local_queue_of("m");
    harness::eventually("in line", [&] { return line->waiting() == 1; });
    const auto asked = s.script->count(verb::acquire);
    s.script->hang(verb::acquire);
    busy.emplace(async_acquire(other).future());
    s.script->await(verb::acquire, asked + 1);
  }
  void wake_up() {
    s.script->let_go();
    EXPECT_TRUE(busy->get());
    EXPECT_TRUE(async_acquire(third).future().get()) << "by the same thread, after its look";
  }
  bool served() {
    harness::eventually("the first is served",
                        [&] { return first->wait_for(0s) == std::future_status::ready; });
    return first->get().ok();
  }
  stage s;
  mutex other{s.session, "other"}, third{s.session, "third"};
  std::optional<std::future<holdfast::result<lease>>> first, busy;
};

// The quicker waiter hands over to the one that came too late, and to nobody else.
TEST_F(drowsy, a_waiter_whose_idle_lock_was_taken_is_served_next) {
  mutex m{s.session, "m"};
  lease held = m.acquire();
  stand_in_line(m);
  EXPECT_FALSE(held.release());
  auto quick = m.try_acquire();
  ASSERT_TRUE(quick) << "it lay idle";
  wake_up();
  EXPECT_FALSE(quick->release());
  EXPECT_FALSE(m.try_acquire());
  EXPECT_TRUE(served());
}

TEST_F(drowsy, the_first_waiter_is_bypassed_max_bypass_times_and_no_more) {
  mutex m{s.session, "m", {.max_bypass = 2}};
  lease held = m.acquire();
  stand_in_line(m);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(held.release());
    auto quick = m.try_acquire();
    ASSERT_TRUE(quick) << i;
    held = std::move(*quick);
  }
  EXPECT_FALSE(held.release());
  EXPECT_FALSE(m.try_acquire()) << "it is the first's";
  wake_up();
  EXPECT_TRUE(served());
}

struct next_in_process : testing::Test {
  /// How often the store was asked for the lock when it has gone from one waiter to the next of the
  /// process.
  std::size_t asked_when_passed_to(const holdfast::lock_options& wanted,
                                   std::chrono::milliseconds extended_to = 30s) {
    stage s;
    mutex m{s.session, "m"}, of_next{s.session, "m", wanted};
    lease held = m.acquire();
    held.extend(extended_to);
    auto next = async_acquire(of_next).future();
    const auto line = s.session.impl()->local_queue_of("m");
    harness::eventually("in line", [&] { return line->waiting() == 1; });
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(next.get());
    return s.script->count(verb::acquire);
  }
};

TEST_F(next_in_process, gets_a_hold_of_its_own_kind_and_not_that_of_another) {
  EXPECT_EQ(asked_when_passed_to({}), 1U);
  EXPECT_EQ(asked_when_passed_to({.lease = 20s}), 2U);
  EXPECT_EQ(asked_when_passed_to({.max_hold = 1h}), 2U);
  EXPECT_EQ(asked_when_passed_to({}, 60s), 2U) << "it was made longer for the one";
}

}  // namespace
