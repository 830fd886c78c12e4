#include <gtest/gtest.h>

#include <future>
#include <map>
#include <shared_mutex>
#include <thread>

#include "harness/concurrently.hpp"
#include "harness/next_wake.hpp"
#include "harness/passing_on.hpp"
#include "lease/hold.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

// session_options::detect_deadlocks with threads, each a process for the store, on a clock that
// stands still. deadlock_traffic_test.cpp covers what the walk sees.
namespace {

using namespace engine_test;
using holdfast::errc;
using holdfast::event_kind;
using holdfast::mutex;
using holdfast::session;

struct scene {
  session open(std::function<std::unique_ptr<holdfast::store::session_store>(
                   std::unique_ptr<holdfast::store::session_store>)>
                   before = {}) const {
    holdfast::session_options o;
    o.decorate = std::move(before);
    o.clock = clock;
    o.observer = seen;
    o.lease = holdfast::max_lease;
    o.detect_deadlocks = true;
    return holdfast::open(url, o);
  }
  /// Advances the clock until the wait is over.
  template <class T>
  T get(std::future<T> f) const {
    harness::eventually("the end of a wait", [&] {
      harness::pass(*clock, 50ms);
      return f.wait_for(0s) == std::future_status::ready;
    });
    return f.get();
  }
  std::size_t marks(const session& s) const {
    const auto all = *s.impl()->names();
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), holdfast::engine::is_wait_mark));
  }
  void until_marked(const session& s, std::size_t n) const {
    harness::eventually("marks", [&] {
      harness::pass(*clock, 50ms);
      return marks(s) == n;
    });
  }
  void rounds(holdfast::engine::deadlock_watch& watch, int n) const {
    for (int i = 0; i < n; ++i) {
      clock->advance(holdfast::engine::deadlock_watch::period);
      watch.round();
    }
  }

  static inline std::atomic<int> number{0};
  const std::string url = "memory:deadlock-" + std::to_string(++number);
  const std::shared_ptr<holdfast::testing::fake_clock> clock =
      std::make_shared<holdfast::testing::fake_clock>();
  const std::shared_ptr<recorder> seen = std::make_shared<recorder>();
};

/// A store that does not show its waiters.
class blind final : public harness::passing_on {
 public:
  using passing_on::passing_on;
  const holdfast::store::capabilities& can() const noexcept override { return can_; }

 private:
  const holdfast::store::capabilities can_{};
};

/// A store that lists its holders in another order each time, as Redis does when they renew.
class in_turns final : public harness::passing_on {
 public:
  using passing_on::passing_on;
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    auto reply = inner_->permits(name, c);
    if (reply && c.verb == holdfast::store::permits_verb::inspect &&
        ++looks_[std::string(name)] % 2)
      std::reverse(reply->found.holders.begin(), reply->found.holders.end());
    return reply;
  }

 private:
  std::map<std::string, unsigned> looks_;
};

/// The error with which the wait ended: nothing if it acquired the lock.
template <class Lock>
errc locked(Lock& m) {
  try {
    m.lock();
    m.unlock();
    return {};
  } catch (const holdfast::error& e) {
    EXPECT_NE(std::string(e.what()).find("waits for"), std::string::npos) << e.what();
    return e.reason();
  }
}

/// One thread holds `a` (by a guard of that kind) and waits for `b`; then the other one, which
/// holds its `b_there`, closes the ring by `wants`. Returns the result of `wants`; the first thread
/// acquires `b`.
template <template <class> class Guard = std::lock_guard, class A, class Wants>
auto close_a_ring(const scene& w, const session& any, A& a, mutex& b, mutex& b_there, Wants wants) {
  std::promise<void> ready;
  auto first = harness::concurrently([&] {
    const Guard<A> guard{a};
    ready.get_future().wait();
    return locked(b);
  });
  auto second = harness::concurrently([&] {
    const std::lock_guard guard{b_there};
    ready.set_value();
    w.until_marked(any, 1);
    return wants();
  });
  auto ended = w.get(std::move(second));
  EXPECT_EQ(w.get(std::move(first)), errc{});
  return ended;
}

TEST(deadlock, of_two_threads_ends_the_later_wait_and_the_other_acquires) {
  scene w;
  session one = w.open(), two = w.open();
  mutex a1{one, "a"}, b1{one, "b"}, a2{two, "a"}, b2{two, "b"};
  EXPECT_EQ(close_a_ring(w, two, a1, b1, b2, [&] { return locked(a2); }), errc::deadlock);
  EXPECT_EQ(w.seen->count(event_kind::deadlock), 1U);
  w.until_marked(one, 0);
}

// Otherwise a waiter of another ring could see a ring through that mark, and end its wait as well.
TEST(deadlock, removes_the_marks_of_the_ended_wait_at_once) {
  scene w;
  session one = w.open(), two = w.open();
  mutex a1{one, "a"}, b1{one, "b"}, a2{two, "a"}, b2{two, "b"};
  std::size_t left = 0;
  const auto wants = [&] {
    const errc ended = locked(a2);
    const auto all = *one.impl()->names();
    left = static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [](const auto& name) { return name.starts_with("b~"); }));
    return ended;
  };
  EXPECT_EQ(close_a_ring(w, two, a1, b1, b2, wants), errc::deadlock);
  EXPECT_EQ(left, 0U);
}

TEST(deadlock, that_ends_a_stopped_wait_is_still_reported_once) {
  scene w;
  session s = w.open();
  auto& session = *s.impl();
  auto& watch = *session.deadlock_watch();
  const holdfast::lease a = mutex(s, "a").acquire(), b = mutex(s, "b").acquire();
  const auto waits = [&](const holdfast::lease& has, const std::string& wants) {
    auto who = std::make_shared<holdfast::engine::blocked>();
    who->id = session.new_owner();
    who->name = wants;
    who->holds.push_back({holdfast::engine::hold::behind(has)->owner(), has.name()});
    who->stop.request_stop();
    watch.begin(who);
    return who;
  };
  const auto older = waits(a, b.name());
  w.rounds(watch, 1);  // waits that are seen first in one round may have one age
  const auto younger = waits(b, a.name());
  w.rounds(watch, 10);
  EXPECT_EQ(w.seen->count(event_kind::deadlock), 1U);
  EXPECT_EQ(watch.story_of(*older), "");
  EXPECT_NE(watch.story_of(*younger), "");
  watch.end(older);
  watch.end(younger);
}

TEST(deadlock, rings_that_share_a_wait_do_not_wait_for_each_other) {
  scene w;
  session s = w.open(), other = w.open();
  auto& session = *s.impl();
  auto& watch = *session.deadlock_watch();
  const auto owner = [](const holdfast::lease& l) {
    return holdfast::engine::hold::behind(l)->owner();
  };
  const holdfast::lease m = mutex(s, "m").acquire();
  holdfast::lease first = holdfast::shared_mutex(s, "n").acquire_shared();
  holdfast::lease second = holdfast::shared_mutex(other, "n").acquire_shared();
  if (owner(second) < owner(first)) std::swap(first, second);
  const auto waits = [&](const holdfast::lease& has, const holdfast::lease& wants) {
    auto who = std::make_shared<holdfast::engine::blocked>();
    who->id = session.new_owner();
    who->name = wants.name();
    if (who->name == "n") who->weight = s.show("n").capacity;
    who->holds.push_back({owner(has), has.name()});
    watch.begin(who);
    return who;
  };
  const auto reader = waits(second, m);
  w.rounds(watch, 1);
  const auto writer = waits(m, first);
  w.rounds(watch, 1);
  const auto last = waits(first, m);  // its ring with the writer is the first that a walk meets
  w.rounds(watch, 4);
  EXPECT_EQ(watch.story_of(*reader), "");
  EXPECT_NE(watch.story_of(*writer), "") << "its ring with the first reader is the older one";
  for (const auto& who : {reader, writer, last}) watch.end(who);
}

TEST(deadlock, a_timed_wait_in_a_ring_ends_before_its_time) {
  scene w;
  session one = w.open(), two = w.open();
  mutex a1{one, "a"}, b1{one, "b"}, a2{two, "a"}, b2{two, "b"};
  const auto began = w.clock->now();
  EXPECT_FALSE(close_a_ring(w, two, a1, b1, b2, [&] {
    const bool got = a2.try_lock_for(1000h);
    if (got) a2.unlock();
    return got;
  }));
  EXPECT_LT(w.clock->now() - began, 1000h);
  EXPECT_EQ(w.seen->count(event_kind::deadlock), 1U);
}

TEST(deadlock, ends_the_wait_with_a_time_limit_and_not_the_last_wait) {
  scene w;
  session one = w.open(), two = w.open();
  mutex a1{one, "a"}, b1{one, "b"}, a2{two, "a"}, b2{two, "b"};
  std::promise<void> ready;
  auto limited = harness::concurrently([&] {
    const std::lock_guard guard{a1};
    ready.get_future().wait();
    return b1.try_lock_for(1000h);
  });
  auto last = harness::concurrently([&] {
    const std::lock_guard guard{b2};
    ready.set_value();
    w.until_marked(two, 1);
    return locked(a2);
  });
  EXPECT_FALSE(w.get(std::move(limited)));
  EXPECT_EQ(w.get(std::move(last)), errc{});
  EXPECT_EQ(w.seen->count(event_kind::deadlock), 1U);
}

TEST(deadlock, threads_of_one_process_that_wait_at_its_local_queue_are_seen) {
  scene w;
  session s = w.open();
  mutex a{s, "a"}, b{s, "b"};
  EXPECT_EQ(close_a_ring(w, s, a, b, b, [&] { return locked(a); }), errc::deadlock);
}

TEST(deadlock, a_thread_that_waits_for_its_own_name_is_a_cycle_of_one) {
  scene w;
  session s = w.open();
  mutex a{s, "a"}, again{s, "a"};
  auto only = harness::concurrently([&] {
    const std::lock_guard guard{a};
    return locked(again);
  });
  EXPECT_EQ(w.get(std::move(only)), errc::deadlock);
}

TEST(deadlock, a_writer_that_waits_for_a_reader_is_part_of_a_ring) {
  scene w;
  session one = w.open(), two = w.open();
  holdfast::shared_mutex a1{one, "a"}, a2{two, "a"};
  mutex b1{one, "b"}, b2{two, "b"};
  EXPECT_EQ(close_a_ring<std::shared_lock>(w, two, a1, b1, b2, [&] { return locked(a2); }),
            errc::deadlock);
}

TEST(deadlock, a_wait_for_several_holders_is_found_in_whatever_order_they_are_listed) {
  scene w;
  const auto open = [&] {
    return w.open([](auto inner) { return std::make_unique<in_turns>(std::move(inner)); });
  };
  session one = open(), two = open(), three = open();
  holdfast::shared_mutex a1{one, "a"}, a2{two, "a"}, a3{three, "a"};
  mutex b1{one, "b"}, b2{two, "b"}, b3{three, "b"};
  std::promise<void> writes;
  const std::shared_future<void> written = writes.get_future().share();
  const auto read = [&](holdfast::shared_mutex& a, mutex& b) {
    const std::shared_lock guard{a};
    written.wait();
    return locked(b);
  };
  auto first = harness::concurrently([&] { return read(a1, b1); });
  auto second = harness::concurrently([&] { return read(a2, b2); });
  auto last = harness::concurrently([&] {
    const std::lock_guard guard{b3};
    harness::eventually("two readers", [&] { return three.show("a").holders.size() == 2; });
    writes.set_value();
    w.until_marked(three, 2);
    const bool got = a3.try_lock_for(1h);
    if (got) a3.unlock();
    return got;
  });
  const auto began = w.clock->now();
  EXPECT_FALSE(w.get(std::move(last)));
  EXPECT_LT(w.clock->now() - began, 1min);
  EXPECT_EQ(w.get(std::move(first)), errc{});
  EXPECT_EQ(w.get(std::move(second)), errc{});
}

TEST(deadlock, a_long_wait_for_a_working_holder_is_no_deadlock) {
  scene w;
  session one = w.open(), two = w.open();
  mutex a{one, "a"}, b{one, "b"}, works{two, "b"};
  auto held = works.acquire();
  auto waits = harness::concurrently([&] {
    const std::lock_guard guard{a};
    return locked(b);
  });
  w.until_marked(two, 1);
  for (int i = 0; i < 100; ++i) w.clock->advance(1s);
  w.until_marked(two, 1);
  EXPECT_FALSE(held.release());
  EXPECT_EQ(w.get(std::move(waits)), errc{});
  EXPECT_EQ(w.seen->count(event_kind::deadlock), 0U);
}

TEST(deadlock, leases_belong_to_no_thread_and_so_to_no_ring) {
  scene w;
  session one = w.open(), two = w.open();
  mutex a1{one, "a"}, b1{one, "b"}, a2{two, "a"}, b2{two, "b"};
  std::promise<holdfast::lease> handed_on;
  std::promise<void> ready;
  auto giver = harness::concurrently([&] {
    handed_on.set_value(a1.acquire());  // this thread acquired it, and will not release it
    ready.get_future().wait();
    return locked(b1);
  });
  auto mine = handed_on.get_future().get();
  auto other = harness::concurrently([&] {
    const std::lock_guard guard{b2};
    ready.set_value();
    return locked(a2);
  });
  w.until_marked(one, 1);
  for (int i = 0; i < 40; ++i) w.clock->advance(100ms);
  w.until_marked(one, 1);
  EXPECT_FALSE(mine.release());
  EXPECT_EQ(w.get(std::move(other)), errc{});
  EXPECT_EQ(w.get(std::move(giver)), errc{});
}

TEST(deadlock, a_cycle_with_an_expiring_hold_is_no_deadlock) {
  for (const holdfast::lock_options& ends :
       {holdfast::lock_options{.lease = 2s, .renew = false}, {.lease = 2s, .max_hold = 2s}}) {
    scene w;
    session one = w.open(), two = w.open();
    mutex a1{one, "a", ends}, b1{one, "b"}, a2{two, "a"}, b2{two, "b"};
    std::promise<void> both_have;
    auto first = harness::concurrently([&] {
      const std::lock_guard guard{a1};
      both_have.get_future().wait();
      return locked(b1);
    });
    auto second = harness::concurrently([&] {
      const std::lock_guard guard{b2};
      both_have.set_value();
      return locked(a2);
    });
    EXPECT_EQ(w.get(std::move(second)), errc{});
    EXPECT_EQ(w.get(std::move(first)), errc{});
    EXPECT_EQ(w.seen->count(event_kind::deadlock), 0U);
  }
}

TEST(deadlock, a_stopped_caller_gets_no_deadlock_error) {
  scene w;
  session one = w.open(), two = w.open();
  mutex a{one, "a"}, b{one, "b"}, works{two, "b"};
  const auto held = works.acquire();
  std::stop_source stop;
  auto waits = harness::concurrently([&] {
    const std::lock_guard guard{a};
    return b.lock(stop.get_token());
  });
  w.until_marked(two, 1);
  stop.request_stop();
  EXPECT_FALSE(w.get(std::move(waits)));
}

TEST(deadlock, a_store_that_shows_no_waits_refuses_the_option) {
  holdfast::session_options o;
  o.detect_deadlocks = true;
  o.decorate = [](auto inner) { return std::make_unique<blind>(std::move(inner)); };
  try {
    (void)holdfast::open("memory:", o);
    FAIL() << "it would see nothing";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::unsupported);
  }
}

}  // namespace
