#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <thread>

#include "harness/concurrently.hpp"
#include "harness/without_fences.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

// session_options::lock_order. The pairs belong to the process: each test has names of its own.
namespace {

using namespace engine_test;
using holdfast::called_from;
using holdfast::event_kind;
using holdfast::mutex;

/// The events, with their texts.
class listener final : public holdfast::observer {
 public:
  void on_event(const holdfast::event& e) override {
    if (e.kind != event_kind::lock_order) return;
    const std::lock_guard guard{mutex_};
    told_.push_back(std::string(e.name) + ": " + std::string(e.detail));
  }
  std::vector<std::string> told() const {
    const std::lock_guard guard{mutex_};
    return told_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> told_;
};

struct scene {
  explicit scene(bool on = true) : session(holdfast::open("memory:order", options(on))) {}
  holdfast::session_options options(bool on) const {
    holdfast::session_options o;
    o.observer = heard;
    o.lock_order = on;
    return o;
  }
  std::shared_ptr<listener> heard = std::make_shared<listener>();
  holdfast::session session;
};

template <class First, class Second>
void nest(First& first, Second& second) {
  const std::lock_guard outer{first};
  const std::lock_guard inner{second};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

TEST(lock_order, the_same_order_everywhere_causes_no_warning) {
  scene s;
  mutex a{s.session, "same-a"}, b{s.session, "same-b"};
  for (int i = 0; i < 3; ++i) nest(a, b);
  std::thread([&] { nest(a, b); }).join();
  EXPECT_TRUE(s.heard->told().empty());
}

TEST(lock_order, both_orders_are_reported_once_with_all_four_places) {
  scene s;
  mutex a{s.session, "both-a"}, b{s.session, "both-b"};
  std::vector<unsigned> lines;
  const auto take = [&](mutex& first, mutex& second) {
    const called_from outer_place;
    const std::lock_guard outer{first};
    const called_from inner_place;
    const std::lock_guard inner{second};
  };
  const auto line = std::source_location::current().line();
  take(a, b);
  EXPECT_TRUE(s.heard->told().empty());
  std::thread([&] { take(b, a); }).join();
  take(b, a);
  const auto told = s.heard->told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].starts_with("both-a: takes \"both-a\" at ")) << told[0];
  for (const auto& [before, name] : {std::pair(3U, "\"both-a\" at "),
                                     {5U, "\"both-b\" from "},
                                     {3U, "\"both-b\" at "},
                                     {5U, "\"both-a\" from "}}) {
    const auto place = std::string(__FILE__) + ":" + std::to_string(line - before);
    EXPECT_TRUE(contains(told[0], name + place)) << name << place << " in " << told[0];
  }
}

TEST(lock_order, a_cycle_over_a_third_name_is_reported) {
  scene s;
  mutex a{s.session, "ring-a"}, b{s.session, "ring-b"}, c{s.session, "ring-c"};
  nest(a, b);
  nest(b, c);
  EXPECT_TRUE(s.heard->told().empty());
  nest(c, a);
  ASSERT_EQ(s.heard->told().size(), 1U);
  EXPECT_TRUE(contains(s.heard->told()[0], "\"ring-c\" at somewhere while it had \"ring-b\""));
}

TEST(lock_order, a_try_never_waits_but_the_lock_it_acquired_counts) {
  scene s;
  mutex a{s.session, "try-a"}, b{s.session, "try-b"};
  nest(a, b);
  {
    const std::lock_guard outer{b};
    EXPECT_TRUE(a.try_lock());
    a.unlock();
  }
  EXPECT_TRUE(s.heard->told().empty());
  ASSERT_TRUE(b.try_lock());
  a.lock(), a.unlock();
  b.unlock();
  EXPECT_EQ(s.heard->told().size(), 1U);
}

TEST(lock_order, a_released_lock_does_not_count_as_held) {
  scene s;
  mutex a{s.session, "gone-a"}, b{s.session, "gone-b"};
  nest(a, b);
  b.lock(), b.unlock();
  a.lock(), a.unlock();
  auto held = b.acquire();
  std::thread([l = std::move(held)] {}).join();  // by another thread
  a.lock(), a.unlock();
  EXPECT_TRUE(s.heard->told().empty());
}

/// One thread acquires `a`, another gives it back, and a third gets it in the process. The first
/// then holds nothing.
void pass_on_in_the_process(const scene& s, mutex& a, mutex& b) {
  auto held = a.acquire();
  std::promise<void> has, done;
  std::thread next([&] {
    const std::lock_guard guard{a};
    has.set_value();
    done.get_future().wait();
  });
  const auto local_queue = s.session.impl()->local_queue_of(a.name());
  harness::eventually("the next in line", [&] { return local_queue->waiting() == 1; });
  std::thread([l = std::move(held)] {}).join();
  has.get_future().wait();
  b.lock(), b.unlock();
  done.set_value();
  next.join();
  nest(b, a);
  EXPECT_TRUE(s.heard->told().empty());
}

TEST(lock_order, a_lock_passed_on_in_the_local_queue_counts_for_the_next_thread) {
  scene s;
  mutex a{s.session, "gate-a", {.local_time = 1h}}, b{s.session, "gate-b"};
  pass_on_in_the_process(s, a, b);
}

TEST(lock_order, a_lock_without_fences_passed_on_in_the_local_queue_counts_for_the_next_thread) {
  scene s;
  auto options = s.options(true);
  options.decorate = harness::without_fences;
  s.session = holdfast::open("memory:order", options);
  mutex a{s.session, "gate-c", {.local_time = 1h}}, b{s.session, "gate-d"};
  pass_on_in_the_process(s, a, b);
}

TEST(lock_order, leases_and_with_lock_and_other_kinds_count_too) {
  scene s;
  mutex a{s.session, "kinds-a"};
  holdfast::shared_mutex b{s.session, "kinds-b"};
  with_lock(a, [&] { const auto held = b.acquire_shared(); });
  const auto line = std::source_location::current().line() - 1;
  const auto held = b.acquire();
  with_lock(a, [] {});
  ASSERT_EQ(s.heard->told().size(), 1U);
  EXPECT_TRUE(contains(s.heard->told()[0], "while it had \"kinds-a\" from " +
                                               std::string(__FILE__) + ":" + std::to_string(line)))
      << s.heard->told()[0];
}

TEST(lock_order, a_reader_that_left_before_others_holds_nothing) {
  scene s;
  holdfast::shared_mutex a{s.session, "reader-a"};
  mutex b{s.session, "reader-b"};
  const auto others = harness::concurrently([&] { return a.acquire_shared(); }).get();
  {
    const auto mine = a.acquire_shared();
  }
  b.lock(), b.unlock();
  auto first = a.acquire_shared();
  first = {};
  b.lock(), b.unlock();
  a.lock_shared(), a.unlock_shared();
  b.lock(), b.unlock();
  const std::lock_guard guard{b};
  const auto last = a.acquire_shared();
  EXPECT_TRUE(s.heard->told().empty());
}

TEST(lock_order, a_first_reader_that_left_before_others_holds_nothing) {
  scene s;
  holdfast::shared_mutex a{s.session, "first-a"};
  mutex b{s.session, "first-b"};
  auto first = a.acquire_shared();
  const auto others = harness::concurrently([&] { return a.acquire_shared(); }).get();
  first = {};
  b.lock(), b.unlock();
  const std::lock_guard guard{b};
  const auto last = a.acquire_shared();
  EXPECT_TRUE(s.heard->told().empty());
}

TEST(lock_order, a_thread_that_locks_shared_twice_and_unlocks_once_still_holds) {
  scene s;
  holdfast::shared_mutex a{s.session, "twice-a"};
  mutex b{s.session, "twice-b"};
  auto one = a.acquire_shared(), two = a.acquire_shared();
  EXPECT_FALSE(one.release());
  b.lock(), b.unlock();
  EXPECT_FALSE(two.release());
  const std::lock_guard guard{b};
  const auto last = a.acquire_shared();
  EXPECT_EQ(s.heard->told().size(), 1U);
}

TEST(lock_order, a_lingering_lock_has_no_holder) {
  scene s;
  holdfast::lock_options lingers;
  lingers.linger = 1min;
  mutex a{s.session, "linger-a", lingers}, b{s.session, "linger-b"};
  with_lock(a, [] {});
  with_lock(b, [] {});
  a.lock(), a.unlock();
  with_lock(b, [&] { with_lock(a, [] {}); });
  EXPECT_TRUE(s.heard->told().empty());
}

TEST(lock_order, a_lock_that_another_thread_left_lingering_has_no_holder) {
  scene s;
  mutex a{s.session, "left-a", {.linger = 1min}}, b{s.session, "left-b"};
  auto held = a.acquire();
  std::thread([l = std::move(held)] {}).join();
  b.lock(), b.unlock();
  nest(b, a);
  EXPECT_TRUE(s.heard->told().empty());
}

/// Made before, so it outlives the library's data of its thread.
struct at_end_of_thread {
  std::function<void()> act;
  ~at_end_of_thread() { act(); }
};

TEST(lock_order, a_lock_at_the_very_end_of_a_thread_is_not_recorded) {
  scene s;
  mutex a{s.session, "end-a"}, b{s.session, "end-b"};
  std::thread([&] {
    thread_local at_end_of_thread last{[&] { nest(b, a); }};
    nest(a, b);
    EXPECT_TRUE(last.act);
  }).join();
  EXPECT_TRUE(s.heard->told().empty());
}

TEST(lock_order, the_check_is_off_by_default) {
  scene s(false);
  mutex a{s.session, "off-a"}, b{s.session, "off-b"};
  nest(a, b);
  nest(b, a);
  EXPECT_TRUE(s.heard->told().empty());
}

}  // namespace
