#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "engine/slow_to_answer.hpp"
#include "engine/stage.hpp"
#include "harness/concurrently.hpp"
#include "harness/next_wake.hpp"
#include "harness/thread_ids.hpp"

// How a primitive handles an answer that came late, or never, on a clock that stands still.
namespace {

using namespace engine_test;
using holdfast::event_kind;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

TEST(counted_time, of_local_tokens_is_over_for_all_of_them) {
  stage s;
  holdfast::rate_limiter l(s.session, "n", {{.tokens = 20, .per = 1h}},
                           {.local_tokens = 5, .local_time = 100ms});
  EXPECT_TRUE(l.try_take());
  s.clock->advance(100ms);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(l.try_take());
  EXPECT_EQ(l.peek().rules.at(0).remaining, 10U);
  EXPECT_TRUE(l.try_take());
  EXPECT_EQ(l.peek().rules.at(0).remaining, 5U) << "four of the first five are gone";
}

class late_tokens final : public harness::passing_on {
 public:
  late_tokens(std::unique_ptr<session_store> inner,
              std::shared_ptr<holdfast::testing::fake_clock> clock)
      : passing_on(std::move(inner)), clock_(std::move(clock)) {}
  holdfast::result<holdfast::store::rate_reply> rate(
      std::string_view name, const holdfast::store::rate_command& c) override {
    auto reply = inner_->rate(name, c);
    clock_->advance(5s);
    return reply;
  }

 private:
  const std::shared_ptr<holdfast::testing::fake_clock> clock_;
};

TEST(counted_time, until_tokens_are_there_begins_with_the_answer) {
  stage s;
  auto o = s.options();
  o.decorate = [&](auto inner) { return std::make_unique<late_tokens>(std::move(inner), s.clock); };
  auto session = holdfast::open("memory:", o);
  holdfast::rate_limiter l(session, "n", {{.tokens = 1, .per = 10s}});
  EXPECT_TRUE(l.try_take());
  const auto before = s.clock->now();
  auto waiter = harness::concurrently([&] {
    (void)l.take();
    return s.clock->now();
  });
  harness::eventually("they are there", [&] {
    harness::pass(*s.clock, 10ms);
    return waiter.wait_for(0s) == std::future_status::ready;
  });
  EXPECT_GE(waiter.get() - before, 10s) << "five until the answer, and five more";
}

TEST(counted_time, of_an_unused_latch_matches_its_keep) {
  stage s;
  holdfast::latch l{s.session, "l", 2, {.keep = 3600s}};
  l.count_down();
  s.clock->advance(60s);
  EXPECT_EQ(l.remaining(), 1U);
}

TEST(counted_time, of_a_permit_goes_on_when_its_session_has_ended) {
  stage s("memory:permit-outlives");
  {
    auto first = holdfast::open("memory:permit-outlives", {.clock = s.clock});
    ASSERT_TRUE(holdfast::expiring_semaphore(first, "e", 1).try_acquire(30s));
  }
  EXPECT_FALSE(holdfast::expiring_semaphore(s.session, "e", 1).try_acquire(30s));
}

TEST(counted_time, of_several_taken_for_so_long_is_not_lengthened) {
  stage s;
  holdfast::mutex a{s.session, "a"}, b{s.session, "b"};
  holdfast::multi_lock both{a, b};
  const auto held = both.acquire(9s);
  const auto other = holdfast::mutex(s.session, "other", {.lease = 12s}).acquire();
  s.clock->advance(4s);
  harness::eventually("the other is renewed", [&] { return other.remaining() > 11s; });
  EXPECT_EQ(s.script->count(verb::renew), 1U);
}

TEST(counted_time, of_an_arrival_begins_before_it_is_sent) {
  stage s;
  const auto late = std::make_shared<delay>();
  late->each = 9'950ms;
  auto o = s.options();
  o.decorate = [&](auto inner) {
    return std::make_unique<slow_to_answer>(std::move(inner), late, s.clock);
  };
  holdfast::barrier b{holdfast::open("memory:", o), "b", 2, {.lease = 10s}};
  const auto arrival = b.arrive();
  s.seen->await(event_kind::lost);
}

struct lost_answers : testing::Test {
  holdfast::session open() {
    auto o = s.options();
    o.store_timeout = 1s;
    return holdfast::open("memory:lost-answers", o);
  }
  static bool unavailable(const std::function<void()>& call) {
    try {
      call();
    } catch (const holdfast::error& e) {
      EXPECT_EQ(e.reason(), holdfast::errc::unavailable) << e.what();
      return true;
    }
    return false;
  }
  /// Runs calls that wait without a deadline, while time passes.
  void while_time_goes_on(const std::function<void()>& calls) const {
    auto over = harness::concurrently(calls);
    harness::eventually("it is over", [&] {
      harness::to_next_wake(*s.clock, 2s);
      return over.wait_for(0s) == std::future_status::ready;
    });
    over.get();
  }
  bool fails(const std::function<void()>& call) const {
    bool failed = false;
    while_time_goes_on([&] { failed = unavailable(call); });
    return failed;
  }
  stage s{"memory:lost-answers"};
  holdfast::session session = open();
};

TEST_F(lost_answers, to_an_arrival_leave_no_participant_at_the_barrier) {
  holdfast::barrier b{session, "b", 2, {.lease = 1h}};
  s.script->set(verb::acquire, fault::drop_reply);
  EXPECT_TRUE(fails([&] { (void)b.arrive(); }));
  s.script->set(verb::acquire, fault::none);
  harness::eventually("nobody is there", [&] { return s.session.show("b").waiters.empty(); });
}

// As after a reconnect: the first attempt has ended its phase, and its entry has gone when the
// second one comes.
class asks_again final : public harness::passing_on {
 public:
  asks_again(std::unique_ptr<session_store> inner,
             std::shared_ptr<holdfast::testing::fake_clock> clock)
      : passing_on(std::move(inner)), clock_(std::move(clock)) {}
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    auto reply = inner_->permits(name, c);
    if (c.verb != verb::acquire) return reply;
    clock_->advance(2s);
    reply = inner_->permits(name, c);
    if (reply) reply->repeated = true;
    return reply;
  }

 private:
  const std::shared_ptr<holdfast::testing::fake_clock> clock_;
};

TEST_F(lost_answers, to_an_arrival_that_the_store_asked_for_again_do_not_have_it_count_twice) {
  auto o = s.options();
  o.decorate = [&](auto inner) { return std::make_unique<asks_again>(std::move(inner), s.clock); };
  holdfast::barrier b{holdfast::open("memory:lost-answers", o), "b", 2, {.lease = 1s}};
  holdfast::barrier elsewhere{session, "b", 2, {.lease = 1h}};
  auto first = elsewhere.arrive();
  try {
    (void)b.arrive();
    ADD_FAILURE() << "it is counted in the phase that has ended, and in the next one";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), holdfast::errc::lost) << e.what();
    EXPECT_TRUE(e.outcome_unknown()) << e.what();
  }
  harness::eventually("it is given back", [&] { return s.session.show("b").waiters.empty(); });
}

// Two of two would be counted, and continue.
TEST_F(lost_answers, to_an_arrival_do_not_have_it_count_twice_when_its_thread_repeats_it) {
  holdfast::barrier b{session, "b", 2, {.lease = 1h}};
  std::optional<holdfast::barrier::arrival> again;
  s.script->set(verb::acquire, fault::drop_reply);
  s.script->set(verb::release, fault::drop_request);
  while_time_goes_on([&] {
    EXPECT_TRUE(unavailable([&] { (void)b.arrive(); }));
    s.script->await(verb::release, 1);
    for (const auto v : {verb::acquire, verb::release}) s.script->set(v, fault::none);
    again = b.arrive();
  });
  EXPECT_EQ(s.session.show("b").waiters.size(), 1U);
}

TEST_F(lost_answers, to_an_arrival_are_no_matter_of_a_later_thread_of_the_same_id) {
  holdfast::barrier b{session, "b", 3, {.lease = 1h}};
  std::optional<holdfast::barrier::arrival> of_the_later;
  s.script->set(verb::acquire, fault::drop_reply);
  s.script->set(verb::release, fault::drop_request);
  while_time_goes_on([&] {
    harness::in_a_thread_of_the_same_id(
        [&] {
          EXPECT_TRUE(unavailable([&] { (void)b.arrive(); }));
          s.script->set(verb::acquire, fault::none);
        },
        [&] {
          EXPECT_FALSE(unavailable([&] { of_the_later = b.arrive(); }))
              << "it gave back what is not its own first";
        });
  });
  s.script->set(verb::release, fault::none);
}

TEST_F(lost_answers, to_a_next_arrival_leave_no_participant_behind_the_barrier) {
  {
    holdfast::barrier b{session, "b", 1, {.lease = 1h}};
    b.arrive_and_wait();
    s.script->set(verb::acquire, fault::drop_reply);
    EXPECT_TRUE(fails([&] { b.arrive_and_wait(); }));
    EXPECT_FALSE(s.session.show("b").holders.empty()) << "it was carried out";
  }
  EXPECT_TRUE(s.session.show("b").holders.empty());
}

TEST_F(lost_answers, to_a_next_arrival_do_not_have_its_thread_arrive_for_another_one_too) {
  holdfast::barrier b{session, "b", 2, {.lease = 1h}};
  auto of_another = harness::concurrently([&] { return b.arrive(); }).get();
  std::optional<holdfast::barrier::arrival> again;
  while_time_goes_on([&] {
    b.arrive_and_wait();
    b.wait(std::move(of_another));  // its participant rests beside this thread's
    s.script->set(verb::acquire, fault::drop_reply);
    EXPECT_TRUE(unavailable([&] { (void)b.arrive(); }));
    s.script->set(verb::acquire, fault::none);
    again = b.arrive();
  });
  EXPECT_EQ(s.session.show("b").waiters.size(), 1U);
}

// There is no room, and the entry of another thread's participant is over: an arrival for that
// participant would take the result that belongs to that thread.
TEST_F(lost_answers, to_an_arrival_whose_entry_expired_are_reported_to_its_thread) {
  const auto reason_of = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const holdfast::error& e) {
      return e.reason();
    }
    return holdfast::errc{};
  };
  holdfast::barrier b{session, "b", 1, {.lease = 30s}};
  holdfast::barrier elsewhere{s.session, "b", 1, {.lease = 1h}};
  b.arrive_and_wait();
  s.script->set(verb::acquire, fault::drop_reply);
  std::promise<void> asked, refused;
  auto of_another = harness::concurrently([&] {
    EXPECT_TRUE(unavailable([&] { b.arrive_and_wait(); }));
    asked.set_value();
    refused.get_future().wait();
    return reason_of([&] { b.arrive_and_wait(); });
  });
  while_time_goes_on([&] { asked.get_future().wait(); });
  s.script->set(verb::acquire, fault::none);
  s.clock->advance(31s);
  elsewhere.arrive_and_wait();
  while_time_goes_on([&] {
    EXPECT_EQ(reason_of([&] { b.arrive_and_wait(); }), holdfast::errc::capacity_mismatch);
  });
  refused.set_value();
  EXPECT_EQ(of_another.get(), holdfast::errc::lost);
}

// The store forgets a barrier that all have left, and nobody's lease has ended.
TEST_F(lost_answers, to_the_last_drop_do_not_blame_a_lease_that_lasts) {
  holdfast::barrier b{session, "b", 1, {.lease = 1h}};
  b.arrive_and_wait();
  s.script->set(verb::acquire, fault::drop_reply);
  try {
    while_time_goes_on([&] {
      EXPECT_TRUE(unavailable([&] { b.arrive_and_drop(); }));
      s.script->set(verb::acquire, fault::none);
      b.arrive_and_drop();
    });
    ADD_FAILURE() << "the store has no record of it";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), holdfast::errc::lost);
    EXPECT_TRUE(e.outcome_unknown());
    EXPECT_EQ(std::string(e.what()).find("lease ended"), std::string::npos) << e.what();
  }
}

TEST_F(lost_answers, do_not_end_the_renewal_after_an_arrival_that_was_not_sent) {
  holdfast::barrier b{session, "b", 1, {.lease = 30s}};
  b.arrive_and_wait();
  s.script->set(verb::acquire, fault::drop_request);
  EXPECT_TRUE(fails([&] { b.arrive_and_wait(); }));
  const auto renewals = s.script->count(verb::renew);
  s.clock->advance(20s);
  s.script->await(verb::renew, renewals + 1);
}

TEST_F(lost_answers, after_the_completion_do_not_have_it_run_again) {
  int completed = 0;
  holdfast::barrier b{session, "b", 1, {.lease = 1h, .on_completion = [&] {
                                          ++completed;
                                          s.script->set(verb::acquire, fault::drop_request);
                                        }}};
  EXPECT_TRUE(fails([&] { b.arrive_and_wait(); }));
  s.script->set(verb::acquire, fault::none);
  EXPECT_FALSE(fails([&] { b.arrive_and_wait(); }));
  EXPECT_EQ(completed, 1);
}

// One waiter that gives up, and behind it one that must get its wake-up.
class wake_up_that_was_lost : public lost_answers {
 protected:
  void SetUp() override {
    hears_nothing();
    elsewhere.emplace(others, "c");
    m_elsewhere.emplace(others, "m-elsewhere");
  }
  void TearDown() override {
    s.clock->advance(20h);
    second.join();
  }
  // Call it before the wait: the waiter asks as soon as it is queued, and that answer may come as
  // late as the notification.
  void hears_nothing() { s.script->set(verb::renew, fault::drop_reply); }
  void have_another_wait_behind_it() {
    s.await_waiters("c", 1);
    second = std::thread([this] {
      std::unique_lock lock{*m_elsewhere};
      woken = elsewhere->wait_for(lock, 10h) == std::cv_status::no_timeout;
    });
    s.await_waiters("c", 2);
  }
  template <class Over>
  void let_time_pass_until(const char* what, Over over) {
    harness::eventually(what, [&] {
      harness::to_next_wake(*s.clock, 2s);
      return over();
    });
  }
  void the_next_is_woken() {
    let_time_pass_until("the next is woken", [&] { return woken.load(); });
  }

  holdfast::session others = holdfast::open("memory:lost-answers", {.clock = s.clock});
  std::optional<holdfast::condition_variable> elsewhere{};
  std::optional<holdfast::mutex> m_elsewhere{};
  std::thread second{};
  std::atomic<bool> gave_up{false}, woken{false};
};

// It was woken, and cannot know it: the wake-up passes to the next one.
TEST_F(wake_up_that_was_lost, goes_to_the_next_waiter) {
  holdfast::condition_variable here{session, "c"};
  holdfast::mutex m{session, "m"};
  const std::jthread first([&] {
    std::unique_lock lock{m};
    EXPECT_THROW((void)here.wait_for(lock, 1s), holdfast::error);
    gave_up = true;
  });
  have_another_wait_behind_it();
  EXPECT_EQ(elsewhere->notify_one(), 1U);
  let_time_pass_until("it gives up", [&] { return gave_up.load(); });
  the_next_is_woken();
}

TEST_F(wake_up_that_was_lost, goes_to_the_next_waiter_also_if_the_removal_was_lost) {
  holdfast::condition_variable here{session, "c"};
  holdfast::mutex m{session, "m"};
  const std::jthread first([&] {
    std::unique_lock lock{m};
    EXPECT_THROW((void)here.wait_for(lock, 1s), holdfast::error);
    gave_up = true;
  });
  have_another_wait_behind_it();
  harness::eventually("the mutex is free", [&] { return s.session.show("m").holders.empty(); });
  const auto released = s.script->count(verb::release);
  s.script->set(verb::release, fault::drop_reply);
  EXPECT_EQ(elsewhere->notify_one(), 1U);
  let_time_pass_until("its goodbye", [&] { return s.script->count(verb::release) > released; });
  s.script->set(verb::release, fault::none);
  let_time_pass_until("it gives up", [&] { return gave_up.load(); });
  the_next_is_woken();
}

TEST_F(wake_up_that_was_lost, goes_to_the_next_waiter_also_if_the_entry_was_never_removed) {
  holdfast::condition_variable here{session, "c"};
  holdfast::mutex m{session, "m"};
  const std::jthread first([&] {
    std::unique_lock lock{m};
    EXPECT_THROW((void)here.wait_for(lock, 1s), holdfast::error);
    gave_up = true;
  });
  have_another_wait_behind_it();
  harness::eventually("the mutex is free", [&] { return s.session.show("m").holders.empty(); });
  s.script->set(verb::release, fault::drop_request);
  EXPECT_EQ(elsewhere->notify_one(), 1U);
  let_time_pass_until("it gives up", [&] { return gave_up.load(); });
  the_next_is_woken();
}

TEST_F(wake_up_that_was_lost, goes_to_the_next_waiter_also_if_that_could_not_be_reported) {
  holdfast::condition_variable here{session, "c"};
  holdfast::mutex m{session, "m"};
  const std::jthread first([&] {
    std::unique_lock lock{m};
    EXPECT_THROW((void)here.wait_for(lock, 1s), holdfast::error);
    gave_up = true;
  });
  have_another_wait_behind_it();
  s.script->set(verb::notify, fault::drop_request);
  EXPECT_EQ(elsewhere->notify_one(), 1U);
  let_time_pass_until("it gives up", [&] { return gave_up.load(); });
  s.script->set(verb::notify, fault::none);
  the_next_is_woken();
}

TEST_F(wake_up_that_was_lost, goes_to_the_next_waiter_also_without_threads) {
  holdfast::condition_variable here{session, "c"};
  holdfast::mutex m{session, "m"};
  for (const auto lost : {verb::release, verb::notify}) {
    woken = false;
    hears_nothing();
    std::stop_source stop;
    auto first = async_wait(here, m.acquire(), {}, stop.get_token()).future();
    have_another_wait_behind_it();
    harness::eventually("the mutex is free", [&] { return s.session.show("m").holders.empty(); });
    const auto sent = s.script->count(lost);
    s.script->set(lost, lost == verb::notify ? fault::drop_request : fault::drop_reply);
    const auto asked = s.script->count(verb::renew);
    EXPECT_EQ(elsewhere->notify_one(), 1U);
    let_time_pass_until("its question", [&] { return s.script->count(verb::renew) > asked; });
    stop.request_stop();
    let_time_pass_until("what is lost", [&] { return s.script->count(lost) > sent; });
    s.script->set(lost, fault::none);
    the_next_is_woken();
    second.join();
    s.script->set(verb::renew, fault::none);
    let_time_pass_until("it has ended",
                        [&] { return first.wait_for(0s) == std::future_status::ready; });
  }
  second = std::thread([] {});
}

}  // namespace
