#include <mutex>
#include <shared_mutex>
#include <thread>

#include "conformance/cell.hpp"
#include "conformance/events.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"

// The standard's interface: locks belong to threads, and work with the standard's guards.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::event_kind;

class std_forms : public suite {
 protected:
  std::unique_ptr<lockable> make(holdfast::session s, const std::string& name,
                                 holdfast::lock_options o = {}) const {
    return make_lockable(GetParam().primitive, std::move(s), name, o);
  }
  static void on_another_thread(const std::function<void()>& action) { std::thread(action).join(); }
  std::unique_ptr<lockable> lock_ = make(here_, name_);
  std::unique_ptr<lockable> rival_ = make(another(), name_);
};

INSTANTIATE_TEST_SUITE_P(stores, std_forms,
                         testing::ValuesIn(cells({"mutex", "fair_mutex", "recursive_mutex",
                                                  "shared_mutex"})),
                         cell_name);

TEST_P(std_forms, lock_guard_holds_to_the_end_of_its_scope) {
  {
    const std::lock_guard guard{*lock_};
    EXPECT_FALSE(rival_->try_lock());
  }
  EXPECT_TRUE(now_had([&] { return rival_->try_lock(); }));
  rival_->unlock();
}

TEST_P(std_forms, unique_lock_waits_until_its_deadline_and_no_longer) {
  std::unique_lock first{*lock_, 1h};
  EXPECT_TRUE(first.owns_lock());
  on_another_thread([&] {
    std::unique_lock second{*rival_, 20ms};
    EXPECT_FALSE(second.owns_lock());
  });
  first.unlock();
  on_another_thread([&] { EXPECT_TRUE((std::unique_lock{*rival_, 1h}.owns_lock())); });
  until_free();
}

TEST_P(std_forms, scoped_lock_of_two_taken_in_both_orders_never_hangs) {
  const auto other = make(here_, "other");
  const auto rival_other = make(another(), "other");
  int inside = 0;
  const auto work = [&](lockable& a, lockable& b) {
    for (int i = 0; i < 30; ++i) {
      const std::scoped_lock both{a, b};
      EXPECT_EQ(++inside, 1);
      std::this_thread::yield();
      --inside;
    }
  };
  std::thread one([&] { work(*lock_, *other); });
  std::thread two([&] { work(*rival_other, *rival_); });
  one.join();
  two.join();
  until_free();
}

TEST_P(std_forms, std_lock_takes_all_of_several_or_none) {
  const auto second = make(here_, "second");
  const auto third = make(here_, "third");
  std::lock(*lock_, *second, *third);
  EXPECT_EQ(here_.names().size(), 3u);
  lock_->unlock();
  second->unlock();
  third->unlock();
  EXPECT_TRUE(now_had([&] { return here_.names().empty(); }));
  const auto taken = make(another(), "third");
  taken->lock();
  EXPECT_TRUE(now_had([&] { return std::try_lock(*lock_, *second, *third) == 2; }));
  EXPECT_TRUE(now_had([&] { return here_.names() == std::vector<std::string>{"third"}; }));
}

TEST_P(std_forms, unlock_by_a_thread_that_is_not_the_holder_reports_an_error) {
  const auto watcher = std::make_shared<events>();
  const auto lock = make(another({.observer = watcher}), name_);
  lock->lock();
  on_another_thread([&] { lock->unlock(); });
  EXPECT_EQ(watcher->count(event_kind::misuse), 1);
  EXPECT_FALSE(rival_->try_lock());
  EXPECT_NO_THROW(lock->check());
  lock->unlock();
  EXPECT_EQ(watcher->count(event_kind::misuse), 1);
  lock->unlock();
  EXPECT_EQ(watcher->count(event_kind::misuse), 2);
}

TEST_P(std_forms, state_queries_are_about_the_hold_of_the_calling_thread) {
  lock_->lock();
  EXPECT_GT(lock_->fence(), 0u);
  on_another_thread([&] {
    EXPECT_EQ(lock_->fence(), 0u);
    EXPECT_EQ(reason_of([&] { lock_->check(); }), errc::not_owner);
    EXPECT_FALSE(lock_->lost().stop_requested());
    EXPECT_FALSE(lock_->try_lock());
  });
  EXPECT_NO_THROW(lock_->check());
  lock_->unlock();
  EXPECT_EQ(lock_->fence(), 0u);
  EXPECT_EQ(reason_of([&] { lock_->check(); }), errc::not_owner);
}

TEST_P(std_forms, a_wait_whose_stop_was_requested_returns_false) {
  lock_->lock();
  std::stop_source stop;
  std::thread waiter([&] { EXPECT_FALSE(rival_->lock(stop.get_token())); });
  until_waiting(1);
  stop.request_stop();
  waiter.join();
  expect_no_waiters();
}

TEST_P(std_forms, a_destroyed_lock_releases_the_holds_that_are_left) {
  lock_->lock();
  lock_.reset();
  EXPECT_TRUE(now_had([&] { return rival_->try_lock(); }));
}

TEST_P(std_forms, waiting_threads_of_one_object_all_get_their_turn) {
  int entered = 0;
  lock_->lock();
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&] {
      const std::lock_guard guard{*lock_};
      ++entered;
    });
  }
  lock_->unlock();
  for (auto& t : threads) t.join();
  EXPECT_EQ(entered, 20);
}

TEST_P(std_forms, a_lost_hold_is_reported_and_can_be_unlocked) {
  const auto lock = make(here_, "short", {.lease = lease_of(holdfast::min_lease), .renew = false});
  lock->lock();
  const auto lost = lock->lost();
  harness::eventually("the loss is told", [&] { return lost.stop_requested(); });
  EXPECT_EQ(reason_of([&] { lock->check(); }), errc::lost);
  const auto fence = lock->fence();
  lock->unlock();
  lock->lock();
  EXPECT_GT(lock->fence(), fence);
  lock->unlock();
}

TEST_P(std_forms, its_name_has_the_session_s_prefix) {
  const auto session = another({.name_prefix = "shop:"});
  const auto lock = make(session, "orders");
  EXPECT_EQ(lock->name(), "shop:orders");
  lock->lock();
  EXPECT_EQ(here_.show("shop:orders").holders.size(), 1u);
  EXPECT_EQ(session.show("orders").holders.size(), 1u);
  EXPECT_TRUE(now_had([&] { return lock_->try_lock(); }))
      << "without the prefix it is another name";
}

}  // namespace
}  // namespace conformance
