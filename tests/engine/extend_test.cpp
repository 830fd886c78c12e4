#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "session/session_impl.hpp"
#include "stage.hpp"

// An extension without a thread may come late: after the release, or while it is on its way.
namespace {

using namespace engine_test;
using holdfast::errc;
using holdfast::event_kind;
using holdfast::fair_mutex;
using holdfast::lease;
using holdfast::mutex;
using verb = holdfast::store::permits_verb;

void await_in_line(const stage& s, const mutex& m, std::size_t n) {
  harness::eventually("in line", [&] {
    return s.session.impl()->local_queues().at(m.name(), *s.clock)->waiting() == n;
  });
}

TEST(extension, that_comes_after_the_release_leaves_the_next_turn_alone) {
  stage s;
  mutex m{s.session, "m"}, other{s.session, "other"};
  lease held = m.acquire(), next;
  s.script->hang(verb::acquire);
  auto busy = async_acquire(other).future();  // the session's thread hangs in the store
  s.script->await(verb::acquire, 2);
  auto late = async_extend(held, 100ms).future();
  std::thread waiter([&] { next = m.acquire(); });
  await_in_line(s, m, 1);
  EXPECT_FALSE(held.release());
  waiter.join();  // it has it, without the store
  s.script->let_go();
  EXPECT_EQ(late.get().error().code, errc::not_owner);
  EXPECT_GT(next.remaining(), 29s);
  EXPECT_EQ(s.script->count(verb::renew), 0U);
  EXPECT_EQ(s.seen->count(event_kind::lost), 0U);
  EXPECT_TRUE(busy.get());
}

TEST(extension, that_a_release_overtakes_is_no_loss) {
  stage s;
  fair_mutex m{s.session, "m"};
  lease held = m.acquire();
  s.script->hang(verb::renew);
  auto late = async_extend(held, 1s).future();
  s.script->await(verb::renew, 1);
  EXPECT_FALSE(held.release());
  s.script->let_go();
  EXPECT_EQ(late.get().error().code, errc::not_owner);
  EXPECT_EQ(s.seen->count(event_kind::lost), 0U);
  EXPECT_EQ(s.seen->count(event_kind::renew_failed), 0U);
}

TEST(extension, on_its_way_keeps_the_hold_from_the_next) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire(), next;
  s.script->hang(verb::renew);
  auto late = async_extend(held, 100ms).future();
  s.script->await(verb::renew, 1);
  std::thread waiter([&] { next = m.acquire(); });
  await_in_line(s, m, 1);
  EXPECT_FALSE(held.release());
  waiter.join();
  s.script->let_go();
  EXPECT_EQ(late.get().error().code, errc::not_owner);
  EXPECT_GT(next.remaining(), 29s);
  s.clock->advance(200ms);
  EXPECT_NO_THROW(next.check());
}

TEST(extension, of_what_is_lost_is_told_so_though_it_was_given_back_since) {
  stage s;
  mutex m{s.session, "m"}, other{s.session, "other"};
  lease held = m.acquire();
  std::error_code released;
  const auto release = [&] { released = held.release(); };
  const std::stop_callback on_loss{held.lost(), release};
  s.script->hang(verb::acquire);
  auto busy = async_acquire(other).future();  // the session's thread hangs in the store
  s.script->await(verb::acquire, 2);
  auto late = async_extend(held, 10s).future();
  s.clock->advance(30s);
  s.seen->await(event_kind::lost);
  EXPECT_EQ(released, errc::lost);
  s.script->let_go();
  EXPECT_EQ(late.get().error().code, errc::lost);
  EXPECT_EQ(s.seen->count(event_kind::lost), 1U);
}

TEST(extension, of_a_turn_that_is_over_is_not_told_of_the_next_ones_loss) {
  stage s;
  mutex m{s.session, "m"}, other{s.session, "other"};
  lease held = m.acquire(), next;
  s.script->hang(verb::acquire);
  const auto busy = async_acquire(other).future();
  s.script->await(verb::acquire, 2);
  auto late = async_extend(held, 10s).future();
  std::thread waiter([&] { next = m.acquire(); });
  await_in_line(s, m, 1);
  EXPECT_FALSE(held.release());
  waiter.join();
  s.clock->advance(30s);
  s.seen->await(event_kind::lost);
  s.script->let_go();
  EXPECT_EQ(late.get().error().code, errc::not_owner);
}

TEST(extension, keeps_its_session_though_who_is_told_of_the_loss_lets_go_of_it) {
  const auto url = "memory:extension-" + std::to_string(getpid());
  const auto elsewhere = holdfast::open(url);
  lease held = mutex{holdfast::open(url), "m"}.acquire();
  const auto release = [&] { (void)held.release(); };
  const std::stop_callback on_loss{held.lost(), release};
  EXPECT_EQ(elsewhere.force_release("m"), 1U);
  EXPECT_THROW(held.extend(), holdfast::error);
  EXPECT_FALSE(held);
}

// The store may keep it for an hour, of which nobody here knows.
TEST(extension, whose_answer_was_lost_is_given_back_for_as_long_as_it_may_last) {
  stage s;
  fair_mutex m{s.session, "m"};
  lease held = m.acquire();
  s.script->set(verb::renew, holdfast::testing::fault::drop_reply);
  EXPECT_THROW(held.extend(1h), holdfast::error);
  s.script->set(verb::renew, holdfast::testing::fault::drop_request);
  s.script->set(verb::release, holdfast::testing::fault::drop_request);
  EXPECT_EQ(held.release(), errc::unavailable);
  for (int i = 0; i < 40; ++i) {
    const auto tried = s.script->count(verb::release);
    s.await_wake_within(1s);
    s.clock->advance(1s);
    s.script->await(verb::release, tried + 1);
  }
  s.script->set(verb::release, holdfast::testing::fault::none);
  int seconds = 0;
  harness::eventually("it is free", [&] {
    if (++seconds <= 60) s.clock->advance(1s);
    return s.session.show("m").holders.empty();
  });
}

TEST(extension, of_what_is_held_goes_on_as_before) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  EXPECT_TRUE(async_extend(held, 60s).future().get());
  EXPECT_GT(held.remaining(), 55s);
  EXPECT_FALSE(held.release());
  held = m.acquire();
  held.extend(90s);
  EXPECT_GT(held.remaining(), 85s);
}

}  // namespace
