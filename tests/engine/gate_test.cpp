#include <gtest/gtest.h>

#include <thread>

#include "engine/core.hpp"
#include "stage.hpp"

namespace {

using namespace engine_test;
using holdfast::lease;
using holdfast::mutex;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

/// Threads that take the lock one after the other, in the order in which they came.
struct crowd {
  crowd(stage& on, std::vector<int>& to) : s(on), order(to) {}
  ~crowd() {
    for (auto& t : threads) t.join();
  }
  void join_line(mutex& m, int who) {
    const auto in_line = gate_of(m)->waiting();
    threads.emplace_back([this, &m, who] {
      lease mine = m.acquire();
      order.push_back(who);
    });
    harness::eventually("in line", [&] { return gate_of(m)->waiting() > in_line; });
  }
  std::shared_ptr<holdfast::engine::gate> gate_of(mutex& m) {
    return s.session.core()->gates().at(m.name(), *s.clock);
  }
  stage& s;
  std::vector<int>& order;
  std::vector<std::thread> threads;
};

TEST(gate, one_contender_of_a_process_is_at_the_store) {
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

TEST(gate, a_hand_over_in_the_process_is_one_command) {
  stage s;
  mutex m{s.session, "m"};
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

TEST(gate, the_fence_grows_with_each_local_hand_over) {
  stage s;
  mutex m{s.session, "m"};
  std::uint64_t last = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        lease mine = m.acquire();
        EXPECT_GT(mine.fence(), last);
        last = mine.fence();
      }
    });
  }
  for (auto& t : threads) t.join();
}

TEST(gate, a_local_waiter_that_times_out_leaves_the_line) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  std::thread waiter([&] { EXPECT_FALSE(m.try_acquire_for(100ms)); });
  harness::eventually("timed out", [&] {
    s.clock->advance(50ms);
    return s.seen->count(holdfast::event_kind::gave_up) == 1;
  });
  waiter.join();
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(m.try_acquire());
}

TEST(gate, a_try_while_another_thread_holds_it_asks_the_store_nothing) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  const auto before = s.session.store_operations();
  EXPECT_FALSE(m.try_acquire());
  EXPECT_EQ(s.session.store_operations(), before);
}

TEST(gate, a_lost_holder_does_not_hold_up_those_behind_it) {
  stage s;
  mutex m{s.session, "m", {.renew = false}};
  lease held = m.acquire();
  std::thread waiter([&] { EXPECT_TRUE(m.acquire()); });
  harness::eventually("acquired by the next", [&] {
    s.clock->advance(5s);
    return s.seen->count(holdfast::event_kind::acquired) == 2;
  });
  waiter.join();
  EXPECT_EQ(held.release(), holdfast::errc::lost);
}

TEST(gate, the_next_one_asks_for_itself_when_taking_it_along_failed) {
  stage s;
  mutex m{s.session, "m"};
  lease held = m.acquire();
  std::atomic<bool> got = false;
  std::thread waiter([&] {
    lease mine = m.acquire();
    got = true;
  });
  // Nothing shows from outside that a thread stands at the gate: its wait begins with the entry.
  harness::eventually("in line", [&] { return s.session.core()->gates().at("m", *s.clock)->waiting() == 1; });
  s.script->set(verb::acquire, fault::drop_request);
  EXPECT_EQ(held.release(), holdfast::errc::unavailable);
  s.script->set(verb::acquire, fault::none);
  harness::eventually("acquired", [&] {
    s.clock->advance(100ms);
    return got.load();
  });
  waiter.join();
}

TEST(gate, a_waiter_cancelled_at_any_moment_leaves_the_gate) {
  auto session = holdfast::open("memory:");
  mutex m{session, "m"};
  lease held = m.acquire();
  for (int i = 0; i < 5'000; ++i) {
    std::stop_source stop;
    std::thread waiter([&] { EXPECT_FALSE(m.lock(stop.get_token())); });
    for (int spin = 0; spin < (i % 400) * 10; ++spin) std::atomic_signal_fence(std::memory_order_seq_cst);
    stop.request_stop();
    waiter.join();
  }
  EXPECT_EQ(session.core()->gates().at("m", holdfast::real_clock())->waiting(), 0U);
}

}  // namespace
