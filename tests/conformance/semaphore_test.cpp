#include <barrier>
#include <set>
#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "harness/eventually.hpp"

namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lease;
using holdfast::semaphore;

class permits : public suite {
 protected:
  static constexpr std::uint32_t max_capacity = 1u << 30;
  semaphore three_{here_, name_, 3, of_row()};
  semaphore rival_{another(), name_, 3, of_row()};
};

INSTANTIATE_TEST_SUITE_P(stores, permits, testing::ValuesIn(cells({"semaphore"})), cell_name);

TEST_P(permits, exactly_as_many_holders_enter_as_there_are_permits) {
  std::vector<lease> held;
  for (std::uint32_t left = 3; left > 0; --left) {
    EXPECT_EQ(three_.available(), left);
    held.push_back((left % 2 == 0 ? three_ : rival_).acquire());
  }
  EXPECT_EQ(three_.available(), 0u);
  EXPECT_FALSE(three_.try_acquire());
  EXPECT_FALSE(rival_.try_acquire());
  held.pop_back();
  EXPECT_TRUE(now_had([&] { return three_.available() == 1u; }));
  EXPECT_TRUE(now_had([&] { return rival_.try_acquire().has_value(); }));
  held.push_back(three_.acquire());
  EXPECT_FALSE(rival_.try_acquire_for(10ms));
}

TEST_P(permits, the_number_inside_is_at_times_one_two_and_three_and_never_four) {
  std::mutex mutex;
  std::set<int> seen;
  int inside = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 10; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 10; ++round) {
        const lease held = (i % 2 == 0 ? three_ : rival_).acquire();
        {
          const std::lock_guard guard{mutex};
          seen.insert(++inside);
        }
        // Nobody leaves before three are in: the test shows that three can be.
        harness::eventually("three are inside", [&] {
          const std::lock_guard guard{mutex};
          return seen.contains(3);
        });
        const std::lock_guard guard{mutex};
        --inside;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(seen, (std::set<int>{1, 2, 3}));
  EXPECT_TRUE(now_had([&] { return three_.available() == 3u; }));
}

TEST_P(permits, a_hundred_threads_reach_the_limit_of_ten_and_never_exceed_it) {
  std::barrier start(100);
  std::mutex mutex;
  int inside = 0;
  int most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 100; ++i) {
    threads.emplace_back([&] {
      semaphore ten{here_, "ten", 10};
      start.arrive_and_wait();
      const lease held = ten.acquire();
      {
        const std::lock_guard guard{mutex};
        most = std::max(most, ++inside);
      }
      // Nobody leaves before ten are in: the test shows that ten can be.
      harness::eventually("ten are inside", [&] {
        const std::lock_guard guard{mutex};
        return most == 10;
      });
      const std::lock_guard guard{mutex};
      --inside;
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(most, 10);
}

TEST_P(permits, several_permits_are_acquired_together_or_not_at_all) {
  semaphore five{here_, "five", 5};
  const lease two = five.acquire(2);
  EXPECT_FALSE(five.try_acquire(4));
  EXPECT_EQ(five.available(), 3u);
  const auto three = five.try_acquire(3);
  EXPECT_TRUE(three);
  EXPECT_EQ(five.available(), 0u);
}

TEST_P(permits, a_large_request_is_not_overtaken_by_small_ones) {
  lease one = three_.acquire(1);
  std::atomic<bool> had_all{false};
  std::thread large([&] {
    const lease all = rival_.acquire(3);
    had_all = true;
  });
  until_waiting(1);
  EXPECT_FALSE(three_.try_acquire(1)) << "there is room, but somebody is in line";
  std::thread small([&] {
    const lease held = three_.acquire(1);
    EXPECT_TRUE(had_all);
  });
  until_waiting(2);
  one = {};
  large.join();
  small.join();
}

TEST_P(permits, a_large_request_that_gives_up_lets_the_small_ones_in) {
  const lease one = three_.acquire(1);
  std::stop_source stop;
  std::thread large([&] { EXPECT_FALSE(rival_.try_acquire_for(1h, 3, stop.get_token())); });
  until_waiting(1);
  std::thread small([&] { EXPECT_TRUE(three_.acquire(1)); });
  until_waiting(2);
  stop.request_stop();
  large.join();
  small.join();
}

TEST_P(permits, two_objects_of_a_name_share_its_permits) {
  semaphore a{here_, "drain", 4};
  semaphore b{another(), "drain", 4};
  for (int round = 0; round < 3; ++round) {
    std::vector<lease> held;
    for (int i = 0; i < 4; ++i) held.push_back((i % 2 == 0 ? a : b).acquire());
    EXPECT_FALSE(a.try_acquire());
    EXPECT_FALSE(b.try_acquire());
  }
  EXPECT_EQ(b.available(), 4u);
}

TEST_P(permits, the_largest_capacity_and_the_longest_name_work) {
  const std::string name(here_.can().max_name_bytes, 'n');
  semaphore many{here_, name, max_capacity};
  EXPECT_EQ(many.capacity(), max_capacity);
  std::vector<lease> held;
  for (int i = 0; i < 100; ++i) held.push_back(many.acquire());
  EXPECT_EQ(many.available(), max_capacity - 100);
  const lease rest = many.acquire(max_capacity - 100);
  EXPECT_EQ(many.available(), 0u);
  EXPECT_FALSE(many.try_acquire());
}

TEST_P(permits, impossible_capacities_and_weights_are_refused) {
  for (const std::uint32_t bad : {0u, max_capacity + 1, 0xffffffffu}) {
    EXPECT_THROW(semaphore(here_, "n", bad), holdfast::error) << bad;
  }
  for (const std::uint32_t bad : {0u, 4u, 0xffffffffu}) {
    EXPECT_EQ(reason_of([&] { (void)three_.acquire(bad); }), errc::invalid_argument);
    EXPECT_EQ(reason_of([&] { (void)three_.try_acquire(bad); }), errc::invalid_argument);
    EXPECT_EQ(reason_of([&] { (void)three_.try_acquire_for(1h, bad); }), errc::invalid_argument);
  }
  EXPECT_TRUE(here_.names().empty());
}

TEST_P(permits, each_hold_has_a_fence_of_its_own) {
  std::set<std::uint64_t> fences;
  std::vector<lease> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(three_.acquire());
    fences.insert(held.back().fence());
  }
  EXPECT_EQ(fences.size(), 3u);
}

TEST_P(permits, a_permit_without_renewal_expires_and_comes_back) {
  semaphore one{here_, "one", 1, {.lease = holdfast::min_lease, .renew = false}};
  const lease lost = one.acquire();
  EXPECT_TRUE(semaphore(another(), "one", 1).acquire());
  EXPECT_EQ(lost.state(), holdfast::lease_state::lost);
  EXPECT_EQ(one.available(), 1u);
}

TEST_P(permits, a_second_release_never_adds_a_permit) {
  lease held = three_.acquire();
  (void)held.release();
  (void)held.release();
  EXPECT_EQ(three_.available(), 3u);
  EXPECT_EQ(three_.capacity(), 3u);
}

class counting : public suite {
 protected:
  holdfast::counting_semaphore two_{here_, name_, 2};
};

INSTANTIATE_TEST_SUITE_P(stores, counting, testing::ValuesIn(cells({"counting_semaphore"})),
                         cell_name);

TEST_P(counting, counting_semaphore_has_the_interface_of_the_standard) {
  two_.acquire();
  EXPECT_TRUE(two_.try_acquire());
  EXPECT_FALSE(two_.try_acquire());
  EXPECT_FALSE(two_.try_acquire_for(10ms));
  EXPECT_FALSE(two_.try_acquire_until(std::chrono::steady_clock::now() + 10ms));
  two_.release();
  EXPECT_TRUE(two_.try_acquire_for(1h));
  EXPECT_EQ(two_.max(), 2u);
  two_.release(2);
  until_free();
}

TEST_P(counting, it_shares_a_name_with_semaphore) {
  if (!here_.can().semaphore) {
    EXPECT_EQ(reason_of([&] { semaphore(here_, name_, 2); }), errc::unsupported);
    return;
  }
  semaphore same{another(), name_, 2};
  two_.acquire();
  EXPECT_EQ(same.available(), 1u);
  const lease other = same.acquire();
  EXPECT_FALSE(two_.try_acquire());
}

TEST_P(counting, a_permit_can_not_be_made_by_releasing_it) {
  EXPECT_EQ(reason_of([&] { two_.release(); }), errc::not_owner);
  two_.acquire();
  EXPECT_EQ(reason_of([&] { two_.release(2); }), errc::not_owner);
  EXPECT_EQ(holders(), 1u) << "refused as a whole";
  two_.release(0);
  EXPECT_EQ(holders(), 1u);
  two_.release();
  expect_free();
}

TEST_P(counting, any_thread_may_release_what_any_thread_acquired) {
  two_.acquire();
  std::thread([&] { two_.release(); }).join();
  expect_free();
}

TEST_P(counting, the_destructor_releases_its_permits) {
  {
    holdfast::counting_semaphore other{another(), name_, 2};
    other.acquire();
    other.acquire();
    EXPECT_FALSE(two_.try_acquire());
  }
  EXPECT_TRUE(two_.try_acquire());
}

}  // namespace
}  // namespace conformance
