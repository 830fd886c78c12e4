#include <array>
#include <thread>

#include "conformance/cell.hpp"
#include "conformance/exclusive.hpp"
#include "conformance/fault_script.hpp"
#include "harness/concurrently.hpp"
#include "harness/eventually.hpp"
#include "harness/why.hpp"

namespace conformance {
namespace {

using namespace std::chrono_literals;
using holdfast::barrier;
using holdfast::errc;

class barriers : public suite {
 protected:
  /// Runs `work` for each of three participants, each with a session of its own.
  template <class Work>
  void three(Work work, holdfast::barrier_options options = {}) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&, i, session = another()] {
        barrier mine{session, name_, 3, options};
        work(mine, i);
      });
    }
    for (auto& t : threads) t.join();
  }

  barrier two_{here_, name_, 2};
  barrier rival_{another(), name_, 2};
};

INSTANTIATE_TEST_SUITE_P(stores, barriers, testing::ValuesIn(cells({"barrier"})), cell_name);

TEST_P(barriers, no_participant_goes_on_until_all_have_arrived_phase_after_phase) {
  std::array<std::atomic<int>, 4> arrived{};
  three([&](barrier& b, int) {
    for (auto& phase : arrived) {
      ++phase;
      b.arrive_and_wait();
      EXPECT_EQ(phase, 3);
    }
  });
  until_free();
  EXPECT_TRUE(here_.names().empty());
}

TEST_P(barriers, the_threads_that_share_an_object_are_participants_each) {
  barrier four{here_, name_, 4};
  std::array<std::atomic<int>, 3> arrived{};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (auto& phase : arrived) {
        ++phase;
        four.arrive_and_wait();
        EXPECT_EQ(phase, 4);
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(holders(), 4u);
}

TEST_P(barriers, the_completion_of_each_phase_runs_before_any_participant_goes_on) {
  std::atomic<int> completions{0};
  const auto complete = [&] { ++completions; };
  three(
      [&](barrier& b, int) {
        for (int phase = 1; phase <= 3; ++phase) {
          b.arrive_and_wait();
          EXPECT_GE(completions, phase);
        }
      },
      {.on_completion = complete});
  EXPECT_EQ(completions, 3);
}

TEST_P(barriers, a_participant_that_arrives_need_not_wait_at_once) {
  auto mine = two_.arrive();
  EXPECT_FALSE(two_.wait_for(mine, 1ms));
  EXPECT_FALSE(two_.wait_until(mine, std::chrono::steady_clock::now()));
  EXPECT_EQ(waiters(), 1u) << "the arrival stands";
  auto last = rival_.arrive();
  EXPECT_TRUE(two_.wait_for(mine, 1h));
  rival_.wait(std::move(last));
}

TEST_P(barriers, a_cancelled_wait_does_not_undo_the_arrival) {
  auto mine = two_.arrive();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(two_.wait(mine, stop.get_token()));
  rival_.wait(rival_.arrive());
  EXPECT_TRUE(two_.wait(mine, std::stop_token{}));
}

TEST_P(barriers, the_arrival_after_one_without_a_wait_belongs_to_the_next_phase) {
  {
    const auto thrown_away = two_.arrive();
  }
  std::thread other([&] {
    rival_.arrive_and_wait();
    rival_.arrive_and_wait();
  });
  two_.arrive_and_wait();
  other.join();
}

TEST_P(barriers, a_thread_does_not_take_over_an_arrival_without_a_waiter) {
  {
    (void)two_.arrive();
  }
  harness::concurrently([&] { two_.arrive_and_wait(); }).get();
  two_.arrive_and_drop();
}

TEST_P(barriers, after_all_arrivals_a_thread_replaces_an_ended_thread) {
  harness::concurrently([&] { (void)two_.arrive(); }).get();
  auto rivals = rival_.arrive();
  auto next = harness::concurrently([&] { return two_.arrive(); }).get();
  rival_.wait(std::move(rivals));
  rival_.arrive_and_wait();
  two_.wait(std::move(next));
}

TEST_P(barriers, a_thread_whose_wait_ended_arrives_again_and_counts_once) {
  barrier shared{here_, name_, 3}, other{another(), name_, 3};
  auto of_another_thread = harness::concurrently([&] { return shared.arrive(); }).get();
  auto mine = shared.arrive();
  other.arrive_and_wait();
  shared.wait(std::move(mine));
  {
    auto given_up = shared.arrive();
    EXPECT_FALSE(shared.wait_for(given_up, 0ms));
  }
  shared.wait(std::move(of_another_thread));  // a participant whose phase is over rests there, too
  auto again = async_arrive(shared).future();
  auto waits = other.arrive();
  EXPECT_FALSE(other.wait_for(waits, 0ms));
  harness::concurrently([&] { shared.arrive_and_wait(); }).get();
  other.wait(std::move(waits));
  auto next = again.get().value();
  EXPECT_FALSE(shared.wait_for(next, 0ms)) << "it is of the next phase";
}

TEST_P(barriers, later_phases_do_not_wait_for_a_participant_that_dropped_out) {
  std::thread leaves([&] { rival_.arrive_and_drop(); });
  two_.arrive_and_wait();
  leaves.join();
  two_.arrive_and_wait();
  two_.arrive_and_wait();
}

TEST_P(barriers, a_barrier_that_all_participants_left_frees_its_name) {
  two_.arrive_and_drop();
  EXPECT_EQ(waiters(), 1u);
  rival_.arrive_and_drop();
  EXPECT_TRUE(holdfast::mutex(here_, name_).try_lock());
}

TEST_P(barriers, one_participant_too_many_is_refused_and_changes_nothing) {
  auto mine = two_.arrive();
  auto other = rival_.arrive();
  two_.wait(std::move(mine));
  barrier third{another(), name_, 2};
  EXPECT_EQ(reason_of([&] { third.arrive_and_wait(); }), errc::capacity_mismatch);
  EXPECT_EQ(reason_of([&] { third.arrive_and_drop(); }), errc::capacity_mismatch);
  EXPECT_EQ(holders(), 2u);
  rival_.wait(std::move(other));
}

TEST_P(barriers, another_count_or_kind_on_its_name_is_refused) {
  auto mine = two_.arrive();
  barrier other{here_, name_, 3};
  EXPECT_EQ(reason_of([&] { other.arrive_and_wait(); }), errc::capacity_mismatch);
  holdfast::mutex lock{here_, name_};
  EXPECT_EQ(reason_of([&] { lock.lock(); }), errc::kind_mismatch);
  EXPECT_EQ(waiters(), 1u);
}

TEST_P(barriers, impossible_counts_are_refused) {
  for (const std::uint32_t bad : {0u, 10'001u, 0xffffffffu}) {
    EXPECT_EQ(reason_of([&] { barrier(here_, "n", bad); }), errc::invalid_argument) << bad;
  }
  barrier alone{here_, "alone", 1};
  alone.arrive_and_wait();
  auto waited_for = alone.arrive();
  alone.wait(std::move(waited_for));
  EXPECT_EQ(reason_of([&] { alone.wait(std::move(waited_for)); }), errc::invalid_argument);
}

TEST_P(barriers, a_destroyed_object_frees_its_place_and_does_not_break_the_barrier) {
  {
    barrier third{another(), name_, 2};
    auto mine = third.arrive();
    auto other = rival_.arrive();
    third.wait(std::move(mine));
    rival_.wait(std::move(other));
  }
  std::thread other([&] { rival_.arrive_and_wait(); });
  two_.arrive_and_wait();
  other.join();
}

TEST_P(barriers, a_barrier_that_an_operator_breaks_is_broken_for_each_and_begins_anew) {
  auto mine = two_.arrive();
  EXPECT_GT(here_.force_release(name_), 0u);
  try {
    two_.wait(std::move(mine));
    ADD_FAILURE() << "the phase was broken";
  } catch (const holdfast::error& e) {
    EXPECT_EQ(e.reason(), errc::lost);
    EXPECT_NE(std::string_view(e.what()).find("by an operator"), std::string_view::npos)
        << e.what();
  }
  std::thread other([&] { rival_.arrive_and_wait(); });
  two_.arrive_and_wait();
  other.join();
}

TEST_P(barriers, an_arrival_of_a_broken_phase_never_passes_in_any_later_wait) {
  barrier three{here_, name_, 3};
  auto mine = three.arrive();
  auto other = three.arrive();
  EXPECT_GT(here_.force_release(name_), 0u);
  EXPECT_EQ(reason_of([&] { (void)three.wait_for(mine, 10s); }), errc::lost);
  EXPECT_EQ(reason_of([&] { (void)three.wait_for(mine, 10s); }), errc::invalid_argument);
  EXPECT_EQ(reason_of([&] { (void)three.wait_for(other, 10s); }), errc::lost);
  EXPECT_EQ(reason_of([&] { (void)async_wait(three, std::move(other)); }), errc::invalid_argument);
}

TEST_P(barriers, a_participant_that_is_cut_off_for_longer_than_its_lease_breaks_it_for_the_others) {
  const auto cut = std::make_shared<std::atomic<bool>>(false);
  holdfast::testing::fault_plan plan;
  plan.choose = [cut](auto&&...) {
    return *cut ? holdfast::testing::fault::drop_request : holdfast::testing::fault::none;
  };
  barrier away{another({.decorate = holdfast::testing::faulty(plan)}), name_, 2, {.lease = 2s}};
  auto here = two_.arrive();
  away.arrive_and_wait();
  two_.wait(std::move(here));
  *cut = true;
  EXPECT_EQ(reason_of([&] { two_.arrive_and_wait(); }), errc::lost);
  *cut = false;
  EXPECT_EQ(reason_of([&] { away.arrive_and_wait(); }), errc::lost);
}

TEST_P(barriers, a_drop_whose_answers_were_all_lost_has_an_unknown_outcome) {
  const fault_script faults;
  barrier away{another({.decorate = holdfast::testing::faulty(faults.plan())}), name_, 2};
  auto here = two_.arrive();
  away.arrive_and_wait();
  two_.wait(std::move(here));
  faults.all(holdfast::testing::fault::drop_reply);
  auto left = async_arrive_and_drop(away).future();
  two_.arrive_and_wait();
  two_.arrive_and_drop();
  faults.all(holdfast::testing::fault::none);
  const auto told = left.get();
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(told.error().code, errc::lost);
  EXPECT_TRUE(told.error().outcome_unknown) << told.error().what;
}

TEST_P(barriers, a_call_without_a_thread_behaves_the_same) {
  auto first = async_arrive_and_wait(two_).future();
  auto second = async_arrive_and_wait(rival_).future();
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(second.get().ok());
  auto again = async_arrive_and_wait(two_, 0ms).future().get();
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, errc::busy);
  EXPECT_EQ(again.error().what, "1 of 2 participants had arrived");
  rival_.wait(rival_.arrive());
}

TEST_P(barriers, a_wait_in_vain_says_how_many_had_arrived) {
  const auto of_four = [&] { return barrier{another(), name_, 4}; };
  barrier first = of_four(), second = of_four(), third = of_four();
  (void)first.arrive(), (void)second.arrive();
  const auto waits = std::make_shared<barrier::arrival>(third.arrive());
  // Not known if the deadline comes before the store's first answer.
  for (auto limit = 20ms; limit < 1min; limit *= 10) {
    const auto in_vain = async_wait(third, waits, limit).future().get();
    ASSERT_FALSE(in_vain.ok());
    if (in_vain.error().what == "3 of 4 participants had arrived at the deadline") return;
  }
  ADD_FAILURE() << "no answer says how many had arrived";
}

TEST_P(barriers, an_arrival_can_be_awaited_again_without_a_thread) {
  const auto mine = std::make_shared<barrier::arrival>(two_.arrive());
  EXPECT_EQ(harness::why(async_wait(two_, mine, 20ms).future().get()), errc::timed_out);
  std::stop_source stop;
  auto stopped = async_wait(two_, mine, {}, stop.get_token()).future();
  stop.request_stop();
  EXPECT_EQ(harness::why(stopped.get()), errc::cancelled);
  auto all = async_wait(two_, mine).future();
  rival_.arrive_and_wait();
  EXPECT_TRUE(all.get().ok());
  EXPECT_EQ(reason_of([&] { (void)async_wait(two_, mine); }), errc::invalid_argument);
}

TEST_P(barriers, a_wait_that_was_stopped_before_reports_the_known_state_in_each_form) {
  std::stop_source source;
  source.request_stop();
  const auto stop = source.get_token();
  auto waits = two_.arrive();
  EXPECT_FALSE(two_.wait(waits, stop));
  const auto waits_later = std::make_shared<barrier::arrival>(std::move(waits));
  EXPECT_EQ(harness::why(async_wait(two_, waits_later, {}, stop).future().get()), errc::cancelled);
  auto last = rival_.arrive();
  EXPECT_TRUE(rival_.wait(last, stop)) << "it was the last to arrive";
  EXPECT_TRUE(two_.wait(*waits_later, std::stop_token{}));

  waits = two_.arrive();
  last = rival_.arrive();
  EXPECT_TRUE(async_wait(rival_, std::move(last), {}, stop).future().get().ok());
  two_.wait(std::move(waits));

  waits = two_.arrive();
  const auto mine = std::make_shared<barrier::arrival>(rival_.arrive());
  EXPECT_TRUE(async_wait(rival_, mine, {}, stop).future().get().ok());
  EXPECT_EQ(reason_of([&] { (void)async_wait(rival_, mine); }), errc::invalid_argument);
  two_.wait(std::move(waits));
}

TEST_P(barriers, a_double_barrier_is_entered_and_left_together) {
  std::atomic<int> inside{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, session = another()] {
      holdfast::double_barrier section{session, "section", 3};
      ++inside;
      section.enter();
      EXPECT_EQ(inside, 3);
      section.leave();
    });
  }
  for (auto& t : threads) t.join();
}

}  // namespace
}  // namespace conformance
