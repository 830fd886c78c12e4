#include <gtest/gtest.h>

#include <thread>

#include "base/sha256.hpp"
#include "forgery.hpp"
#include "session/sealed_id.hpp"
#include "wait/acquire.hpp"

// A waiter believes a notification with the secret of the holder before it, which nobody knew
// before the release. Others may read the secret then, and send it to any session.
namespace {

using namespace engine_test;
using holdfast::fair_mutex;
using holdfast::lease;
using holdfast::engine::acquire_params;
using holdfast::engine::acquisition;
using holdfast::engine::dispatcher;
using holdfast::engine::lock_config;
using holdfast::engine::sealed;
using holdfast::store::owner_id;
using verb = holdfast::store::permits_verb;

TEST(sealed_id, is_the_first_half_of_the_sha_256) {
  EXPECT_EQ(sealed({0, 0}), (owner_id{0x374708fff7719dd5, 0x979ec875d56cd228}));
  EXPECT_EQ(sealed({0x0123456789abcdef, 0xfedcba9876543210}),
            (owner_id{0x411d3f1d2390ff3f, 0x482ac8df4e730780}));
  EXPECT_EQ(sealed({~0ULL, ~0ULL}), (owner_id{0x5ac6a5945f165009, 0x11219129984ba8b3}));
}

// Of texts that fill their last block, that need another block for their length, and that fill
// several.
TEST(sha256, is_that_of_fips_180) {
  using holdfast::base::sha256;
  const auto first = [](std::string_view bytes) { return sha256(bytes).front(); };
  EXPECT_EQ(sha256("abc"),
            (std::array<std::uint32_t, 8>{0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223,
                                          0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad}));
  EXPECT_EQ(first(""), 0xe3b0c442);
  EXPECT_EQ(first(std::string(55, 'a')), 0x9f4390f8);
  EXPECT_EQ(first(std::string(56, 'a')), 0xb35439a4);
  EXPECT_EQ(first(std::string(64, 'a')), 0xffe054fe);
  EXPECT_EQ(first(std::string(200, '\xff')), 0xd0f9b20e);
}

lock_config mutex_named(const std::string& name) {
  lock_config s;
  s.name = name;
  s.lease = 30s;
  return s;
}

/// A contender that asks, and reads its own notifications.
struct contender {
  contender(forgery& f, const lock_config& what, const acquire_params& how = {})
      : of(f),
        name(what.name),
        session(*f.session.impl()),
        s(what),
        asks(session, s, how),
        slot(session.dispatcher(), asks.owner()) {}

  bool holds() {
    const auto sent = session.now();
    const auto what = asks.command(false);
    const auto answer =
        what ? asks.learn(session.permits(what->name, what->command), sent) : asks.ask(false);
    return answer && !*answer;
  }
  /// The notification that has arrived.
  notification news() { return slot.wait(session.now() + 1s).value(); }
  /// As hold does it. Only the store knows the secret before.
  void release() const {
    permits_command c;
    c.verb = verb::release;
    c.owner = asks.owner();
    c.secret = asks.granted().secret;
    ASSERT_EQ(session.permits(name, c)->outcome, holdfast::store::permits_outcome::done);
  }

  forgery& of;
  const std::string name;
  holdfast::engine::session_impl& session;
  const lock_config s;
  acquisition asks;
  dispatcher::registration slot;
};

class hand_over : public testing::Test {
 protected:
  holdfast::store::permits_record record(const std::string& name = "m") {
    return f_.session.impl()->permits(name, {})->found;
  }

  forgery f_{true};
  contender first_{f_, mutex_named("m")};
  contender second_{f_, mutex_named("m")};
};

TEST_F(hand_over, is_believed_with_the_secret_of_the_previous_holder) {
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(second_.holds());
  first_.release();
  EXPECT_TRUE(second_.asks.notified(second_.news()));
  const auto& mine = second_.asks.granted();
  const auto there = record().holders.at(0);
  EXPECT_EQ(there.owner, mine.owner);
  EXPECT_EQ(there.fence, mine.fence);
  EXPECT_GT(mine.valid_until, f_.clock->now());
  EXPECT_LE(mine.valid_until, f_.clock->now() + 2s) << "the time in which it has to be claimed";
}

TEST_F(hand_over, counts_no_longer_than_it_may_be_claimed) {
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(second_.holds());
  first_.release();
  notification late = second_.news();
  late.expires_at += 10'000'000;  // the store's clock was set forward meanwhile
  ASSERT_TRUE(second_.asks.notified(late));
  const std::chrono::microseconds claim(f_.session.impl()->can().claim_us);
  EXPECT_LE(second_.asks.granted().valid_until, f_.clock->now() + claim);
}

/// The hold of the first contender, as another thread of its process gives it back.
struct given_back final : holdfast::engine::transferable {
  explicit given_back(const acquisition& of) : of_(of) {}
  bool fits(const lock_config&) const noexcept override { return false; }
  bool stays_in_process(holdfast::boot_time) const noexcept override { return false; }
  bool lingers(holdfast::boot_time) const noexcept override { return false; }
  std::chrono::nanoseconds linger() const noexcept override { return {}; }
  const owner_id& owner() const noexcept override { return of_.owner(); }
  const owner_id& secret() const noexcept override { return of_.granted().secret; }
  void give_back() noexcept override {}
  void forget() noexcept override {}

 private:
  const acquisition& of_;
};

TEST_F(hand_over, whose_lease_ends_before_the_waiter_comes_to_it_is_requested_again) {
  ASSERT_TRUE(first_.holds());
  ASSERT_TRUE(second_.asks.ask_instead_of(given_back(first_.asks)).value());
  f_.clock->advance(31s);
  EXPECT_TRUE(second_.holds());
  EXPECT_GT(second_.asks.granted().valid_until, f_.clock->now());
}

TEST_F(hand_over, continues_from_waiter_to_waiter) {
  contender third{f_, mutex_named("m")};
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(second_.holds());
  ASSERT_FALSE(third.holds());
  first_.release();
  ASSERT_TRUE(second_.asks.notified(second_.news()));
  second_.release();
  EXPECT_TRUE(third.asks.notified(third.news()));
}

TEST_F(hand_over, with_no_secret_or_a_guessed_one_is_not_believed) {
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(second_.holds());
  notification forged = f_.for_the_waiter("m", notification_kind::granted);
  for (const owner_id guessed : {owner_id{}, owner_id{1, 2}, first_.asks.owner(),
                                 second_.asks.owner(), second_.asks.granted().secret}) {
    forged.secret = guessed;
    EXPECT_FALSE(second_.asks.notified(forged));
  }
}

TEST_F(hand_over, to_one_waiter_is_not_believed_by_the_waiters_behind) {
  contender third{f_, mutex_named("m")};
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(second_.holds());
  ASSERT_FALSE(third.holds());
  first_.release();
  notification overheard = second_.news();
  ASSERT_TRUE(overheard.secret);
  overheard.owner = third.asks.owner();
  EXPECT_FALSE(third.asks.notified(overheard));
  EXPECT_TRUE(second_.asks.notified(overheard));
}

TEST_F(hand_over, of_another_name_is_not_believed) {
  contender other{f_, mutex_named("other")}, waits{f_, mutex_named("other")};
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(second_.holds());
  ASSERT_TRUE(other.holds());
  ASSERT_FALSE(waits.holds());
  first_.release();
  notification overheard = second_.news();
  overheard.owner = waits.asks.owner();
  overheard.name = "other";
  EXPECT_FALSE(waits.asks.notified(overheard));
}

TEST_F(hand_over, of_an_earlier_turn_is_not_believed) {
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(second_.holds());
  first_.release();
  notification overheard = second_.news();
  ASSERT_TRUE(second_.asks.notified(overheard));
  contender third{f_, mutex_named("m")};
  ASSERT_FALSE(third.holds());
  overheard.owner = third.asks.owner();
  EXPECT_FALSE(third.asks.notified(overheard));
}

// A second notification with the same secret may have any content.
TEST_F(hand_over, is_believed_only_in_its_first_notification) {
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(second_.holds());
  first_.release();
  notification n = second_.news();
  f_.clock->advance(3s);  // it was on its way for too long
  EXPECT_FALSE(second_.asks.notified(n));
  n.expires_at += 3'600'000'000;
  n.fence += 1'000'000;
  EXPECT_FALSE(second_.asks.notified(n));
}

TEST_F(hand_over, is_not_believed_after_a_notification_may_have_been_missed) {
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(second_.holds());
  first_.release();
  const notification n = second_.news();
  f_.inbox->miss();
  EXPECT_FALSE(second_.asks.notified(n));
}

TEST_F(hand_over, is_not_believed_after_an_unread_notification) {
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(second_.holds());
  first_.release();
  const notification n = second_.news();
  second_.asks.notified_before();
  EXPECT_FALSE(second_.asks.notified(n));
}

TEST_F(hand_over, is_not_believed_without_an_answer_to_the_last_question) {
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(second_.holds());
  f_.script->set(verb::acquire, holdfast::testing::fault::drop_request);
  EXPECT_FALSE(second_.holds());
  first_.release();
  EXPECT_FALSE(second_.asks.notified(second_.news()));
}

// Another owner has the name then, with the secret that this waiter expects.
TEST_F(hand_over, is_not_believed_when_the_queue_entry_may_have_expired) {
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(second_.holds());
  f_.clock->advance(4s);
  contender third{f_, mutex_named("m")};
  ASSERT_FALSE(third.holds());
  first_.release();
  notification overheard = third.news();
  ASSERT_TRUE(overheard.secret);
  overheard.owner = second_.asks.owner();
  EXPECT_FALSE(second_.asks.notified(overheard));
}

TEST_F(hand_over, of_a_dead_holder_is_requested_when_its_lease_ends_and_not_before) {
  lock_config s = mutex_named("m");
  s.lease = 100ms;
  contender dies{f_, s};
  ASSERT_TRUE(dies.holds());
  const auto sent = f_.clock->now();
  holdfast::engine::wait_steps steps(second_.session, second_.asks, {sent, holdfast::no_limit});
  const auto asks = steps.command();
  auto answer = second_.session.permits(asks->name, asks->command);
  f_.clock->advance(30ms);
  EXPECT_FALSE(steps.answered(std::move(answer), sent));
  EXPECT_EQ(steps.until(), sent + 100ms) << "one question is enough then";
}

// No notification wakes the waiter earlier, because the process of the holder is dead.
TEST_F(hand_over, of_a_holder_that_died_with_a_lease_of_a_second_costs_five_questions) {
  lock_config s = mutex_named("m");
  s.lease = 1s;
  contender dies{f_, s};
  ASSERT_TRUE(dies.holds());
  const auto began = f_.clock->now();
  holdfast::engine::wait_steps steps(second_.session, second_.asks, {began, holdfast::no_limit});
  std::vector<std::chrono::nanoseconds> asked_after;
  for (std::optional<holdfast::status> end; !end;) {
    const auto sent = f_.clock->now();
    asked_after.push_back(sent - began);
    const auto asks = steps.command();
    end = steps.answered(second_.session.permits(asks->name, asks->command), sent);
    if (!end) f_.clock->advance(steps.until() - sent);
  }
  EXPECT_EQ(asked_after, (std::vector<std::chrono::nanoseconds>{0ms, 250ms, 500ms, 750ms, 1s}));
}

TEST_F(hand_over, by_priority_passes_no_secret_on) {
  contender urgent{f_, mutex_named("m"), {.priority = 1}};
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(second_.holds());
  ASSERT_FALSE(urgent.holds());
  first_.release();
  EXPECT_FALSE(urgent.news().secret) << "the other one stands behind the same holder";
}

TEST_F(hand_over, after_an_abandoned_wait_is_requested_from_the_store) {
  contender third{f_, mutex_named("m")};
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(second_.holds());
  ASSERT_FALSE(third.holds());
  second_.release();
  first_.release();
  EXPECT_FALSE(third.asks.notified(third.news())) << "it stood behind the second";
  EXPECT_TRUE(third.holds());
}

TEST_F(hand_over, of_an_unrenewed_lock_is_requested_from_the_store) {
  lock_config s = mutex_named("m");
  s.renew = false;
  contender unrenewed{f_, s};
  ASSERT_TRUE(first_.holds());
  ASSERT_FALSE(unrenewed.holds());
  first_.release();
  EXPECT_FALSE(unrenewed.asks.notified(unrenewed.news()));
}

TEST(hand_over_of_a_lock, costs_one_command) {
  forgery f{true};
  fair_mutex m{f.session, "m"};
  lease held = m.acquire(), got;
  std::thread waiter([&] { got = m.acquire(); });
  f.await_waiters("m", 1);
  const auto before = f.session.store_operations();
  EXPECT_FALSE(held.release());
  waiter.join();
  EXPECT_EQ(f.session.store_operations() - before, 1U);
  EXPECT_EQ(got.fence(), f.session.show("m").holders.at(0).fence);
}

TEST(hand_over_of_a_lock, costs_one_command_to_a_wait_without_a_thread) {
  forgery f{true};
  fair_mutex m{f.session, "m"};
  lease held = m.acquire();
  auto got = async_acquire(m).future();
  f.await_waiters("m", 1);
  const auto before = f.session.store_operations();
  EXPECT_FALSE(held.release());
  const lease mine = got.get().value();
  EXPECT_EQ(f.session.store_operations() - before, 1U);
  EXPECT_EQ(mine.fence(), f.session.show("m").holders.at(0).fence);
}

// The release requests the lock for another thread of the process, in the same step.
TEST(hand_over_of_a_lock, from_a_process_that_queues_again_costs_no_more) {
  forgery f{true};
  holdfast::mutex m{f.session, "m", {.local_time = 0us}};
  lease held = m.acquire();
  contender other{f, mutex_named("m")};
  ASSERT_FALSE(other.holds());
  std::thread next([&] { EXPECT_TRUE(m.acquire()); });
  harness::eventually("in line",
                      [&] { return f.session.impl()->local_queue_of("m")->waiting() == 1; });
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(other.asks.notified(other.news()));
  other.release();
  next.join();
}

TEST(hand_over_of_a_leadership, costs_one_command) {
  forgery f{true};
  holdfast::election e{f.session, "e"};
  holdfast::leadership first = e.campaign();
  auto next = async_campaign(e).future();
  f.await_waiters("e", 1);
  const auto before = f.session.store_operations();
  EXPECT_FALSE(first.resign());
  const holdfast::leadership mine = next.get().value();
  EXPECT_EQ(f.session.store_operations() - before, 1U);
  EXPECT_EQ(mine.term(), e.current()->term);
}

TEST(hand_over_of_a_lock, that_was_believed_is_claimed_by_the_keeper) {
  forgery f{true};
  fair_mutex m{f.session, "m"};
  lease held = m.acquire(), got;
  std::thread waiter([&] { got = m.acquire(); });
  f.await_waiters("m", 1);
  EXPECT_FALSE(held.release());
  waiter.join();
  EXPECT_LT(got.remaining(), 3s);
  harness::eventually("its whole lease", [&] {
    harness::to_next_wake(*f.clock, 1s);  // the claim, and not the end of the lease
    return got.remaining() > 20s;
  });
  EXPECT_NO_THROW(got.check());
}

}  // namespace
