#include <future>
#include <thread>

#include "conformance/cell.hpp"
#include "harness/detached_task.hpp"
#include "harness/eventually.hpp"
#include "harness/why.hpp"

// The asynchronous form of each primitive: as a future, called back, and in coroutines.
namespace conformance {
namespace {

using namespace std::chrono_literals;
using harness::why;
using holdfast::done;
using holdfast::errc;
using holdfast::lease;
using holdfast::pending;
using holdfast::result;
using holdfast::wait_limit;

/// Any primitive that grants one lease at a time.
class async_exclusive {
 public:
  async_exclusive(std::string primitive, const holdfast::session& s, const std::string& name)
      : primitive_(std::move(primitive)),
        mutex_(primitive_ == "mutex" ? new holdfast::mutex(s, name, of_row()) : nullptr),
        fair_(primitive_ == "fair_mutex" ? new holdfast::fair_mutex(s, name, of_row()) : nullptr),
        shared_(primitive_ == "shared_mutex" ? new holdfast::shared_mutex(s, name, {of_row(), {}})
                                             : nullptr),
        semaphore_(primitive_ == "semaphore" ? new holdfast::semaphore(s, name, 5, of_row())
                                             : nullptr) {}

  pending<lease> acquire(wait_limit limit = {}, std::stop_token stop = {}) {
    if (mutex_) return async_acquire(*mutex_, limit, stop);
    if (fair_) return async_acquire(*fair_, limit, stop);
    if (shared_) return async_acquire(*shared_, limit, stop);
    return async_acquire(*semaphore_, 5, limit, stop);
  }

 private:
  std::string primitive_;
  std::unique_ptr<holdfast::mutex> mutex_;
  std::unique_ptr<holdfast::fair_mutex> fair_;
  std::unique_ptr<holdfast::shared_mutex> shared_;
  std::unique_ptr<holdfast::semaphore> semaphore_;
};

class async_waiting : public suite {
 protected:
  async_exclusive lock_{GetParam().primitive, here_, name_};
  holdfast::session there_ = another();
  async_exclusive rival_{GetParam().primitive, there_, name_};
};

INSTANTIATE_TEST_SUITE_P(
    stores, async_waiting,
    testing::ValuesIn(cells({"mutex", "fair_mutex", "shared_mutex", "semaphore"})), cell_name);

TEST_P(async_waiting, a_released_lock_goes_to_a_waiter_without_a_thread) {
  lease held = lock_.acquire().future().get().value();
  auto there = rival_.acquire().future();
  until_waiting(1);
  const auto mine = held.fence();
  EXPECT_FALSE(held.release());
  const lease theirs = there.get().value();
  EXPECT_GT(theirs.fence(), mine);
}

TEST_P(async_waiting, a_timed_out_wait_leaves_no_queue_entry) {
  const lease held = lock_.acquire().future().get().value();
  EXPECT_EQ(why(rival_.acquire(0s).future().get()), errc::busy);
  EXPECT_EQ(why(rival_.acquire(20ms).future().get()), errc::timed_out);
  EXPECT_EQ(why(lock_.acquire(std::chrono::steady_clock::now() + 20ms).future().get()),
            errc::timed_out);
  expect_no_waiters();
}

TEST_P(async_waiting, a_stopped_wait_leaves_no_queue_entry) {
  lease held = lock_.acquire().future().get().value();
  std::stop_source stop;
  auto there = rival_.acquire({}, stop.get_token()).future();
  until_waiting(1);
  stop.request_stop();
  EXPECT_EQ(why(there.get()), errc::cancelled);
  expect_no_waiters();
  EXPECT_FALSE(held.release());
  until_free();
}

TEST_P(async_waiting, a_stop_that_races_with_the_grant_leaves_nothing) {
  for (int i = 0; i < 50; ++i) {
    lease held = lock_.acquire().future().get().value();
    std::stop_source stop;
    auto there = rival_.acquire({}, stop.get_token()).future();
    until_waiting(1);
    std::thread canceller([&] { stop.request_stop(); });
    EXPECT_FALSE(held.release());
    canceller.join();
    const auto how = there.get();
    EXPECT_TRUE(how || why(how) == errc::cancelled);
  }
  until_free();
}

TEST_P(async_waiting, waiters_of_a_closed_session_are_notified_and_leave_the_queue) {
  const lease held = lock_.acquire().future().get().value();
  std::vector<std::future<result<lease>>> waiting;
  {
    auto session = another();
    async_exclusive theirs{GetParam().primitive, session, name_};
    for (int i = 0; i < 5; ++i) waiting.push_back(theirs.acquire().future());
    harness::eventually("waiting", [&] { return waiters() >= 1; });
  }
  for (auto& w : waiting) EXPECT_EQ(why(w.get()), errc::cancelled);
  EXPECT_EQ(waiters(), 0U);
}

harness::detached_task add_in_turn(async_exclusive& lock, int times, int& sum,
                                   std::promise<void>& end) {
  for (int i = 0; i < times; ++i) {
    auto held = co_await lock.acquire();
    EXPECT_TRUE(held);
    ++sum;  // protected by the lock
    const auto released = co_await async_release(std::move(held).value());
    EXPECT_TRUE(released);
  }
  end.set_value();
}

TEST_P(async_waiting, coroutines_of_two_sessions_take_turns) {
  constexpr int times = 5;
  int sum = 0;
  std::vector<std::promise<void>> ends(6);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    add_in_turn(i % 2 == 0 ? lock_ : rival_, times, sum, ends[i]);
  }
  for (auto& end : ends) end.get_future().wait();
  EXPECT_EQ(sum, times * static_cast<int>(ends.size()));
  until_free();
}

TEST_P(async_waiting, callbacks_get_the_lease_and_may_be_move_only) {
  std::promise<lease> got;
  auto given = got.get_future();
  lock_.acquire().start([got = std::move(got)](result<lease> held) mutable {
    got.set_value(std::move(held).value());
  });
  EXPECT_EQ(given.get().state(), holdfast::lease_state::held);
}

// ---- what only one of them has

class async_shared : public suite {};
INSTANTIATE_TEST_SUITE_P(stores, async_shared, testing::ValuesIn(cells({"shared_mutex"})),
                         cell_name);

TEST_P(async_shared, readers_enter_together_and_a_writer_after_them) {
  holdfast::shared_mutex lock{here_, name_, {of_row(), {}}};
  lease one = async_acquire_shared(lock).future().get().value();
  lease two = async_acquire_shared(lock).future().get().value();
  auto writer = async_acquire(lock).future();
  until_waiting(1);
  EXPECT_FALSE(one.release());
  EXPECT_EQ(waiters(), 1U);
  EXPECT_FALSE(two.release());
  EXPECT_TRUE(writer.get());
}

class async_semaphore : public suite {};
INSTANTIATE_TEST_SUITE_P(stores, async_semaphore, testing::ValuesIn(cells({"semaphore"})),
                         cell_name);

TEST_P(async_semaphore, all_permits_of_a_weight_are_acquired_or_no_permit) {
  holdfast::semaphore permits{here_, name_, 5, of_row()};
  lease three = async_acquire(permits, 3).future().get().value();
  EXPECT_EQ(why(async_acquire(permits, 3, 0s).future().get()), errc::busy);
  auto waiting = async_acquire(permits, 3).future();
  until_waiting(1);
  EXPECT_FALSE(three.release());
  EXPECT_TRUE(waiting.get());
  EXPECT_TRUE(async_acquire(permits, 1h).future().get());
  EXPECT_THROW((void)async_acquire(permits, 6), holdfast::error);
}

class async_permits : public suite {};
INSTANTIATE_TEST_SUITE_P(stores, async_permits, testing::ValuesIn(cells({"expiring_semaphore"})),
                         cell_name);

TEST_P(async_permits, a_permit_is_handed_to_the_next_by_its_id) {
  holdfast::expiring_semaphore permits{here_, name_, 1};
  const auto first = async_acquire(permits, 30s).future().get().value();
  EXPECT_EQ(why(async_acquire(permits, 30s, 0s).future().get()), errc::busy);
  auto next = async_acquire(permits, 30s).future();
  until_waiting(1);
  EXPECT_TRUE(permits.release(first.id));
  const auto second = next.get().value();
  EXPECT_GT(second.fence, first.fence);
  EXPECT_TRUE(permits.release(second.id));
}

TEST_P(async_permits, a_stopped_wait_keeps_no_permit) {
  holdfast::expiring_semaphore permits{here_, name_, 1};
  const auto first = async_acquire(permits, 30s).future().get().value();
  std::stop_source stop;
  auto next = async_acquire(permits, 30s, {}, stop.get_token()).future();
  until_waiting(1);
  stop.request_stop();
  EXPECT_EQ(why(next.get()), errc::cancelled);
  expect_no_waiters();
  EXPECT_TRUE(permits.release(first.id));
  harness::eventually("it is there again", [&] { return permits.available() == 1; });
}

class async_latch : public suite {};
INSTANTIATE_TEST_SUITE_P(stores, async_latch, testing::ValuesIn(cells({"latch"})), cell_name);

TEST_P(async_latch, waiters_go_on_when_the_count_reaches_zero) {
  holdfast::latch here{here_, name_, 2};
  auto there_session = another();
  holdfast::latch there{there_session, name_, 2};
  std::vector<std::future<result<done>>> waiting;
  for (int i = 0; i < 5; ++i) waiting.push_back(async_wait(i % 2 == 0 ? here : there).future());
  until_waiting(5);
  EXPECT_TRUE(async_count_down(here).future().get());
  EXPECT_EQ(why(async_wait(there, 0s).future().get()), errc::busy);
  EXPECT_TRUE(async_count_down(there).future().get());
  for (auto& w : waiting) EXPECT_TRUE(w.get());
  EXPECT_EQ(why(async_count_down(here).future().get()), errc::invalid_argument);
}

TEST_P(async_latch, a_stopped_wait_leaves_the_list) {
  holdfast::latch here{here_, name_, 2};
  std::stop_source stop;
  auto waiting = async_wait(here, {}, stop.get_token()).future();
  until_waiting(1);
  stop.request_stop();
  EXPECT_EQ(why(waiting.get()), errc::cancelled);
  expect_no_waiters();
}

}  // namespace
}  // namespace conformance
