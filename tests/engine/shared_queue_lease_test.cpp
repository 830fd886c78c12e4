#include <gtest/gtest.h>

#include <array>
#include <future>
#include <span>

#include "harness/next_wake.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

// Many waiters of one session keep their queue entries by one poll a second.
namespace {

using namespace engine_test;
using holdfast::errc;
using holdfast::fair_mutex;
using holdfast::lease;
using holdfast::result;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

struct shared_queue_lease : testing::Test {
  void queue(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      waiting_.push_back(async_acquire(lock_, {}, stop_[i < 4 ? 0 : 1].get_token()).future());
      stage_.await_waiters("m", i + 1);  // so that each knows how far behind it is
    }
  }
  /// Waits for the poll, too.
  void pass_a_second() {
    const auto before = stage_.script->count(verb::acquire);
    stage_.clock->advance(1s);
    harness::eventually("a look", [&] {
      harness::pass(*stage_.clock, 1ms);  // it may just have polled
      return stage_.script->count(verb::acquire) > before;
    });
  }
  bool all_ended() const {
    return std::all_of(waiting_.begin(), waiting_.end(),
                       [](const auto& w) { return w.wait_for(0s) == std::future_status::ready; });
  }

  /// As if no waiter had polled for longer than a queue entry lasts.
  bool all_gone() { return gone_behind(0); }
  /// As if those behind the first `n` had lost their queue entries.
  bool gone_behind(std::size_t n) {
    lost_at_ = stage_.clock->now();
    auto& store = *stage_.session.impl();
    const auto there = store.permits("m", {});
    for (const auto& w : std::span(there->found.queue).subspan(n)) {
      holdfast::store::permits_command leave;
      leave.verb = verb::release;
      leave.owner = w.owner;
      EXPECT_TRUE(store.permits("m", leave));
    }
    return stage_.session.show("m").waiters.size() == n;
  }

  stage stage_;
  fair_mutex lock_{stage_.session, "m"};
  lease held_ = lock_.acquire();
  std::array<std::stop_source, 2> stop_;  // of the first four, and of the others
  std::vector<std::future<result<lease>>> waiting_;
  holdfast::boot_time lost_at_{};
};

TEST_F(shared_queue_lease, lets_the_first_few_of_twenty_poll_and_one_for_the_others) {
  queue(20);
  const auto began = stage_.clock->now();
  const auto before = stage_.script->count(verb::acquire);
  for (int i = 0; i < 12; ++i) pass_a_second();
  const auto seconds = static_cast<std::size_t>((stage_.clock->now() - began) / 1s);
  EXPECT_LE(stage_.script->count(verb::acquire) - before, 12 * seconds) << "else 17 and more";
  ASSERT_EQ(stage_.session.show("m").waiters.size(), 20U) << "their places last four seconds";
  EXPECT_FALSE(held_.release());
  for (auto& w : waiting_) EXPECT_TRUE(w.get());
}

TEST_F(shared_queue_lease, a_waiter_far_behind_notices_a_lost_notification_too) {
  queue(5);
  stop_[0].request_stop();
  harness::eventually("only the last one waits",
                      [&] { return stage_.session.show("m").waiters.size() == 1; });
  stage_.script->set(verb::release, fault::drop_notification);
  const auto before = stage_.clock->now();
  EXPECT_FALSE(held_.release());
  harness::eventually("it looks", [&] {
    harness::pass(*stage_.clock, 1ms);
    return all_ended();
  });
  EXPECT_TRUE(waiting_.back().get());
  EXPECT_LT(stage_.clock->now() - before, 20s) << "it looks for itself after half a minute";
}

// One of sixteen polls once a second, and only one of them gets the answer: a lost notification is
// news to each of them.
TEST_F(shared_queue_lease, all_waiters_far_behind_poll_after_a_lost_notification) {
  queue(20);
  stop_[0].request_stop();
  harness::eventually("sixteen wait",
                      [&] { return stage_.session.show("m").waiters.size() == 16; });
  stage_.script->set(verb::release, fault::drop_notification);
  const auto before = stage_.script->count(verb::acquire);
  EXPECT_FALSE(held_.release());
  harness::eventually("the notice is lost",
                      [&] { return stage_.session.impl()->dispatcher().gaps() > 0; });
  stage_.clock->advance(1'500ms);
  stage_.script->await(verb::acquire, before + 16);
}

TEST_F(shared_queue_lease, a_lost_lease_makes_all_waiters_queue_again) {
  queue(12);
  ASSERT_TRUE(all_gone());
  harness::eventually("all wait again", [&] {
    harness::pass(*stage_.clock, 2ms);
    return stage_.session.show("m").waiters.size() == 12;
  });
  EXPECT_LT(stage_.clock->now() - lost_at_, 20s) << "they look for themselves after half a minute";
}

// The waiters before it have their entries, so nobody notifies it.
TEST_F(shared_queue_lease, a_waiter_that_alone_lost_its_entry_learns_of_it) {
  queue(4);
  ASSERT_TRUE(gone_behind(3));
  harness::eventually("it waits again", [&] {
    harness::pass(*stage_.clock, 20ms);
    return stage_.session.show("m").waiters.size() == 4;
  });
}

TEST_F(shared_queue_lease, a_lost_lease_at_a_free_lock_makes_all_waiters_queue_again) {
  queue(12);
  ASSERT_TRUE(all_gone());
  EXPECT_FALSE(held_.release());
  harness::eventually("all have had it", [&] {
    harness::pass(*stage_.clock, 2ms);
    for (auto& w : waiting_) {
      if (!w.valid() || w.wait_for(0s) != std::future_status::ready) continue;
      EXPECT_TRUE(w.get());
    }
    return std::none_of(waiting_.begin(), waiting_.end(), [](auto& w) { return w.valid(); });
  });
  EXPECT_LT(stage_.clock->now() - lost_at_, 20s) << "they look for themselves after half a minute";
}

TEST_F(shared_queue_lease, a_holder_without_a_notification_wakes_the_waiters_far_behind) {
  queue(12);
  stop_[0].request_stop();
  harness::eventually("eight wait", [&] { return stage_.session.show("m").waiters.size() == 8; });
  ASSERT_TRUE(all_gone());
  EXPECT_FALSE(held_.release());
  stage_.clock->advance(1'500ms);
  harness::eventually("one looks and has it",
                      [&] { return stage_.session.show("m").holders.size() == 1; });
  stage_.clock->advance(1'500ms);
  harness::eventually("the others wait again",
                      [&] { return stage_.session.show("m").waiters.size() == 7; });
}

// What each poll tells the other waiters.
TEST(shared_queue_lease_of_several, is_polled_for_by_the_earlier_waiters) {
  using holdfast::boot_time;
  holdfast::engine::shared_queue_lease all;
  const boot_time began{100s};
  all.seen(began, began);
  all.seen(began, began + 1s);
  EXPECT_EQ(all.put_off(began, began + 1s), began + 2s);

  const boot_time later = began + 1500ms;  // a newcomer does not know what it was like before it
  all.seen(later, later);
  all.seen(later, later + 200ms);
  EXPECT_EQ(all.put_off(later, later + 300ms), began + 3s) << "it leaves it to the others";
  EXPECT_EQ(all.put_off(began, began + 2s), began + 2s) << "and does not keep them from it";

  all.seen(later, began + 2500ms);  // nothing is unknown any more
  EXPECT_EQ(all.put_off(began, began + 3s), began + 3500ms);
  EXPECT_EQ(all.put_off(later, began + 3500ms), began + 3500ms);

  const boot_time last = began + 5s;  // and one polls when all the others have gone
  all.seen(last, last);
  EXPECT_EQ(all.put_off(last, last), began + 5500ms);
  EXPECT_EQ(all.put_off(last, last + 500ms), last + 500ms);
  EXPECT_EQ(all.put_off(last, last + 600ms), last + 1500ms);
}

// A new queue entry says nothing about the entries that existed before it.
TEST_F(shared_queue_lease, newcomers_do_not_hide_a_lost_lease_from_the_others) {
  queue(12);
  stop_[0].request_stop();
  harness::eventually("eight wait", [&] { return stage_.session.show("m").waiters.size() == 8; });
  ASSERT_TRUE(all_gone());
  stage_.clock->advance(1ms);  // the first newcomer comes after the last known waiter
  std::vector<std::future<result<lease>>> newcomers;
  while (stage_.session.show("m").waiters.size() < 8 + newcomers.size()) {
    ASSERT_LT(stage_.clock->now() - lost_at_, 20s) << "half a minute, if newcomers look for them";
    newcomers.push_back(async_acquire(lock_, {}, stop_[1].get_token()).future());
    const auto joined = newcomers.size();
    harness::eventually("it waits",
                        [&] { return stage_.session.show("m").waiters.size() >= joined; });
    const auto until = stage_.clock->now() + 600ms;
    harness::eventually("the next one comes", [&] {
      harness::pass(*stage_.clock, 20ms);
      return stage_.clock->now() >= until;
    });
  }
  stop_[1].request_stop();
  for (auto& w : newcomers) EXPECT_EQ(w.get().error().code, errc::cancelled);
}

TEST_F(shared_queue_lease, each_waiter_learns_that_the_store_is_away) {
  queue(12);
  stage_.script->set(verb::acquire, fault::drop_request);
  const auto before = stage_.clock->now();
  harness::eventually("all give up", [&] {
    harness::pass(*stage_.clock, 1s);
    return all_ended();
  });
  for (auto& w : waiting_) EXPECT_EQ(w.get().error().code, errc::unavailable);
  EXPECT_GE(stage_.clock->now() - before, stage_.session.impl()->options().store_timeout);
}

}  // namespace
