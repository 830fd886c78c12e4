#include "family/turns_of_others.hpp"

#include <gtest/gtest.h>

#include <holdfast/testing.hpp>
#include <memory>

#include "family/slot_family.hpp"
#include "kernel/fake_slot_store.hpp"

namespace kernel_test {
namespace {

using namespace holdfast::store;
using namespace std::chrono_literals;
using holdfast::boot_time;
using holdfast::family::pause;
using holdfast::family::turns_of_listeners;
using holdfast::family::turns_of_pollers;

constexpr auto at_once = pause{0};

// ---- where waiters listen

class listeners : public testing::Test {
 protected:
  pause away(std::uint64_t heard) { return turns_.stays_away("n", heard, now_); }
  void later(std::chrono::nanoseconds d) { now_ += d; }

  turns_of_listeners turns_;
  boot_time now_{1h};
};

TEST_F(listeners, no_session_stays_away_from_a_name_without_other_contenders) {
  EXPECT_EQ(away(0), at_once);
  turns_.released("n", 0, 0, now_);
  EXPECT_EQ(away(0), at_once);
  EXPECT_FALSE(turns_.granted("n", 0, now_)) << "it may stay in the process";
}

TEST_F(listeners, a_session_after_its_turn_leaves_turns_to_as_many_others) {
  turns_.released("n", 3, 7, now_);
  for (std::uint64_t heard = 7; heard < 10; ++heard) {
    EXPECT_EQ(away(heard), turns_of_listeners::first_pause) << heard;
    later(3ms);
    EXPECT_EQ(away(heard), turns_of_listeners::first_pause - 3ms) << "the pause goes by";
  }
  EXPECT_EQ(away(10), at_once) << "it is its turn";
  EXPECT_TRUE(turns_.granted("n", 10, now_)) << "and one turn only";
  EXPECT_EQ(turns_.stays_away("m", 0, now_), at_once) << "another name is not its business";
}

TEST_F(listeners, a_restarted_count_continues_from_its_new_value) {
  turns_.released("n", 2, 7, now_);
  EXPECT_GT(away(1), at_once);
  EXPECT_EQ(away(2), at_once);
}

TEST_F(listeners, an_unclaimed_turn_is_taken_and_the_next_is_not_left_to_the_listeners) {
  turns_.released("n", 1, 0, now_);
  later(turns_of_listeners::first_pause);
  EXPECT_EQ(away(0), at_once);
  EXPECT_FALSE(turns_.granted("n", 0, now_)) << "those that listen do not want it";
  turns_.released("n", 1, 0, now_);
  EXPECT_EQ(away(0), at_once);
  EXPECT_FALSE(turns_.granted("n", 0, now_));
  later(turns_of_listeners::rest * turns_of_listeners::first_pause);
  turns_.released("n", 1, 0, now_);
  EXPECT_EQ(away(0), 2 * turns_of_listeners::first_pause) << "they may take longer to wake up";
}

TEST_F(listeners, the_longest_pause_is_bounded) {
  for (int i = 0; i < 9; ++i) {
    turns_.released("n", 1, 0, now_);
    later(turns_of_listeners::longest_pause);
    turns_.stays_away("n", 0, now_);
    turns_.granted("n", 0, now_);
    later(turns_of_listeners::rest * turns_of_listeners::longest_pause);
  }
  turns_.released("n", 1, 0, now_);
  EXPECT_EQ(away(0), turns_of_listeners::longest_pause);
}

TEST_F(listeners, a_turn_that_others_took_was_no_wasted_pause) {
  turns_.released("n", 2, 0, now_);
  EXPECT_GT(away(1), at_once);
  later(turns_of_listeners::first_pause);
  EXPECT_EQ(away(1), at_once);
  EXPECT_TRUE(turns_.granted("n", 1, now_));
  turns_.released("n", 2, 1, now_);
  EXPECT_EQ(away(1), turns_of_listeners::first_pause);
}

TEST_F(listeners, a_listener_that_came_too_late_owes_less_the_next_time) {
  turns_.released("n", 3, 0, now_);
  EXPECT_EQ(away(3), at_once);
  EXPECT_EQ(away(4), at_once) << "another was quicker";
  EXPECT_TRUE(turns_.granted("n", 5, now_));
  turns_.released("n", 3, 5, now_);
  EXPECT_EQ(away(6), at_once);
  EXPECT_TRUE(turns_.granted("n", 6, now_));
  turns_.released("n", 3, 6, now_);
  EXPECT_GT(away(8), at_once);
}

TEST_F(listeners, a_listener_that_was_kept_out_has_two_turns_more_and_then_owes_again) {
  turns_.released("n", 3, 0, now_);
  EXPECT_FALSE(turns_.may_go_on("n", now_));
  EXPECT_EQ(away(50), at_once);
  EXPECT_TRUE(turns_.granted("n", 50, now_));
  for (int more = 0; more < 2; ++more) {
    turns_.released("n", 3, 50, now_);
    EXPECT_TRUE(turns_.may_go_on("n", now_));
    EXPECT_EQ(away(50), at_once);
    EXPECT_TRUE(turns_.granted("n", 50, now_));
  }
  turns_.released("n", 3, 50, now_);
  EXPECT_FALSE(turns_.may_go_on("n", now_));
  EXPECT_GT(away(52), at_once);
}

TEST_F(listeners, a_listener_that_waits_a_round_more_than_it_owes_is_overdue) {
  EXPECT_FALSE(turns_.overdue("n", 50, now_)) << "nobody is known to listen";
  turns_.released("n", 2, 7, now_);
  EXPECT_FALSE(turns_.overdue("n", 10, now_));
  EXPECT_TRUE(turns_.overdue("n", 11, now_));
}

TEST_F(listeners, no_session_goes_on_alone_where_no_program_listens) {
  EXPECT_FALSE(turns_.may_go_on("n", now_));
  turns_.released("n", 1, 0, now_);
  turns_.released("n", 0, 0, now_);
  EXPECT_FALSE(turns_.may_go_on("n", now_)) << "that is left to the queue of the process";
}

// Eight sessions and eight woken programs: each has its turn before one has two.
TEST_F(listeners, sessions_take_turns_with_each_other_and_with_woken_programs) {
  std::map<std::string, std::uint64_t> heard, turns;
  const auto name_of = [](int i) { return "s" + std::to_string(i); };
  std::uint64_t releases = 0;
  int woken = 0;
  for (int turn = 0; turn < 160; ++turn) {
    int winner = -1;
    for (int i = 0; i < 8 && winner < 0; ++i) {
      if (turns_.stays_away(name_of(i), releases, now_) == at_once) winner = i;
    }
    const auto who = winner < 0 ? "woken" + std::to_string(woken++ % 8) : name_of(winner);
    ++turns[who];
    if (winner >= 0) turns_.granted(who, releases, now_);
    later(5ms);
    ++releases;
    if (winner >= 0) turns_.released(who, 15, releases, now_);
  }
  ASSERT_EQ(turns.size(), 16u);
  for (const auto& [who, had] : turns) EXPECT_NEAR(static_cast<double>(had), 10, 1) << who;
}

// ---- where waiters poll

class pollers : public testing::Test {
 protected:
  static constexpr std::int64_t a_try = 1'000 * turns_of_pollers::tries_every;

  /// The store's time in milliseconds.
  boot_time at(std::int64_t ms) const { return boot_time{1h} + std::chrono::milliseconds(ms); }
  void seen(std::int64_t ms) { turns_.seen("n", ms * 1'000, at(ms)); }
  turns_of_pollers::advice ask(std::int64_t ms) { return turns_.stays_away("n", at(ms)); }

  turns_of_pollers turns_;
};

TEST_F(pollers, a_name_without_other_programs_is_taken_at_any_time) {
  for (std::int64_t ms = a_try; ms < a_try + 1'000; ms += 50) EXPECT_EQ(ask(ms).away, at_once);
}

TEST_F(pollers, the_end_of_every_fifth_second_is_left_to_others) {
  seen(a_try + 100);
  EXPECT_EQ(ask(a_try + 599).away, at_once);
  EXPECT_EQ(ask(a_try + 601).away, 99ms) << "then it looks";
  EXPECT_FALSE(ask(a_try + 699).look);
  EXPECT_TRUE(ask(a_try + 701).look);
  EXPECT_EQ(ask(a_try + 701).away, 60ms) << "and again";
  EXPECT_EQ(ask(a_try + 980).away, 20ms);
  EXPECT_EQ(ask(a_try + 1'000).away, at_once);
  EXPECT_EQ(ask(a_try + 1'700).away, at_once) << "nobody had come";
}

TEST_F(pollers, the_end_of_each_second_is_left_to_others_after_one_came) {
  seen(a_try + 100);
  ASSERT_TRUE(ask(a_try + 900).look);
  turns_.found_one("n", at(a_try + 900));
  for (std::int64_t second = 1; second <= turns_of_pollers::tries_every; ++second) {
    seen(a_try + second * 1'000 + 100);
    EXPECT_EQ(ask(a_try + second * 1'000 + 500).away, at_once) << second;
    EXPECT_GT(ask(a_try + second * 1'000 + 700).away, at_once) << second;
  }
  EXPECT_EQ(ask(2 * a_try + 1'700).away, at_once) << "this time nobody had come";
}

TEST_F(pollers, a_holder_found_in_another_second_may_be_a_session_that_knows_no_other) {
  seen(a_try - 900);
  turns_.found_one("n", at(a_try - 100));
  EXPECT_EQ(ask(a_try + 1'700).away, at_once);
}

TEST_F(pollers, a_holder_that_was_seen_long_ago_is_forgotten) {
  seen(a_try - 2'300);
  EXPECT_EQ(ask(a_try + 701).away, at_once);
}

// A session that never releases for long sees nobody.
TEST_F(pollers, a_session_that_takes_it_again_and_again_finds_out_whether_others_come) {
  for (std::int64_t ms = a_try - 1'000; ms < a_try + 600; ms += 5) {
    EXPECT_EQ(ask(ms).away, at_once);
    turns_.granted("n", ms * 1'000, at(ms));
    turns_.released("n", at(ms + 4));
  }
  EXPECT_GT(ask(a_try + 601).away, at_once);
  EXPECT_GT(ask(a_try + 700).away, at_once) << "and stays away until that is over";
}

TEST_F(pollers, a_session_that_takes_it_now_and_then_leaves_nothing_to_others) {
  for (std::int64_t ms = a_try - 1'000; ms < a_try + 1'000; ms += 25) {
    EXPECT_EQ(ask(ms).away, at_once) << ms;
    turns_.granted("n", ms * 1'000, at(ms));
    turns_.released("n", at(ms + 1));
  }
}

// ---- the family

class beside_others : public testing::Test {
 protected:
  beside_others() { port_.capabilities.beside_others = true; }
  permits_reply acquire(std::uint64_t owner, bool wait = true) {
    permits_command c;
    c.verb = permits_verb::acquire;
    c.owner = {1, owner};
    c.wait = wait;
    c.lease_us = 30'000'000;
    return family_->permits("n", c).value();
  }
  void release(std::uint64_t owner) {
    permits_command c;
    c.verb = permits_verb::release;
    c.owner = {1, owner};
    (void)family_->permits("n", c);
  }

  holdfast::testing::fake_clock clock_;
  fake_slot_store* const made_ = new fake_slot_store(clock_);
  fake_slot_store& port_ = *made_;
  std::unique_ptr<session_store> family_ =
      holdfast::family::over(std::unique_ptr<slot_store>(made_), clock_);
};

TEST_F(beside_others, a_session_whose_release_notified_others_requests_only_after_them) {
  port_.others_listen = 1;
  EXPECT_FALSE(acquire(1).one_turn);
  release(1);
  const int calls = port_.calls;
  EXPECT_EQ(acquire(2).outcome, permits_outcome::queued);
  EXPECT_EQ(port_.calls, calls) << "that costs nothing";
  EXPECT_EQ(port_.waiting.size(), 1u) << "and it listens";
  port_.releases_heard = 1;
  const auto mine = acquire(2);
  EXPECT_EQ(mine.outcome, permits_outcome::granted);
  EXPECT_TRUE(mine.one_turn);
  release(2);
  EXPECT_EQ(acquire(3, false).outcome, permits_outcome::granted) << "a try is a try";
}

TEST_F(beside_others, a_request_after_the_pause_gets_an_unclaimed_turn) {
  port_.others_listen = 1;
  acquire(1);
  release(1);
  const auto told = acquire(2);
  clock_.advance(std::chrono::microseconds(told.retry_after_us));
  acquire(2);
  clock_.advance(turns_of_listeners::first_pause);
  EXPECT_EQ(acquire(2).outcome, permits_outcome::granted);
}

TEST_F(beside_others, a_session_that_is_overdue_does_not_wait_for_a_notification) {
  port_.others_listen = 1;
  acquire(1);
  release(1);
  acquire(2);
  slot_entry java;
  java.note = "java";
  port_.all[{"n", 0}] = {java, clock_.now() + 1h};
  port_.releases_heard = 1;
  EXPECT_EQ(acquire(2).retry_after_us, holdfast::family::longest_pause_where_told_us);
  port_.releases_heard = 2;
  EXPECT_EQ(acquire(2).retry_after_us, holdfast::family::shortest_pause_us);
}

TEST_F(beside_others, a_poller_polls_often_while_the_holder_changes) {
  port_.capabilities.notifications = false;
  acquire(1);
  acquire(9);
  clock_.advance(300ms);
  EXPECT_EQ(acquire(9).retry_after_us, 100'000);
  port_.all.clear();
  acquire(2);
  EXPECT_EQ(acquire(9).retry_after_us, holdfast::family::shortest_pause_us);
  clock_.advance(1s);
  EXPECT_EQ(acquire(9).retry_after_us, 1'300'000 / holdfast::family::hot_part)
      << "less often the longer it waits";
  clock_.advance(1s);
  EXPECT_EQ(acquire(9).retry_after_us, holdfast::family::longest_pause_us)
      << "that holder keeps it";
}

TEST_F(beside_others, a_session_that_is_owed_a_turn_hands_over_in_its_process) {
  port_.others_listen = 1;
  acquire(1);
  release(1);
  acquire(2);
  port_.releases_heard = 3;
  acquire(2);
  permits_command next;
  next.verb = permits_verb::acquire;
  next.owner = {1, 3};
  next.replaces = {1, 2};
  next.wait = true;
  next.lease_us = 30'000'000;
  const auto reply = family_->permits("n", next).value();
  EXPECT_EQ(reply.outcome, permits_outcome::granted);
  EXPECT_TRUE(reply.replaced);
}

TEST_F(beside_others, pollers_leave_a_part_of_a_second_to_others_and_detect_them) {
  port_.capabilities.notifications = false;
  port_.epoch_us = 5'000'000;
  acquire(1);
  acquire(9);
  port_.all.clear();
  clock_.advance(600ms);
  const int calls = port_.calls;
  EXPECT_EQ(acquire(9).retry_after_us, 400'000 - 300'000) << "nobody is in, and it stays away";
  EXPECT_EQ(port_.calls, calls);
  clock_.advance(250ms);
  EXPECT_EQ(acquire(9).retry_after_us, turns_of_pollers::looks_every_us);
  EXPECT_EQ(port_.calls, calls + 1) << "it looked";
  clock_.advance(150ms);
  EXPECT_EQ(acquire(9).outcome, permits_outcome::granted);
}

}  // namespace
}  // namespace kernel_test
