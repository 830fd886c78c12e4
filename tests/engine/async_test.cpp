#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <holdfast/both.hpp>
#include <thread>

#include "harness/concurrently.hpp"
#include "harness/detached_task.hpp"
#include "harness/next_wake.hpp"
#include "harness/passing_on.hpp"
#include "harness/still_clock.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

namespace {

using namespace engine_test;
using holdfast::done;
using holdfast::errc;
using holdfast::lease;
using holdfast::mutex;
using holdfast::result;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;
using held_future = std::future<result<lease>>;

held_future wait_for(mutex& m, holdfast::wait_limit limit = {}, std::stop_token stop = {}) {
  return async_acquire(m, limit, std::move(stop)).future();
}

/// The failure's code, or `internal` on success.
template <class T>
errc why(std::future<result<T>>& f) {
  const auto r = f.get();
  return r ? errc::internal : r.error().code;
}

bool is_ready(const held_future& f) { return f.wait_for(0s) == std::future_status::ready; }

std::size_t in_line(const stage& s, const mutex& m) {
  return s.session.impl()->local_queue_of(m.name())->waiting();
}

void await_in_line(const stage& s, const mutex& m, std::size_t n) {
  harness::eventually("in line", [&] { return in_line(s, m) == n; });
}

/// Two sessions on one store; the other one has the lock.
struct two_sessions : stage {
  explicit two_sessions(const std::string& url)
      : stage(url), other(holdfast::open(url, options())) {
    theirs = mutex{other, "m"}.acquire();
  }
  holdfast::session other;
  lease theirs;
};

TEST(async, a_released_lock_goes_to_the_waiter_with_a_greater_fence) {
  stage s;
  mutex m{s.session, "m"};
  auto first = wait_for(m).get();
  ASSERT_TRUE(first);
  auto second = wait_for(m);
  await_in_line(s, m, 1);
  EXPECT_FALSE(is_ready(second));
  const auto fence = first->fence();
  EXPECT_FALSE(first->release());
  const auto got = second.get();
  ASSERT_TRUE(got);
  EXPECT_GT(got->fence(), fence);
}

TEST(async, an_operation_that_was_not_started_does_nothing) {
  stage s;
  mutex m{s.session, "m"};
  {
    const auto never = async_acquire(m);
    EXPECT_TRUE(never);
  }
  EXPECT_EQ(s.session.store_operations(), 0U);
  EXPECT_EQ(s.seen->count(holdfast::event_kind::gave_up), 0U);
}

TEST(async, waiters_in_the_local_queue_are_served_in_order_without_the_store) {
  stage s;
  mutex m{s.session, "m"};
  auto held = m.acquire();
  std::vector<int> order;
  std::promise<void> all;
  for (int i = 1; i <= 20; ++i) {
    async_acquire(m).start([&, i](result<lease> mine) {
      EXPECT_TRUE(mine);
      order.push_back(i);
      if (i == 20) all.set_value();
    });
  }
  await_in_line(s, m, 20);
  const auto before = s.session.store_operations();
  EXPECT_FALSE(held.release());
  all.get_future().wait();
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  harness::eventually("given back", [&] { return s.session.show("m").holders.empty(); });
  EXPECT_LE(s.script->count(verb::release), 1U);
  EXPECT_EQ(s.script->count(verb::acquire), 1U);
  EXPECT_GE(s.session.store_operations(), before);
}

TEST(async, a_wait_in_the_local_queue_ends_at_its_deadline) {
  stage s;
  mutex m{s.session, "m"};
  const lease held = m.acquire();
  auto waiting = wait_for(m, 1s);
  await_in_line(s, m, 1);
  s.clock->advance(999ms);
  EXPECT_FALSE(is_ready(waiting));
  s.clock->advance(1ms);
  EXPECT_EQ(why(waiting), errc::timed_out);
  EXPECT_EQ(in_line(s, m), 0U);
}

/// A clock that advances by a second while a thread of the session has asked for the time, and has
/// no answer yet: at the n-th call since begin().
class slow_to_tell final : public harness::still_clock {
 public:
  explicit slow_to_tell(int n) : left_(n) {}
  holdfast::boot_time now() const noexcept override {
    const auto was = time.now();
    const bool watched = begun_ && !moved_ && std::this_thread::get_id() != test_;
    if (!watched || --left_ != 0) return was;
    asking_ = true;
    while (time.now() == was) std::this_thread::yield();
    return was;
  }

  void begin() { begun_ = true; }
  /// Advances once: at that call, or when a thread sleeps until `sleeps_until`, as no such call
  /// comes then.
  void move_on(holdfast::boot_time sleeps_until) {
    harness::eventually("the moment", [&] { return asking_ || time.next_wake() == sleeps_until; });
    moved_ = true;
    time.advance(1s);
  }

 private:
  const std::thread::id test_ = std::this_thread::get_id();
  mutable std::atomic<int> left_;
  mutable std::atomic<bool> asking_ = false;
  std::atomic<bool> begun_ = false, moved_ = false;
};

TEST(async, a_wait_in_the_local_queue_ends_at_its_deadline_in_any_state) {
  for (int round = 0; round < 60; ++round) {
    const int moment = 1 + round % 15;
    SCOPED_TRACE(moment);
    const auto clock = std::make_shared<slow_to_tell>(moment);
    auto session = holdfast::open("memory:", {.clock = clock});
    mutex m{session, "m"};
    const lease held = m.acquire();
    const auto before = clock->time.now();
    clock->begin();
    const auto time = harness::concurrently([&] { clock->move_on(before + 1s); });
    auto waiting = wait_for(m, 1s);
    const bool early = clock->time.now() != before;  // than the wait, perhaps
    time.wait();
    if (early) clock->time.advance(1s);
    harness::eventually("its end", [&] { return is_ready(waiting); });
    EXPECT_EQ(why(waiting), errc::timed_out);
  }
}

TEST(async, a_wait_at_the_store_ends_at_its_deadline_and_leaves_the_queue) {
  two_sessions s("memory:async1");
  mutex m{s.session, "m"};
  auto waiting = wait_for(m, 10s);
  s.await_waiters("m", 1);
  harness::eventually("the deadline", [&] {
    harness::pass(*s.clock, 100ms);
    return is_ready(waiting);
  });
  EXPECT_EQ(why(waiting), errc::timed_out);
  harness::eventually("no place", [&] { return s.session.show("m").waiters.empty(); });
}

TEST(async, a_limit_of_zero_is_one_try) {
  two_sessions s("memory:async2");
  mutex m{s.session, "m"};
  auto at_store = wait_for(m, 0s);
  EXPECT_EQ(why(at_store), errc::busy);
  EXPECT_FALSE(s.theirs.release());
  const auto got = wait_for(m, 0s).get();
  ASSERT_TRUE(got);
  auto in_local_queue = wait_for(m, 0s);
  EXPECT_EQ(why(in_local_queue), errc::busy);
}

TEST(async, a_wait_that_is_already_stopped_sends_no_request) {
  stage s;
  mutex m{s.session, "m"};
  std::stop_source stop;
  stop.request_stop();
  auto waiting = wait_for(m, {}, stop.get_token());
  EXPECT_EQ(why(waiting), errc::cancelled);
  EXPECT_EQ(s.session.store_operations(), 0U);
}

TEST(async, a_wait_that_is_stopped_in_the_local_queue_leaves_it) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  std::stop_source stop;
  auto waiting = wait_for(m, {}, stop.get_token());
  auto behind = wait_for(m);
  await_in_line(s, m, 2);
  stop.request_stop();
  EXPECT_EQ(why(waiting), errc::cancelled);
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(behind.get());
}

TEST(async, a_wait_that_is_stopped_at_the_store_leaves_the_queue) {
  two_sessions s("memory:async3");
  mutex m{s.session, "m"};
  std::stop_source stop;
  auto waiting = wait_for(m, {}, stop.get_token());
  s.await_waiters("m", 1);
  auto behind = wait_for(m);
  await_in_line(s, m, 1);
  stop.request_stop();
  EXPECT_EQ(why(waiting), errc::cancelled);
  EXPECT_FALSE(s.theirs.release());
  EXPECT_TRUE(behind.get());
}

TEST(async, a_grant_that_races_with_a_stop_is_held_or_released_and_never_left) {
  auto session = holdfast::open("memory:");
  mutex m{session, "m"};
  holdfast::fair_mutex fair{session, "fair"};
  for (int i = 0; i < 2'000; ++i) {
    for (mutex* const lock : {&m, static_cast<mutex*>(&fair)}) {
      lease held = lock->acquire();
      std::stop_source stop;
      auto waiting = wait_for(*lock, {}, stop.get_token());
      std::thread canceller([&] { stop.request_stop(); });
      EXPECT_FALSE(held.release());
      canceller.join();
      const auto how = waiting.get();
      EXPECT_TRUE(how || how.error().code == errc::cancelled) << how.error().what;
    }
  }
  for (const char* const name : {"m", "fair"}) {
    harness::eventually(name, [&] {
      const auto info = session.show(name);
      return info.holders.empty() && info.waiters.empty();
    });
  }
}

TEST(async, a_stop_after_the_end_changes_nothing) {
  stage s;
  mutex m{s.session, "m"};
  std::stop_source stop;
  const auto got = wait_for(m, {}, stop.get_token()).get();
  stop.request_stop();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->state(), holdfast::lease_state::held);
}

TEST(async, a_lingering_lock_is_acquired_without_the_store) {
  stage s;
  mutex m{s.session, "m", {.linger = 1h}};
  {
    const auto first = wait_for(m).get().value();
  }
  const auto before = s.session.store_operations();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(wait_for(m).get());
  EXPECT_EQ(s.session.store_operations(), before);
}

TEST(async, a_request_is_refused_when_the_local_queue_is_full) {
  stage s;
  mutex m{s.session, "m", {.max_waiters = 1}};
  const lease held = m.acquire();
  auto waiting = wait_for(m);
  await_in_line(s, m, 1);
  auto shed = wait_for(m);
  EXPECT_EQ(why(shed), errc::overloaded);
  EXPECT_FALSE(is_ready(waiting));
}

TEST(async, a_lost_notification_costs_a_second_at_most) {
  two_sessions s("memory:async4");
  mutex m{s.session, "m"};
  s.script->set(verb::acquire, fault::drop_notification);
  auto waiting = wait_for(m);
  s.await_waiters("m", 1);
  EXPECT_FALSE(s.theirs.release());
  ASSERT_TRUE(harness::until_threads_rest());
  EXPECT_FALSE(is_ready(waiting)) << "it is lost";
  s.clock->advance(1s);
  EXPECT_TRUE(waiting.get());
  EXPECT_EQ(s.seen->count(holdfast::event_kind::notification_gap), 1U);
}

// A thread of the process has the lock, an owner of another process waits, and an asynchronous
// request of this process is in the local queue: the release requests the lock for it, and it is
// notified when its turn comes.
TEST(async, a_waiter_queued_by_a_release_is_notified_of_its_grant) {
  stage s("memory:async5");
  auto other = holdfast::open("memory:async5", s.options());
  mutex m{s.session, "m", {.local_time = 0us}};
  for (int i = 0; i < 300; ++i) {
    lease held = m.acquire();
    auto remote = async_acquire(*std::make_unique<mutex>(other, "m")).future();
    s.await_waiters("m", 1);
    auto waiting = wait_for(m);
    await_in_line(s, m, 1);
    EXPECT_FALSE(held.release());
    {
      const auto theirs = remote.get();
    }
    EXPECT_TRUE(waiting.get());
  }
}

TEST(async, waiters_with_and_without_a_thread_take_turns) {
  auto session = holdfast::open("memory:");
  mutex m{session, "m"};
  constexpr int each = 2'000;
  int counter = 0;  // not atomic: only the lock protects it
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        const lease mine = m.acquire();
        ++counter;
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        const auto mine = async_acquire(m).future().get();
        ASSERT_TRUE(mine);
        ++counter;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(counter, 4 * each);
}

TEST(async, a_wait_retries_until_its_deadline_while_the_store_is_away) {
  stage s;
  mutex m{s.session, "m"};
  s.script->set(verb::acquire, fault::drop_request);
  auto waiting = wait_for(m, 60s);
  s.script->await(verb::acquire, 1);
  harness::eventually("tried again", [&] {
    harness::pass(*s.clock, 100ms);
    return s.script->count(verb::acquire) >= 5;
  });
  s.script->set(verb::acquire, fault::none);
  harness::eventually("granted", [&] {
    harness::pass(*s.clock, 100ms);
    return is_ready(waiting);
  });
  EXPECT_TRUE(waiting.get());
}

TEST(async, a_wait_without_a_deadline_ends_at_store_timeout_during_an_outage) {
  stage s;
  mutex m{s.session, "m"};
  s.script->set(verb::acquire, fault::drop_reply);
  auto waiting = wait_for(m);
  harness::eventually("given up", [&] {
    harness::pass(*s.clock, 1s);
    return is_ready(waiting);
  });
  EXPECT_EQ(why(waiting), errc::unavailable);
  harness::eventually("what the lost reply may have granted is given back",
                      [&] { return s.session.show("m").holders.empty(); });
}

TEST(async, a_failed_final_release_is_repeated_when_the_store_is_back) {
  stage s;
  mutex m{s.session, "m"};
  s.script->set(verb::acquire, fault::drop_reply);
  s.script->set(verb::release, fault::drop_request);
  auto waiting = wait_for(m);
  harness::eventually("given up", [&] {
    harness::pass(*s.clock, 1s);
    return is_ready(waiting);
  });
  EXPECT_EQ(s.session.show("m").holders.size(), 1U);
  s.script->set(verb::release, fault::none);
  harness::eventually("released", [&] {
    harness::pass(*s.clock, 100ms);
    return s.session.show("m").holders.empty();
  });
}

TEST(async, an_error_names_the_operation_the_name_and_the_store) {
  stage s;
  mutex m{s.session, "m"};
  const lease held = m.acquire();
  try {
    (void)wait_for(m, 0s).get().value();
    FAIL() << "nothing was thrown";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.operation(), "mutex");
    EXPECT_EQ(e.name(), "m");
    EXPECT_EQ(e.store(), "memory:");
  }
}

// ---- the end of a session

TEST(async_end, waiters_of_a_closed_session_are_notified_and_leave_the_queue) {
  const auto clock = std::make_shared<holdfast::testing::fake_clock>();
  auto other = holdfast::open("memory:async6", {.clock = clock});
  const lease theirs = mutex{other, "m"}.acquire();
  std::vector<held_future> waiting;
  {
    auto session = holdfast::open("memory:async6", {.clock = clock});
    mutex m{session, "m"};
    holdfast::fair_mutex fair{session, "m"};
    for (int i = 0; i < 10; ++i) waiting.push_back(wait_for(m));
    for (int i = 0; i < 10; ++i) waiting.push_back(wait_for(fair));
    harness::eventually("waiters", [&] { return other.show("m").waiters.size() == 11; });
  }
  for (auto& w : waiting) {
    ASSERT_TRUE(is_ready(w));
    const auto how = w.get();
    ASSERT_FALSE(how);
    EXPECT_EQ(how.error().code, errc::cancelled);
    EXPECT_NE(how.error().what.find("session ended"), std::string::npos) << how.error().what;
  }
  EXPECT_TRUE(other.show("m").waiters.empty());
}

TEST(async_end, a_wait_that_just_began_ends_when_its_session_closes) {
  for (int i = 0; i < 500; ++i) {
    held_future waiting;
    {
      auto session = holdfast::open("memory:");
      mutex m{session, "m"};
      waiting = wait_for(m);
    }
    const auto how = waiting.get();
    EXPECT_TRUE(how || how.error().code == errc::cancelled);
  }
}

TEST(async_end, an_operation_that_was_not_started_keeps_its_session) {
  auto other = holdfast::open("memory:async-end");
  const lease held = mutex{other, "m"}.acquire();  // otherwise it could be acquired too early
  std::optional<holdfast::pending<lease>> later;
  {
    auto session = holdfast::open("memory:async-end");
    later = async_acquire(*std::make_unique<mutex>(session, "m"));
  }
  auto how = std::move(*later).future();
  EXPECT_EQ(why(how), errc::cancelled) << "nothing keeps it from then on";
}

TEST(async_end, a_lease_keeps_its_session_and_may_close_it_on_the_session_thread) {
  for (int i = 0; i < 200; ++i) {
    std::promise<void> told;
    {
      auto session = std::make_unique<holdfast::session>(holdfast::open("memory:"));
      auto m = std::make_shared<mutex>(*session, "m");
      auto& lock = *m;
      async_acquire(lock).start([m = std::move(m), &told](result<lease> mine) mutable {
        EXPECT_TRUE(mine);
        m.reset();
        mine = holdfast::failure{};  // the last reference to the session
        told.set_value();
      });
    }
    told.get_future().wait();
  }
}

TEST(async_end, a_session_that_cannot_reach_its_store_closes_nevertheless) {
  stage s("memory:async7");
  auto session = std::make_unique<holdfast::session>(holdfast::open("memory:async7", s.options()));
  s.script->set(verb::acquire, fault::drop_request);
  s.script->set(verb::release, fault::drop_request);
  auto waiting = wait_for(*std::make_unique<mutex>(*session, "m"));
  s.script->await(verb::acquire, 1);
  session.reset();
  EXPECT_EQ(why(waiting), errc::cancelled);
}

TEST(async_end, a_forked_child_cannot_begin_and_does_not_disturb_the_parent) {
  auto session = holdfast::open("memory:");
  mutex m{session, "m"};
  lease held = m.acquire();
  std::stop_source stop;
  auto waiting = wait_for(m, {}, stop.get_token());
  const pid_t pid = ::fork();
  if (pid == 0) {
    stop.request_stop();  // of a wait that only the parent has
    auto mine = wait_for(m);
    ::_exit(why(mine) == errc::forked ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(is_ready(waiting));
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(waiting.get());
}

// ---- together

/// Counts the round trips that carry many commands.
class counting final : public harness::passing_on {
 public:
  counting(std::unique_ptr<session_store> inner, std::shared_ptr<script> s)
      : passing_on(std::move(inner)), script_(std::move(s)) {}
  std::vector<result<holdfast::store::permits_reply>> execute_batch(
      std::span<const holdfast::store::named_command> batch) override {
    (void)script_->choose(batch.front().command.verb);
    return inner_->execute_batch(batch);
  }

 private:
  std::shared_ptr<script> script_;
};

TEST(async_together, simultaneous_requests_share_one_round_trip) {
  const auto batches = std::make_shared<script>();
  auto session = holdfast::open("memory:", {.decorate = [&](auto inner) {
                                  return std::make_unique<counting>(std::move(inner), batches);
                                }});
  holdfast::semaphore permits{session, "s", 100};
  batches->hang(verb::acquire);
  std::vector<held_future> all;
  all.push_back(async_acquire(permits).future());
  batches->await(verb::acquire, 1);
  for (int i = 0; i < 50; ++i) all.push_back(async_acquire(permits).future());
  batches->let_go();
  std::vector<lease> held;
  for (auto& f : all) held.push_back(f.get().value());
  EXPECT_EQ(batches->count(verb::acquire), 2U);
}

TEST(async_together, a_callback_may_start_the_next_operation) {
  stage s;
  mutex m{s.session, "m"};
  std::promise<int> end;
  std::function<void(int)> again = [&](int left) {
    async_acquire(m).start([&, left](result<lease> mine) {
      EXPECT_TRUE(mine);
      mine = holdfast::failure{};
      left == 0 ? end.set_value(left) : again(left - 1);
    });
  };
  again(1'000);
  EXPECT_EQ(end.get_future().get(), 0);
}

// ---- held leases

TEST(async_lease, a_release_does_not_wait_for_the_round_trip) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  s.script->hang(verb::release);
  auto released = async_release(std::move(held)).future();
  s.script->await(verb::release, 1);
  EXPECT_EQ(released.wait_for(0s), std::future_status::timeout);
  s.script->let_go();
  EXPECT_TRUE(released.get());
  EXPECT_TRUE(s.session.show("m").holders.empty());
}

TEST(async_lease, a_release_of_a_lost_lease_reports_the_loss) {
  stage s;
  mutex m{s.session, "m", {.renew = false}};
  lease held = m.acquire();
  s.clock->advance(31s);
  auto released = async_release(std::move(held)).future();
  EXPECT_EQ(why(released), errc::lost);
}

template <class Held>
harness::detached_task release_in_a_coroutine(Held held, std::promise<std::string>& said) {
  const auto how = co_await async_release(std::move(held));
  said.set_value(how ? "" : how.error().message());
}

TEST(async_lease, a_release_that_fails_says_what_the_store_said) {
  stage s;
  mutex a{s.session, "a"}, b{s.session, "b"};
  holdfast::multi_lock all{a, b};
  holdfast::both pair{a, b};
  holdfast::redlock most{{s.session}, "most"};
  const auto expect_words = [&](auto held, const std::string& of, const std::string& first = "") {
    s.script->set(verb::release, fault::drop_request);
    std::promise<std::string> said;
    release_in_a_coroutine(std::move(held), said);
    EXPECT_EQ(said.get_future().get(), "holdfast: release '" + of +
                                           "' on memory:: the store is not available: " + first +
                                           "injected fault: not delivered");
    s.script->set(verb::release, fault::none);
    harness::eventually("released", [&] {
      harness::pass(*s.clock, 200ms);
      return s.session.show("a").holders.empty() && s.session.show("b").holders.empty();
    });
  };
  expect_words(a.acquire(), "a");
  expect_words(all.acquire(), "a");
  expect_words(pair.acquire(), "b");
  expect_words(most.acquire(), "most", "too few nodes confirmed it; one failed with: ");
}

TEST(async_lease, a_lease_whose_release_is_never_begun_is_released) {
  stage s;
  mutex m{s.session, "m"};
  {
    const auto never = async_release(m.acquire());
  }
  EXPECT_TRUE(s.session.show("m").holders.empty());
}

TEST(async_lease, an_extension_does_not_wait_for_the_round_trip) {
  stage s;
  mutex m{s.session, "m", {.renew = false}};
  const lease held = m.acquire();
  s.clock->advance(20s);
  s.script->hang(verb::renew);
  auto extended = async_extend(held).future();
  s.script->await(verb::renew, 1);
  EXPECT_EQ(extended.wait_for(0s), std::future_status::timeout);
  EXPECT_LE(held.remaining(), 10s);
  s.script->let_go();
  EXPECT_TRUE(extended.get());
  EXPECT_GT(held.remaining(), 25s);
}

TEST(async_lease, an_extension_has_its_old_length_or_the_given_one_and_reports_a_loss) {
  stage s;
  mutex m{s.session, "m", {.renew = false}};
  const lease held = m.acquire();
  s.clock->advance(20s);
  EXPECT_TRUE(async_extend(held).future().get());
  EXPECT_GT(held.remaining(), 25s);
  EXPECT_TRUE(async_extend(held, 60s).future().get());
  EXPECT_GT(held.remaining(), 50s);
  EXPECT_THROW((void)async_extend(held, 1ms), holdfast::error);
  s.clock->advance(61s);
  auto extended = async_extend(held).future();
  EXPECT_EQ(why(extended), errc::lost);
}

}  // namespace
