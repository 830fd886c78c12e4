#include "local/shared_phase.hpp"

#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

#include "forgery.hpp"

// The participants of one session at a barrier ask the store once for all of them.
namespace {

using namespace engine_test;
using holdfast::barrier;
using holdfast::forever;
using holdfast::engine::shared_phase;

/// The machine's, which counts those who begin to wait.
class counting_clock final : public holdfast::clock {
 public:
  std::atomic<int> waits{0};
  holdfast::boot_time now() const noexcept override { return true_one_.now(); }
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  holdfast::boot_time until) override {
    ++waits;
    true_one_.wait_until(lock, cv, until);
  }
  std::chrono::nanoseconds sleep_for(holdfast::boot_time until) const noexcept override {
    return true_one_.sleep_for(until);
  }
  int on_advance(std::function<void()> wake) override {
    return true_one_.on_advance(std::move(wake));
  }
  void forget(int id) noexcept override { true_one_.forget(id); }

 private:
  holdfast::clock& true_one_ = holdfast::real_clock();
};

class phase : public testing::Test {
 protected:
  /// Whether it goes on without asking.
  bool goes_on(shared_phase::place& p) { return p.goes_on(holdfast::real_clock(), forever); }

  std::shared_ptr<shared_phase> of_ = std::make_shared<shared_phase>();
  shared_phase::place one_{of_}, two_{of_};
};

TEST_F(phase, that_ended_for_one_has_ended_for_all_that_had_arrived) {
  one_.enter(10), two_.enter(10);
  EXPECT_FALSE(goes_on(one_));
  one_.ended(12);
  EXPECT_TRUE(goes_on(two_));
}

TEST_F(phase, that_ended_has_not_ended_for_who_arrived_in_the_next_one) {
  one_.enter(10), two_.enter(12);
  EXPECT_FALSE(goes_on(one_));
  one_.ended(12);
  EXPECT_FALSE(goes_on(two_));
  two_.goes_on_waiting();
}

TEST_F(phase, that_ended_says_nothing_of_who_came_after_the_question) {
  one_.enter(10);
  EXPECT_FALSE(goes_on(one_));
  two_.enter(10);
  one_.ended(12);
  EXPECT_FALSE(goes_on(two_));
  two_.goes_on_waiting();
}

TEST_F(phase, of_an_earlier_arrival_is_forgotten_with_the_next) {
  one_.enter(10), two_.enter(10);
  EXPECT_FALSE(goes_on(one_));
  one_.ended(12);
  two_.leave();
  two_.enter(12);
  EXPECT_FALSE(goes_on(two_));
  two_.goes_on_waiting();
}

TEST_F(phase, waits_for_the_answer_to_another_no_longer_than_it_may) {
  one_.enter(10), two_.enter(10);
  EXPECT_FALSE(goes_on(one_));
  EXPECT_FALSE(two_.goes_on(holdfast::real_clock(), holdfast::boot_clock::now()));
  two_.goes_on_waiting();
  one_.goes_on_waiting();
}

TEST_F(phase, is_asked_for_by_each_when_there_was_no_answer) {
  shared_phase::place three{of_};
  one_.enter(10), two_.enter(10), three.enter(10);
  EXPECT_FALSE(goes_on(one_));
  counting_clock clock;
  auto second = std::async(std::launch::async, [&] { return two_.goes_on(clock, forever); });
  auto third = std::async(std::launch::async, [&] { return three.goes_on(clock, forever); });
  harness::eventually("they wait", [&] { return clock.waits >= 2; });
  one_.failed();
  EXPECT_FALSE(second.get());
  EXPECT_FALSE(third.get());
  two_.goes_on_waiting(), three.goes_on_waiting();
}

TEST(barrier_of_many, is_one_question_for_all_of_a_session) {
  forgery f;
  constexpr std::uint32_t many = 8;
  barrier all{f.session, "b", many};
  std::vector<barrier::arrival> arrived(many - 1);
  for (auto& a : arrived) a = all.arrive();
  std::vector<std::thread> waiting;
  const auto began = f.session.store_operations();
  for (auto& a : arrived) waiting.emplace_back([&] { all.wait(std::move(a)); });
  harness::eventually("they wait",
                      [&] { return f.session.store_operations() == began + many - 1; });
  const auto before = f.session.store_operations();
  all.wait(all.arrive());
  for (auto& t : waiting) t.join();
  EXPECT_LE(f.session.store_operations() - before, 2U) << "the last arrival, and one question";
}

TEST(barrier_of_many, lets_nobody_go_on_with_the_one_that_completes) {
  forgery f;
  std::atomic<int> gone{0};
  const auto complete = [&] {
    const auto before = f.session.store_operations();
    harness::eventually("the others look", [&] {
      f.clock->advance(500ms);
      return f.session.store_operations() >= before + 2;
    });
    EXPECT_EQ(gone, 0);
  };
  barrier all{f.session, "b", 3, {.lease = 1h, .on_completion = complete}};
  const auto take_part = [&] {
    all.arrive_and_wait();
    ++gone;
  };
  std::vector<std::thread> others;
  others.emplace_back(take_part);
  others.emplace_back(take_part);
  f.await_waiters("b", 2);
  take_part();
  for (auto& t : others) t.join();
}

}  // namespace
