#include <mutex>
#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"

namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::recursive_mutex;

class recursive : public suite {
 protected:
  recursive_mutex lock_{here_, name_, of_row()};
  recursive_mutex rival_{another(), name_, of_row()};
};

INSTANTIATE_TEST_SUITE_P(stores, recursive, testing::ValuesIn(cells({"recursive_mutex"})),
                         cell_name);

TEST_P(recursive, the_holder_may_lock_again_and_must_unlock_as_many_times) {
  for (std::uint32_t level = 1; level <= 5; ++level) {
    lock_.lock();
    EXPECT_EQ(lock_.level(), level);
  }
  for (std::uint32_t level = 5; level > 0; --level) {
    EXPECT_EQ(lock_.level(), level);
    EXPECT_FALSE(rival_.try_lock());
    lock_.unlock();
  }
  EXPECT_EQ(lock_.level(), 0u);
  EXPECT_TRUE(now_had([&] { return rival_.try_lock(); }));
}

TEST_P(recursive, the_fence_is_the_same_at_all_levels_and_greater_the_next_time) {
  lock_.lock();
  const auto fence = lock_.fence();
  lock_.lock();
  EXPECT_EQ(lock_.fence(), fence);
  lock_.unlock();
  EXPECT_EQ(lock_.fence(), fence);
  lock_.unlock();
  lock_.lock();
  EXPECT_GT(lock_.fence(), fence);
  lock_.unlock();
}

TEST_P(recursive, a_nested_lock_costs_no_round_trip) {
  recursive_mutex lock{here_, "cheap", of_row()};
  lock.lock();
  const auto before = here_.store_operations();
  for (int i = 0; i < 100; ++i) lock.lock();
  EXPECT_TRUE(now_had([&] { return lock.try_lock(); }));
  EXPECT_TRUE(lock.try_lock_for(1h));
  for (int i = 0; i < 102; ++i) lock.unlock();
  EXPECT_EQ(here_.store_operations(), before);
  lock.unlock();
}

TEST_P(recursive, a_lock_that_was_stopped_before_takes_no_level) {
  std::stop_source source;
  source.request_stop();
  EXPECT_FALSE(lock_.lock(source.get_token()));
  EXPECT_EQ(lock_.level(), 0u);
  lock_.lock();
  EXPECT_FALSE(lock_.lock(source.get_token()));
  EXPECT_EQ(lock_.level(), 1u);
  EXPECT_TRUE(lock_.lock(std::stop_token{}));
  lock_.unlock();
  lock_.unlock();
  EXPECT_EQ(lock_.level(), 0u);
}

TEST_P(recursive, another_thread_of_the_process_is_kept_out) {
  lock_.lock();
  lock_.lock();
  std::thread([&] {
    EXPECT_FALSE(lock_.try_lock());
    EXPECT_FALSE(lock_.try_lock_for(10ms));
    EXPECT_EQ(lock_.level(), 0u);
    lock_.unlock();  // not its own: no effect
  }).join();
  EXPECT_EQ(lock_.level(), 2u);
  lock_.unlock();
  lock_.unlock();
}

TEST_P(recursive, two_objects_of_one_name_exclude_each_other_even_on_one_thread) {
  recursive_mutex twin{here_, name_, of_row()};
  lock_.lock();
  EXPECT_FALSE(twin.try_lock());
  lock_.unlock();
  EXPECT_TRUE(now_had([&] { return twin.try_lock(); }));
}

TEST_P(recursive, two_threads_with_nested_locks_take_turns) {
  int inside = 0;
  const auto work = [&](recursive_mutex& m) {
    for (int i = 0; i < 50; ++i) {
      const std::lock_guard outer{m};
      const std::lock_guard inner{m};
      EXPECT_EQ(++inside, 1);
      std::this_thread::yield();
      --inside;
    }
  };
  std::thread a([&] { work(lock_); });
  std::thread b([&] { work(lock_); });
  std::thread c([&] { work(rival_); });
  a.join();
  b.join();
  c.join();
  until_free();
}

TEST_P(recursive, a_lost_lock_refuses_a_nested_lock) {
  recursive_mutex lock{here_, "short",
                       of_row({.lease = lease_of(holdfast::min_lease), .renew = false})};
  lock.lock();
  harness::eventually("the loss is told", [&] { return lock.lost().stop_requested(); });
  EXPECT_EQ(reason_of([&] { lock.lock(); }), errc::lost);
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(reason_of([&] { (void)lock.lock(source.get_token()); }), errc::lost);
  EXPECT_EQ(lock.level(), 1u);
  const auto fence = lock.fence();
  lock.unlock();
  lock.lock();
  EXPECT_GT(lock.fence(), fence);
  lock.unlock();
}

}  // namespace
}  // namespace conformance
