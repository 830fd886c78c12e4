#include <gtest/gtest.h>

#include <future>
#include <holdfast/both.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <mutex>

#include "harness/eventually.hpp"
#include "harness/next_wake.hpp"
#include "harness/passing_on.hpp"
#include "harness/why.hpp"

// Several names asynchronously: multi_lock and both.
namespace {

using namespace std::chrono_literals;
using harness::why;
using holdfast::errc;
using holdfast::lease;
using holdfast::multi_lock;
using holdfast::mutex;
using holdfast::result;

/// Two stores, with other sessions on them.
class several : public testing::TestWithParam<bool> {
 protected:
  holdfast::session open(const char* store) const {
    holdfast::session_options o;
    o.clock = clock_;
    if (GetParam()) o.decorate = holdfast::testing::faulty({});  // one name after the other
    return holdfast::open("memory:several-" + std::string(store), std::move(o));
  }
  static bool is_free(mutex& m) { return bool(m.try_acquire()); }
  static void until_waiting(const holdfast::session& s, const std::string& name) {
    harness::eventually("waiting", [&] { return s.show(name).waiters.size() == 1; });
  }

  /// The result of a wait, while time passes only when all threads sleep: so it has asked for each
  /// lock before its deadline.
  template <class T>
  T while_time_passes(std::future<T> wait) const {
    harness::eventually("its end", [&] {
      harness::pass(*clock_, 1ms);
      return wait.wait_for(0s) == std::future_status::ready;
    });
    return wait.get();
  }

  const std::shared_ptr<holdfast::testing::fake_clock> clock_ =
      std::make_shared<holdfast::testing::fake_clock>();
  holdfast::session here_ = open("here"), elsewhere_ = open("elsewhere");
  holdfast::session others_ = open("here"), others_elsewhere_ = open("elsewhere");
  mutex a_{here_, "a"}, b_{here_, "b"}, c_{elsewhere_, "c"};
  mutex others_a_{others_, "a"}, others_b_{others_, "b"}, others_c_{others_elsewhere_, "c"};
};

INSTANTIATE_TEST_SUITE_P(multi, several, testing::Bool(),
                         [](const auto& cell) { return cell.param ? "one_by_one" : "together"; });

TEST_P(several, all_locks_are_acquired_in_the_given_order_and_released) {
  multi_lock all{c_, b_, a_};
  auto held = async_acquire(all).future().get().value();
  EXPECT_EQ(held.state(), holdfast::lease_state::held);
  ASSERT_EQ(held.fences().size(), 3U);
  EXPECT_EQ(here_.show("b").holders.at(0).fence, held.fences()[1]);
  EXPECT_EQ(here_.show("a").holders.at(0).fence, held.fences()[2]);
  EXPECT_FALSE(is_free(others_c_));
  EXPECT_TRUE(async_release(std::move(held)).future().get());
  EXPECT_TRUE(is_free(others_a_) && is_free(others_b_) && is_free(others_c_));
  EXPECT_THROW((void)async_release(std::move(held)), holdfast::error);
}

TEST_P(several, each_held_name_is_awaited_by_its_session_in_turn) {
  multi_lock all{a_, b_, c_};
  lease theirs = others_b_.acquire();
  lease theirs_elsewhere = others_c_.acquire();
  auto waiting = async_acquire(all).future();
  until_waiting(elsewhere_, "c");
  EXPECT_FALSE(theirs_elsewhere.release());
  until_waiting(here_, "b");
  EXPECT_FALSE(theirs.release());
  EXPECT_TRUE(waiting.get());
}

TEST_P(several, a_timed_out_wait_holds_nothing) {
  multi_lock all{a_, b_, c_};
  const lease theirs = others_b_.acquire();
  for (const auto limit : {0ms, 5ms}) {
    const auto got = while_time_passes(async_acquire(all, limit).future());
    ASSERT_EQ(why(got), limit > 0ms ? errc::timed_out : errc::busy);
    EXPECT_EQ(got.error().name, "b") << "it says which";
  }
  EXPECT_TRUE(is_free(others_a_) && is_free(others_c_));
  EXPECT_TRUE(here_.show("b").waiters.empty());
}

TEST_P(several, a_stopped_wait_releases_its_locks) {
  multi_lock all{a_, b_, c_};
  const lease theirs = others_b_.acquire();
  std::stop_source stop;
  auto waiting = async_acquire(all, {}, stop.get_token()).future();
  until_waiting(here_, "b");
  EXPECT_FALSE(is_free(others_a_) || is_free(others_c_));
  stop.request_stop();
  EXPECT_EQ(why(waiting.get()), errc::cancelled);
  EXPECT_TRUE(is_free(others_a_) && is_free(others_c_));
  EXPECT_TRUE(here_.show("b").waiters.empty());
}

/// Requests the stop when it is called.
class stopping : public harness::passing_on {
 public:
  stopping(std::unique_ptr<session_store> inner, std::stop_source stop)
      : passing_on(std::move(inner)), stop_(std::move(stop)) {}
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    auto reply = passing_on::permits(name, c);
    stop_.request_stop();
    return reply;
  }

 private:
  std::stop_source stop_;
};

TEST_P(several, a_wait_stopped_between_two_sessions_releases_its_locks) {
  std::stop_source stop;
  holdfast::session_options o;
  o.clock = clock_;
  o.decorate = [&](auto inner) { return std::make_unique<stopping>(std::move(inner), stop); };
  const auto far = holdfast::open("memory:several-elsewhere", std::move(o));
  mutex c{far, "c"};
  multi_lock all{a_, c};
  const lease theirs = others_c_.acquire();
  EXPECT_EQ(why(async_acquire(all, {}, stop.get_token()).future().get()), errc::cancelled);
  EXPECT_TRUE(is_free(others_a_));
  EXPECT_TRUE(elsewhere_.show("c").waiters.empty());
}

/// The names that were not acquired.
class in_vain final : public holdfast::observer {
 public:
  void on_event(const holdfast::event& e) override {
    if (e.kind != holdfast::event_kind::gave_up) return;
    const std::lock_guard guard{mutex_};
    names += e.name;
  }
  std::string names;

 private:
  std::mutex mutex_;
};

TEST_P(several, the_observer_learns_which_lock_was_held) {
  const auto seen = std::make_shared<in_vain>();
  const auto session = holdfast::open("memory:several-here", {.observer = seen, .clock = clock_});
  mutex a{session, "a"}, b{session, "b"};
  multi_lock all{a, b};
  const lease theirs = others_b_.acquire();
  EXPECT_EQ(why(while_time_passes(async_acquire(all, 5ms).future())), errc::timed_out);
  EXPECT_EQ(seen->names, "b");
}

TEST_P(several, waits_of_one_session_end_with_it) {
  const lease theirs = others_b_.acquire();
  std::future<result<holdfast::multi_lease>> waiting;
  {
    const auto gone = open("here");
    mutex a{gone, "a"}, b{gone, "b"};
    multi_lock all{a, b};
    waiting = async_acquire(all).future();
    until_waiting(here_, "b");
  }
  EXPECT_EQ(why(waiting.get()), errc::cancelled);
  EXPECT_TRUE(is_free(others_a_));
}

TEST_P(several, a_name_in_use_as_another_kind_is_named) {
  holdfast::semaphore licences{others_, "b", 2};
  const lease theirs = licences.acquire();
  multi_lock all{a_, b_};
  const auto got = async_acquire(all).future().get();
  ASSERT_EQ(why(got), errc::kind_mismatch);
  EXPECT_EQ(got.error().name, "b");
  EXPECT_TRUE(is_free(others_a_));
}

TEST_P(several, both_locks_are_acquired_one_after_the_other_or_neither) {
  holdfast::both<mutex, mutex> two{a_, c_};
  auto held = async_acquire(two).future().get().value();
  EXPECT_FALSE(is_free(others_a_));
  EXPECT_FALSE(is_free(others_c_));
  EXPECT_TRUE(async_release(std::move(held)).future().get());
  EXPECT_TRUE(is_free(others_a_) && is_free(others_c_));
  const lease theirs = others_c_.acquire();
  EXPECT_EQ(why(while_time_passes(async_acquire(two, 5ms).future())), errc::timed_out);
  EXPECT_TRUE(is_free(others_a_));
  std::stop_source stop;
  auto waiting = async_acquire(two, {}, stop.get_token()).future();
  until_waiting(elsewhere_, "c");
  stop.request_stop();
  EXPECT_EQ(why(waiting.get()), errc::cancelled);
  EXPECT_TRUE(is_free(others_a_));
}

}  // namespace
