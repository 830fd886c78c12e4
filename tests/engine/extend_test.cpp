#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "harness/next_wake.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

// An asynchronous extension may come late: after the release, or while the release is on its way.
namespace {

using namespace engine_test;
using holdfast::errc;
using holdfast::event_kind;
using holdfast::fair_mutex;
using holdfast::lease;
using holdfast::mutex;
using verb = holdfast::store::permits_verb;

void await_in_line(const stage& s, const mutex& m, std::size_t n) {
  harness::eventually("in line",
                      [&] { return s.session.impl()->local_queue_of(m.name())->waiting() == n; });
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
  waiter.join();  // it acquired the lock without the store
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

TEST(extension, that_is_under_way_keeps_the_lock_from_the_next_holder) {
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

TEST(extension, of_a_lost_lease_reports_the_loss_although_it_was_released_since) {
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

TEST(extension, of_an_ended_hold_does_not_report_the_loss_of_the_next_hold) {
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

TEST(extension, keeps_its_session_though_the_loss_callback_releases_the_lease) {
  const auto url = "memory:extension-" + std::to_string(getpid());
  const auto elsewhere = holdfast::open(url);
  lease held = mutex{holdfast::open(url), "m"}.acquire();
  const auto release = [&] { (void)held.release(); };
  const std::stop_callback on_loss{held.lost(), release};
  EXPECT_EQ(elsewhere.force_release("m"), 1U);
  EXPECT_THROW(held.extend(), holdfast::error);
  EXPECT_FALSE(held);
}

// ---- of several

TEST(extension, of_several_extends_each_or_names_the_failed_ones) {
  stage s;
  mutex a{s.session, "a"}, b{s.session, "b"};
  holdfast::multi_lock all{a, b};
  auto held = all.acquire();
  EXPECT_TRUE(async_extend(held, 60s).future().get());
  EXPECT_GT(held.remaining(), 55s);
  EXPECT_THROW((void)async_extend(held, 1ms), holdfast::error);
  s.script->set(verb::renew, holdfast::testing::fault::drop_request);
  const auto failed = async_extend(held).future().get();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, errc::unavailable);
  EXPECT_EQ(failed.error().name, "a");
  EXPECT_FALSE(held.release());
  EXPECT_THROW((void)async_extend(held), holdfast::error);
  EXPECT_THROW((void)async_extend(held, 60s), holdfast::error);
}

TEST(extension, of_several_with_a_lost_member_sends_no_request) {
  stage s, other;
  mutex a{s.session, "a", {.renew = false}}, b{other.session, "b", {.renew = false}};
  holdfast::multi_lock all{a, b};
  const auto held = all.acquire();
  for (auto* const lost_first : {&other, &s}) {
    lost_first->clock->advance(31s);
    const auto lost = async_extend(held).future().get();
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code, errc::lost);
    EXPECT_EQ(s.script->count(verb::renew) + other.script->count(verb::renew), 0U);
  }
}

TEST(extension, of_several_that_a_release_overtakes_goes_no_further) {
  stage s;
  mutex a{s.session, "a"}, b{s.session, "b"};
  holdfast::multi_lock all{a, b};
  auto held = all.acquire();
  s.script->hang(verb::renew);
  auto late = async_extend(held, 1s).future();
  s.script->await(verb::renew, 1);
  EXPECT_FALSE(held.release());
  s.script->let_go();
  EXPECT_EQ(late.get().error().code, errc::not_owner);
  EXPECT_EQ(s.script->count(verb::renew), 1U);
  EXPECT_EQ(s.seen->count(event_kind::lost), 0U);
}

TEST(extension, of_several_ends_after_lease_locks_and_sessions_were_destroyed) {
  stage s, other;
  std::promise<holdfast::status> told;
  {
    auto a = std::make_unique<mutex>(s.session, "a"),
         b = std::make_unique<mutex>(other.session, "b");
    auto all = std::make_unique<holdfast::multi_lock>(
        std::initializer_list<holdfast::multi_member>{*a, *b});
    auto held = all->acquire();
    s.script->hang(verb::renew), other.script->hang(verb::renew);
    async_extend(held).start([&](holdfast::status how) { told.set_value(std::move(how)); });
    harness::eventually("asked", [&] {
      return s.script->count(verb::renew) + other.script->count(verb::renew) > 0;
    });
  }
  s.session = other.session = holdfast::open("memory:");
  s.script->let_go(), other.script->let_go();
  EXPECT_EQ(told.get_future().get().error().code, errc::not_owner);
}

TEST(extension, of_several_may_be_followed_by_their_release_in_its_callback) {
  stage s;
  mutex a{s.session, "a"}, b{s.session, "b"};
  holdfast::multi_lock all{a, b};
  auto held = all.acquire();
  std::promise<std::error_code> released;
  async_extend(held).start([&](const holdfast::status& how) {
    EXPECT_TRUE(how);
    released.set_value(held.release());
  });
  EXPECT_FALSE(released.get_future().get());
  EXPECT_TRUE(s.session.show("a").holders.empty());
  EXPECT_TRUE(s.session.show("b").holders.empty());
}

// The store may keep it for an hour, which nobody here knows.
TEST(extension, whose_answer_was_lost_has_its_release_repeated_for_the_new_lease) {
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
    if (++seconds <= 60) harness::pass(*s.clock, 1s);
    return s.session.show("m").holders.empty();
  });
}

TEST(extension, of_a_held_lease_keeps_its_renewals) {
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
