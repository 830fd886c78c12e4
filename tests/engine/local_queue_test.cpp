#include <gtest/gtest.h>

#include <thread>

#include "harness/next_wake.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

namespace {

using namespace engine_test;
using holdfast::lease;
using holdfast::mutex;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

/// Threads that acquire the lock one after the other, in the order in which they came.
struct crowd {
  crowd(stage& on, std::vector<int>& to) : s(on), order(to) {}
  ~crowd() {
    for (auto& t : threads) t.join();
  }
  void join_line(mutex& m, int who) {
    const auto in_line = local_queue_of(m)->waiting();
    threads.emplace_back([this, &m, who] {
      lease mine = m.acquire();
      order.push_back(who);
    });
    harness::eventually("in line", [&] { return local_queue_of(m)->waiting() > in_line; });
  }
  std::shared_ptr<holdfast::engine::local_queue> local_queue_of(mutex& m) {
    return s.session.impl()->local_queue_of(m.name());
  }
  stage& s;
  std::vector<int>& order;
  std::vector<std::thread> threads;
};

TEST(local_queue, a_process_has_one_contender_at_the_store) {
  stage s("memory:gate1");
  auto other = holdfast::open("memory:gate1", s.options());
  lease held = mutex{other, "m"}.acquire();
  mutex m{s.session, "m"};
  std::vector<int> order;
  std::thread first([&] { EXPECT_TRUE(m.acquire()); });
  s.await_waiters("m", 1);
  {
    crowd c(s, order);
    for (int i = 1; i <= 8; ++i) c.join_line(m, i);
    EXPECT_EQ(s.session.show("m").waiters.size(), 1U);
    EXPECT_FALSE(held.release());
  }
  first.join();
  EXPECT_TRUE(s.session.show("m").holders.empty());
}

TEST(local_queue, a_hand_over_in_the_process_sends_nothing_to_the_store) {
  stage s;
  mutex m{s.session, "m", {.max_bypass = 0}};
  lease held = m.acquire();
  std::vector<int> order, expected;
  const auto before = s.session.store_operations();
  {
    crowd c(s, order);
    for (int i = 1; i <= 20; ++i) c.join_line(m, i), expected.push_back(i);
    EXPECT_FALSE(held.release());
  }
  EXPECT_EQ(s.session.store_operations() - before, 1U) << "the last release";
  EXPECT_EQ(order, expected) << "in the order in which they came";
}

TEST(local_queue, after_local_time_a_hand_over_in_the_process_is_one_command) {
  stage s;
  mutex m{s.session, "m", {.local_time = 0us}};
  lease held = m.acquire();
  std::vector<int> order, expected;
  const auto before = s.session.store_operations();
  std::uint64_t asked = 0;
  {
    crowd c(s, order);
    for (int i = 1; i <= 20; ++i) c.join_line(m, i), expected.push_back(i);
    asked = s.session.store_operations() - before;
    EXPECT_FALSE(held.release());
  }
  EXPECT_EQ(asked, 0U) << "standing in line costs the store nothing";
  EXPECT_EQ(s.session.store_operations() - before, 21U) << "20 hand-overs and the last release";
  EXPECT_EQ(order, expected) << "in the order in which they came";
}

TEST(local_queue, the_fence_grows_with_each_local_hand_over) {
  stage s;
  mutex m{s.session, "m"};
  std::uint64_t last = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2'000; ++i) {
        lease mine = m.acquire();
        EXPECT_GT(mine.fence(), last);
        last = mine.fence();
      }
    });
  }
  for (auto& t : threads) t.join();
}

TEST(local_queue, the_fence_of_the_next_process_is_greater_than_the_last_local_one) {
  stage s("memory:gate2");
  auto other = holdfast::open("memory:gate2", s.options());
  mutex m{s.session, "m", {.max_bypass = 0}};
  std::vector<std::uint64_t> fences;
  {
    lease held = m.acquire();
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i <= 3; ++i) {
      threads.emplace_back([&] { fences.push_back(m.acquire().fence()); });
      harness::eventually("in line",
                          [&] { return s.session.impl()->local_queue_of("m")->waiting() == i; });
    }
    fences.push_back(held.fence());
    EXPECT_FALSE(held.release());
    for (auto& t : threads) t.join();
  }
  EXPECT_EQ(fences.back(), fences.front() + 3) << "handed over in the process";
  EXPECT_GT((mutex{other, "m"}.acquire().fence()), fences.back());
}

// More hand-overs than there are local fences between two of the store's: the store must be asked
// in time.
TEST(local_queue, local_fences_never_reach_the_next_fence_of_the_store) {
  stage s;
  mutex m{s.session, "m"};
  std::atomic<bool> enough = false;
  std::uint64_t last = 0;
  int stayed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!enough) {
        lease mine = m.acquire();
        EXPECT_GT(mine.fence(), last);
        stayed += mine.fence() == last + 1 ? 1 : 0;
        last = mine.fence();
        if (stayed > 10'000) enough = true;
      }
    });
  }
  for (auto& t : threads) t.join();
}

TEST(local_queue, another_process_waits_for_local_time_and_no_longer) {
  stage s("memory:gate3");
  auto other = holdfast::open("memory:gate3", s.options());
  mutex m{s.session, "m", {.max_bypass = 0}};
  lease held = m.acquire();
  std::vector<int> order;
  std::thread remote;
  {
    crowd c(s, order);
    c.join_line(m, 1);
    c.join_line(m, 2);
    remote = std::thread([&] {
      lease theirs = mutex{other, "m"}.acquire();
      order.push_back(0);
    });
    s.await_waiters("m", 1);
    s.clock->advance(10ms);
    EXPECT_FALSE(held.release());
  }
  remote.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST(local_queue, a_lock_with_max_hold_is_not_passed_on_in_the_process) {
  stage s;
  mutex m{s.session, "m", {.max_hold = 1h}};
  lease held = m.acquire();
  std::vector<int> order;
  const auto before = s.session.store_operations();
  {
    crowd c(s, order);
    c.join_line(m, 1);
    EXPECT_FALSE(held.release());
  }
  EXPECT_EQ(s.session.store_operations() - before, 2U);
}

TEST(local_queue, a_thread_with_other_options_gets_a_hold_of_its_own) {
  stage s;
  mutex m{s.session, "m"};
  mutex other{s.session, "m", {.reason = "another"}};
  lease held = m.acquire();
  std::vector<int> order;
  const auto before = s.session.store_operations();
  {
    crowd c(s, order);
    c.join_line(other, 1);
    EXPECT_FALSE(held.release());
  }
  EXPECT_EQ(s.session.store_operations() - before, 2U);
}

TEST(local_queue, a_request_behind_too_many_waiters_is_refused_at_once) {
  stage s;
  mutex m{s.session, "m", {.max_waiters = 2}};
  lease held = m.acquire();
  std::vector<int> order;
  crowd c(s, order);
  c.join_line(m, 1);
  c.join_line(m, 2);
  try {
    (void)m.acquire();
    FAIL() << "a third waited";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.code(), holdfast::errc::overloaded);
  }
  EXPECT_FALSE(m.try_acquire());
  EXPECT_FALSE(held.release());
}

TEST(local_queue, the_loss_of_a_later_hold_does_not_stop_the_token_of_a_former_one) {
  stage s;
  mutex m{s.session, "m", {.max_bypass = 0}};
  lease held = m.acquire();
  const auto former = held.lost();
  std::atomic<bool> lost = false;
  std::thread next([&] {
    lease mine = m.acquire();
    const auto token = mine.lost();
    EXPECT_EQ(s.session.force_release("m"), 1U);
    harness::eventually("lost", [&] {
      harness::pass(*s.clock, 5s);
      return token.stop_requested();
    });
    lost = true;
  });
  harness::eventually("in line",
                      [&] { return s.session.impl()->local_queue_of("m")->waiting() == 1; });
  EXPECT_FALSE(held.release());
  next.join();
  EXPECT_TRUE(lost);
  EXPECT_FALSE(former.stop_requested());
}

TEST(local_queue, while_the_store_is_away_the_threads_of_a_process_still_take_turns) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  std::vector<int> order;
  {
    crowd c(s, order);
    c.join_line(m, 1);
    c.join_line(m, 2);
    for (const auto v : {verb::acquire, verb::renew, verb::release})
      s.script->set(v, fault::drop_request);
    EXPECT_FALSE(held.release());
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

// No waiter may be left while the lock is idle, and no lock may stay idle for a waiter that has
// gone.
TEST(local_queue, waiters_that_give_up_at_random_leave_nothing_idle) {
  auto session = holdfast::open("memory:");
  mutex m{session, "m", {.max_bypass = 3}};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3'000; ++i) {
        std::stop_source stop;
        if (t % 3 == 0) {
          (void)m.try_acquire_for(std::chrono::microseconds(i % 40));
        } else if (t % 3 == 1) {
          std::thread canceller([&] { stop.request_stop(); });
          (void)m.try_acquire_for(1h, stop.get_token());
          canceller.join();
        } else {
          (void)m.acquire();
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_TRUE(session.show("m").holders.empty());
  EXPECT_EQ(session.impl()->local_queue_of("m")->waiting(), 0U);
}

TEST(local_queue, a_local_waiter_that_times_out_leaves_the_queue) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  std::thread waiter([&] { EXPECT_FALSE(m.try_acquire_for(100ms)); });
  harness::eventually("timed out", [&] {
    harness::pass(*s.clock, 50ms);
    return s.seen->count(holdfast::event_kind::gave_up) == 1;
  });
  waiter.join();
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(m.try_acquire());
}

TEST(local_queue, a_try_while_another_thread_holds_the_lock_sends_nothing) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  const auto before = s.session.store_operations();
  EXPECT_FALSE(m.try_acquire());
  EXPECT_EQ(s.session.store_operations(), before);
}

TEST(local_queue, a_lost_holder_does_not_hold_up_the_waiters_behind_it) {
  stage s;
  mutex m{s.session, "m", {.renew = false}};
  lease held = m.acquire();
  std::thread waiter([&] { EXPECT_TRUE(m.acquire()); });
  harness::eventually("acquired by the next", [&] {
    harness::pass(*s.clock, 5s);
    return s.seen->count(holdfast::event_kind::acquired) == 2;
  });
  waiter.join();
  EXPECT_EQ(held.release(), holdfast::errc::lost);
}

TEST(local_queue, a_waiter_queues_itself_when_the_release_could_not_queue_it) {
  stage s;
  mutex m{s.session, "m", {.local_time = 0us}};
  lease held = m.acquire();
  std::atomic<bool> got = false;
  std::thread waiter([&] {
    lease mine = m.acquire();
    got = true;
  });
  // The wait that is visible from outside begins before the thread is queued, so only the local
  // queue itself shows that.
  harness::eventually("in line",
                      [&] { return s.session.impl()->local_queue_of("m")->waiting() == 1; });
  s.script->set(verb::acquire, fault::drop_request);
  EXPECT_EQ(held.release(), holdfast::errc::unavailable);
  s.script->set(verb::acquire, fault::none);
  harness::eventually("acquired", [&] {
    harness::pass(*s.clock, 100ms);
    return got.load();
  });
  waiter.join();
}

TEST(local_queue, a_waiter_cancelled_at_any_moment_leaves_the_local_queue) {
  auto session = holdfast::open("memory:");
  mutex m{session, "m"};
  lease held = m.acquire();
  for (int i = 0; i < 5'000; ++i) {
    std::stop_source stop;
    std::thread waiter([&] { EXPECT_FALSE(m.lock(stop.get_token())); });
    for (int spin = 0; spin < (i % 400) * 10; ++spin)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    stop.request_stop();
    waiter.join();
  }
  EXPECT_EQ(session.impl()->local_queue_of("m")->waiting(), 0U);
}

}  // namespace
