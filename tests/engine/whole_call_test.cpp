#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <string>

#include "hanging_store.hpp"
#include "harness/concurrently.hpp"
#include "session/session_impl.hpp"
#include "wait/asked_once.hpp"

// The deadline of a call is that of all its parts, and whatever any of them left at the store is
// released after it. The clock is the machine's own, as the engine leaves no call on another one:
// on a slow machine a deadline may pass before the call has come to the store.
namespace {

using namespace engine_test;
using holdfast::admission;
using holdfast::boot_clock;
using holdfast::boot_time;
using holdfast::errc;
using holdfast::lease;
using holdfast::mutex;
using holdfast::rate_limiter;
using holdfast::result;
using holdfast::semaphore;
using holdfast::wait_limit;
using holdfast::woken;

struct whole_call : hanging_store {
  /// The result, if it came while the store hung.
  template <class T>
  T while_it_hangs(std::future<T> of, switchboard& hanging) {
    const bool came = of.wait_for(10s) == std::future_status::ready;
    EXPECT_TRUE(came) << "it waits for the store";
    if (!came) hanging.let_go();
    return of.get();
  }
  template <class T>
  T while_it_hangs(std::future<T> of) {
    return while_it_hangs(std::move(of), *store);
  }
  /// Waits until something has happened, or the call is over without it.
  template <class T>
  static void await_unless_over(const std::string& what, const std::future<T>& call,
                                const std::function<bool()>& happened) {
    harness::eventually(what + ", or it is over", [&] {
      return call.wait_for(0s) == std::future_status::ready || happened();
    });
  }
  /// Waits until the calls that came to the store have taken their tokens: before that, nothing is
  /// missing yet.
  void await_tokens(rate_limiter& limiter, std::uint64_t n) {
    harness::eventually("the calls that hung take theirs",
                        [&] { return store->taken >= store->to_take; });
    harness::eventually("the tokens come back",
                        [&] { return limiter.peek().tightest().remaining == n; });
  }
};

TEST_F(whole_call, a_late_permit_of_an_admission_is_released_after_the_call) {
  rate_limiter limiter{session, "r", {{.tokens = 10, .per = 1h}}};
  semaphore slots{session, "sem", 2};
  admission door{limiter, slots};
  mutex other{session, "other"};
  store->hang_but_for_permits();
  const auto late = while_it_hangs(async_admit(door, 3, {}, 50ms).future());
  ASSERT_TRUE(late);
  EXPECT_FALSE(*late);
  // When the session's thread asks for this, it has left the call and done its other work.
  EXPECT_TRUE(async_acquire(other).future().get());
  store->let_go();
  await_tokens(limiter, 10);
  await_free("sem");
}

TEST_F(whole_call, an_admission_that_was_abandoned_refunds_its_tokens_too) {
  rate_limiter limiter{session, "r", {{.tokens = 10, .per = 1h}}};
  semaphore slots{session, "sem", 2};
  admission door{limiter, slots};
  store->hang();
  EXPECT_FALSE(door.admit_for(50ms, 3));
  store->let_go();
  await_tokens(limiter, 10);
  await_free("sem");
}

TEST_F(whole_call, an_admission_behind_a_hanging_one_leaves_nothing_either) {
  rate_limiter limiter{session, "r", {{.tokens = 10, .per = 1h}}};
  semaphore slots{session, "sem", 2};
  admission door{limiter, slots};
  mutex other{session, "other"};
  store->hang();
  auto patient = async_acquire(other).future();
  store->await_hanging(1);  // the session's thread is in the store
  const auto late = while_it_hangs(async_admit(door, 3, {}, 50ms).future());
  EXPECT_FALSE(late && *late);
  store->let_go();
  EXPECT_TRUE(patient.get());
  await_free("sem");
  await_tokens(limiter, 10);
}

TEST_F(whole_call, tokens_that_come_too_late_are_refunded) {
  rate_limiter limiter{session, "r", {{.tokens = 10, .per = 1h}}};
  store->hang();
  EXPECT_FALSE(limiter.take_for(4, 50ms));
  const auto later = while_it_hangs(async_take(limiter, 4, {}, 50ms).future());
  EXPECT_TRUE(later && !*later) << "that its time was over is a decision";
  store->let_go();
  await_tokens(limiter, 10);
}

TEST_F(whole_call, tokens_are_not_wasted_behind_a_call_that_hangs) {
  rate_limiter limiter{session, "r", {{.tokens = 10, .per = 1h}}};
  mutex other{session, "other"};
  store->hang();
  auto patient = async_acquire(other).future();
  store->await_hanging(1);
  const auto late = while_it_hangs(async_take(limiter, 4, {}, 50ms).future());
  EXPECT_TRUE(late && !*late);
  store->let_go();
  EXPECT_TRUE(patient.get());
  await_tokens(limiter, 10);
}

/// A mutex that returns its lease when the time is over.
struct at_the_last_moment {
  mutex& inner;
  std::optional<lease> try_acquire_for(std::chrono::nanoseconds timeout, std::stop_token stop) {
    const boot_time until = boot_clock::now() + timeout;
    auto got = inner.try_acquire_for(timeout, std::move(stop));
    harness::eventually("the time is over", [&] { return boot_clock::now() >= until; });
    return got;
  }
  bool try_lock_for(std::chrono::nanoseconds timeout) {
    const boot_time until = boot_clock::now() + timeout;
    const bool got = inner.try_lock_for(timeout);
    harness::eventually("the time is over", [&] { return boot_clock::now() >= until; });
    return got;
  }
  void check() const { inner.check(); }
  void unlock() { inner.unlock(); }
};

TEST_F(whole_call, of_two_locks_the_second_has_no_time_of_its_own) {
  const auto there = std::make_shared<switchboard>();
  auto other = holdfast::open("memory:", options_of(there));
  mutex first{session, "first"}, second{other, "second"};
  at_the_last_moment late{first};
  holdfast::both two(late, second);
  there->hang();
  EXPECT_FALSE(while_it_hangs(
      harness::concurrently([&] { return two.try_acquire_for(50ms).has_value(); }), *there));
  EXPECT_FALSE(
      while_it_hangs(harness::concurrently([&] { return two.try_lock_for(50ms); }), *there));
  there->let_go();
  await_free("first");
}

TEST_F(whole_call, of_two_locks_the_second_has_no_time_of_its_own_without_a_thread) {
  const auto there = std::make_shared<switchboard>();
  auto other = holdfast::open("memory:", options_of(there));
  mutex first{session, "first"}, second{other, "second"};
  holdfast::both two(first, second);
  auto begun = async_acquire(two, 50ms);
  // It begins when its time is over.
  const boot_time until = boot_clock::now() + 50ms;
  harness::eventually("the time is over", [&] { return boot_clock::now() >= until; });
  there->hang();
  const auto late = while_it_hangs(std::move(begun).future(), *there);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, errc::timed_out) << late.error().what;
  there->let_go();
  await_free("first");
}

TEST_F(whole_call, the_first_of_two_locks_is_released_although_the_second_store_hangs) {
  const auto there = std::make_shared<switchboard>();
  auto other = holdfast::open("memory:", options_of(there));
  mutex first{session, "first"}, second{other, "second"};
  holdfast::both two(first, second);
  there->hang();
  auto begun = async_acquire(two, 300ms).future();
  await_unless_over("the second hangs", begun, [&] { return there->hanging() > 0; });
  store->hang();
  EXPECT_FALSE(while_it_hangs(std::move(begun)));
  store->let_go();
  there->let_go();
  await_free("first");
}

TEST_F(whole_call, an_unconfirmed_release_of_the_first_of_two_locks_is_not_awaited) {
  const auto there = std::make_shared<switchboard>();
  auto other = holdfast::open("memory:", options_of(there));
  holdfast::lock_options unconfirmed;
  unconfirmed.unconfirmed_release = true;
  mutex first{session, "first", unconfirmed}, second{other, "second"};
  holdfast::both two(first, second);
  there->hang();
  auto begun = harness::concurrently([&] { return two.try_acquire_for(300ms).has_value(); });
  await_unless_over("the second hangs", begun, [&] { return there->hanging() > 0; });
  store->hang();
  EXPECT_FALSE(while_it_hangs(std::move(begun)));
  store->let_go();
  there->let_go();
  await_free("first");
}

TEST_F(whole_call, an_arrival_counts_once_although_the_wait_for_it_ended_behind_a_call_that_hangs) {
  holdfast::barrier all{session, "b", 2};
  mutex other{session, "other"};
  const auto arrived = [&] { return session.show("b").waiters.size(); };
  std::stop_source stop;
  auto first = async_arrive_and_wait(all, {}, stop.get_token()).future();
  harness::eventually("it has arrived", [&] { return arrived() == 1; });
  store->hang();
  auto patient = async_acquire(other).future();
  store->await_hanging(1);
  stop.request_stop();
  EXPECT_EQ(while_it_hangs(std::move(first)).error().code, errc::cancelled);
  auto again = async_arrive_and_wait(all).future();
  store->let_go();
  EXPECT_TRUE(patient.get());
  EXPECT_EQ(arrived(), 1U);
  all.arrive_and_wait();  // the phase in which it has arrived already
  all.arrive_and_wait();
  EXPECT_TRUE(again.get());
}

TEST_F(whole_call, an_arrival_that_hangs_itself_ends_in_time) {
  holdfast::barrier all{session, "b", 2};
  store->hang();
  EXPECT_EQ(while_it_hangs(async_arrive_and_wait(all, 50ms).future()).error().code,
            errc::timed_out);
  await_free("b");
}

TEST_F(whole_call, a_wait_for_the_next_leader_ends_in_time_behind_a_call_that_hangs) {
  holdfast::election chief{session, "e"};
  auto seen = chief.observe();
  mutex other{session, "other"};
  auto none = async_next(seen, 200ms).future();
  store->hang();
  auto patient = async_acquire(other).future();
  store->await_hanging(1);
  EXPECT_EQ(while_it_hangs(std::move(none)).error().code, errc::timed_out);
  auto next = async_next(seen).future();  // of the same stream
  store->let_go();
  EXPECT_TRUE(patient.get());
  const auto mine = chief.campaign();
  EXPECT_EQ(next.get().value().term, mine.term());
}

/// A queued wait for a condition, behind a call that hangs. The wait must acquire the mutex again,
/// which is at a store that answers.
struct queued_for_a_condition : whole_call {
  holdfast::session elsewhere = holdfast::open(url + "-other");
  mutex m{elsewhere, "m"}, other{session, "other"};
  holdfast::condition_variable changed{session, "c"};
  std::future<result<lease>> hangs;

  std::future<result<woken>> waits(wait_limit limit, std::stop_token stop = {}) {
    auto waiting = async_wait(changed, m.acquire(), limit, std::move(stop)).future();
    await_unless_over("it waits", waiting, [&] { return session.show("c").waiters.size() == 1; });
    store->hang();
    hangs = async_acquire(other).future();
    store->await_hanging(1);  // the session's thread is in the store
    return waiting;
  }
  void store_answers() {
    store->let_go();
    EXPECT_TRUE(hangs.get());
    await_free("c");
  }
};

TEST_F(queued_for_a_condition, a_wait_times_out_while_the_store_hangs) {
  const auto ended = while_it_hangs(waits(200ms));
  ASSERT_TRUE(ended) << ended.error().what;
  EXPECT_EQ(ended->status, std::cv_status::timeout);
  EXPECT_EQ(ended->held.state(), holdfast::lease_state::held);
  store_answers();
}

TEST_F(queued_for_a_condition, a_wait_that_is_stopped_ends_while_the_store_hangs) {
  std::stop_source stop;
  auto waiting = waits({}, stop.get_token());
  stop.request_stop();
  EXPECT_EQ(while_it_hangs(std::move(waiting)).error().code, errc::cancelled);
  store_answers();
}

TEST_F(whole_call, a_wait_for_a_condition_that_is_stopped_before_it_is_queued_ends_in_time) {
  mutex m{session, "m"};
  holdfast::condition_variable changed{session, "c"};
  lease held = m.acquire();
  std::stop_source stop;
  store->hang();
  auto waiting = async_wait(changed, std::move(held), {}, stop.get_token()).future();
  store->await_hanging(1);
  stop.request_stop();
  EXPECT_EQ(while_it_hangs(std::move(waiting)).error().code, errc::cancelled);
  await_free("m");
  await_free("c");
}

TEST_F(whole_call, a_wait_for_a_condition_that_was_stopped_before_ends_in_time) {
  mutex m{session, "m"};
  holdfast::condition_variable changed{session, "c"};
  lease held = m.acquire();
  std::stop_source stop;
  stop.request_stop();
  store->hang();
  auto waiting = async_wait(changed, std::move(held), {}, stop.get_token()).future();
  EXPECT_EQ(while_it_hangs(std::move(waiting)).error().code, errc::cancelled);
  await_free("m");
}

TEST_F(whole_call, a_deadline_is_kept_behind_any_number_of_hanging_calls) {
  holdfast::barrier all{session, "b", 2};
  std::vector<std::future<holdfast::result<lease>>> patient;
  std::vector<std::unique_ptr<mutex>> locks;
  store->hang();
  for (std::size_t i = 1; i <= 3; ++i) {
    locks.push_back(std::make_unique<mutex>(session, "m" + std::to_string(i)));
    patient.push_back(async_acquire(*locks.back()).future());
    store->await_hanging(i);
    EXPECT_EQ(while_it_hangs(async_arrive_and_wait(all, 50ms).future()).error().code,
              errc::timed_out);
  }
  store->let_go();
  for (auto& p : patient) EXPECT_TRUE(p.get());
}

// The release that a callback makes on the session's thread.
TEST_F(whole_call, a_callback_that_hangs_in_the_store_keeps_no_other_wait) {
  mutex first{session, "first"}, second{session, "second"};
  holdfast::barrier all{session, "b", 2};
  std::promise<void> has_it, given_back;
  async_acquire(first).start([&](holdfast::result<lease> got) {
    store->hang();
    has_it.set_value();
    (void)got->release();
    given_back.set_value();
  });
  has_it.get_future().get();
  store->await_hanging(1);
  EXPECT_EQ(while_it_hangs(async_arrive_and_wait(all, 50ms).future()).error().code,
            errc::timed_out);
  store->let_go();
  given_back.get_future().get();
  EXPECT_TRUE(async_acquire(second).future().get());
}

// A request of a batch that its caller has left is not completed a second time, and the rest of the
// batch is completed.
TEST_F(whole_call, in_a_batch_that_hangs_a_request_with_time_waits_on) {
  mutex a{session, "a"}, b{session, "b"}, c{session, "c"};
  store->hang();
  auto first = async_acquire(c).future();
  store->await_hanging(1);
  auto hasty = async_acquire(a, 300ms);
  auto patient = async_acquire(b).future();
  auto told = std::move(hasty).future();
  store->let_go();
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(patient.get());
  EXPECT_TRUE(told.get());
}

// As the release of a vote that was not answered.
TEST_F(whole_call, the_requests_of_an_owner_keep_their_order_where_a_call_hangs) {
  using holdfast::engine::asked_once;
  const auto impl = session.impl();
  holdfast::store::permits_command vote;
  vote.verb = permits_verb::acquire;
  vote.owner = impl->new_owner();
  vote.kind = holdfast::store::kind::mutex;
  vote.capacity = 1;
  vote.lease_us = std::chrono::microseconds(1h).count();
  vote.peer = impl->peer();
  holdfast::engine::lock_config named;
  named.name = "vote";
  const auto what = std::make_shared<const holdfast::engine::lock_config>(named);
  std::promise<bool> voted, released;
  store->hang();
  asked_once::start(impl, what, vote,
                    [&](auto reply, boot_time, bool) { voted.set_value(bool(reply)); });
  store->await_hanging(1);
  store->permits_pass = true;
  mutex a{session, "a"}, b{session, "b"};
  EXPECT_FALSE(while_it_hangs(async_acquire(a, 50ms).future())) << "nobody leads before that";
  asked_once::start(impl, what, holdfast::engine::release_command(vote.owner),
                    [&](auto reply, boot_time, bool) { released.set_value(bool(reply)); });
  EXPECT_TRUE(while_it_hangs(async_acquire(b).future()));
  store->let_go();
  EXPECT_TRUE(voted.get_future().get());
  EXPECT_TRUE(released.get_future().get());
  await_free("vote");
}

/// The first answer comes when the time is over, the next ones not at all.
class late_then_hanging final : public harness::passing_on {
 public:
  late_then_hanging(std::unique_ptr<session_store> inner, std::shared_ptr<switchboard> by,
                    std::shared_ptr<std::atomic<boot_time>> at)
      : passing_on(std::move(inner)), by_(std::move(by)), answers_at_(std::move(at)) {}
  holdfast::result<std::vector<holdfast::store::permits_reply>> acquire_together(
      std::span<const holdfast::store::named_command> all) override {
    auto answer = inner_->acquire_together(all);
    harness::eventually("the time is over",
                        [&] { return boot_clock::now() >= answers_at_->load(); });
    if (!hung_.exchange(true)) by_->hang();  // and not once more when it is released
    return answer;
  }

 private:
  std::atomic<bool> hung_{false};
  const std::shared_ptr<switchboard> by_;
  const std::shared_ptr<std::atomic<boot_time>> answers_at_;
};

TEST_F(whole_call, a_multi_lock_has_one_deadline_over_all_its_stores) {
  const auto there = std::make_shared<switchboard>();
  const auto answers_at = std::make_shared<std::atomic<boot_time>>(boot_time{});
  auto o = options_of(there);
  o.decorate = [there, answers_at](auto inner) {
    return std::make_unique<late_then_hanging>(std::make_unique<hanging>(std::move(inner), there),
                                               there, answers_at);
  };
  auto other = holdfast::open(url + "-other", o);
  auto third = holdfast::open(url + "-other");
  mutex here{session, "a"}, away{other, "b"};
  lease theirs = mutex{third, "b"}.acquire();
  holdfast::multi_lock all{here, away};
  *answers_at = boot_clock::now() + 300ms;
  EXPECT_FALSE(while_it_hangs(
      harness::concurrently([&] {
        try {
          return all.try_acquire_for(answers_at->load() - boot_clock::now()).has_value();
        } catch (const holdfast::error& e) {
          EXPECT_EQ(e.reason(), errc::unavailable) << e.what();
          return false;
        }
      }),
      *there));
  there->let_go();
  await_free("a");
}

TEST_F(whole_call, a_late_grant_is_reported_also_without_a_thread) {
  mutex m{session, "m"};
  store->grants_in_vain_once = true;
  store->hang();
  const auto late = while_it_hangs(async_acquire(m, 500ms).future());
  ASSERT_FALSE(late);
  const bool has_asked = !store->grants_in_vain_once;
  EXPECT_EQ(late.error().code, has_asked ? errc::unavailable : errc::timed_out)
      << late.error().what;
  EXPECT_TRUE(!has_asked || late.error().outcome_unknown);
  await_free("m");
}

TEST_F(whole_call, a_try_without_a_thread_does_not_wait_for_pending_calls) {
  mutex a{session, "a"}, b{session, "b"};
  store->hang();
  auto patient = async_acquire(a).future();
  store->await_hanging(1);
  const auto tried = while_it_hangs(async_acquire(b, 0ms).future());
  ASSERT_FALSE(tried);
  EXPECT_EQ(tried.error().code, errc::unavailable);
  EXPECT_TRUE(tried.error().outcome_unknown);
  store->let_go();
  EXPECT_TRUE(patient.get());
  await_free("b");
}

TEST_F(whole_call, a_wait_that_began_while_the_store_hung_ends_when_it_is_stopped) {
  mutex a{session, "a"}, b{session, "b"};
  store->hang();
  auto patient = async_acquire(a).future();
  store->await_hanging(1);
  std::stop_source stop;
  auto late = async_acquire(b, {}, stop.get_token()).future();
  stop.request_stop();
  const auto stopped = while_it_hangs(std::move(late));
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, errc::cancelled);
  store->let_go();
  EXPECT_TRUE(patient.get());
  await_free("b");
}

TEST_F(whole_call, a_callback_of_a_finished_call_has_no_call_limit) {
  holdfast::latch local_queue{session, "l", 1};
  local_queue.count_down();
  std::promise<boot_time> limit;
  async_wait(local_queue, 1h).start([&](holdfast::status) {
    limit.set_value(holdfast::engine::call_limit::present());
  });
  EXPECT_EQ(limit.get_future().get(), holdfast::forever);
}

}  // namespace
