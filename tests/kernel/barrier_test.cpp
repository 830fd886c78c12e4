#include "kernel/permits_fixture.hpp"

namespace kernel_test {
namespace {

constexpr auto granted = permits_outcome::granted;
constexpr auto queued = permits_outcome::queued;
constexpr auto busy = permits_outcome::busy;
constexpr auto absent = permits_outcome::absent;
constexpr auto done = permits_outcome::done;

/// A barrier of three.
class barrier_kernel : public permits {
 protected:
  barrier_kernel() {
    kind_ = kind::barrier;
    capacity_ = 3;
    place_ = lease_;
  }

  permits_command arrival(std::uint64_t owner, std::uint64_t before) const {
    auto c = command(permits_verb::acquire, owner);
    c.wait = true;
    c.replaces = {0, before};
    return c;
  }
  permits_reply arrive(std::uint64_t owner, std::uint64_t before = 0) {
    return apply(arrival(owner, before));
  }
  /// An arrival with a completion function.
  permits_reply arrive_to_complete(std::uint64_t owner, std::uint64_t before = 0) {
    auto c = arrival(owner, before);
    c.lingers = true;
    return apply(c);
  }
  permits_reply drop_out(std::uint64_t owner, std::uint64_t before = 0) {
    auto c = arrival(owner, before);
    c.outlives_session = true;
    return apply(c);
  }
  std::string told() const {
    std::string text;
    for (const auto& n : last_.tell) {
      text += std::string(to_string(n.what)) + std::to_string(n.owner.low) + " ";
    }
    return text;
  }
};

TEST_F(barrier_kernel, no_participant_goes_on_until_all_have_arrived) {
  EXPECT_EQ(arrive(1).outcome, queued);
  EXPECT_EQ(arrive(2).outcome, queued);
  EXPECT_EQ(who(), "| 1 2");
  EXPECT_EQ(arrive(3).outcome, granted);
  EXPECT_EQ(told(), "granted1 granted2 ");
  EXPECT_EQ(who(), "1 2 3 |");
}

TEST_F(barrier_kernel, participants_that_went_on_keep_the_whole_lease) {
  arrive(1), arrive(2), arrive(3);
  for (const auto& h : record_.holders) EXPECT_EQ(h.expires_at, now_ + lease_);
}

TEST_F(barrier_kernel, a_peek_is_answered_and_renews_nothing) {
  const auto asks = [&](std::uint64_t owner) {
    auto c = command(permits_verb::renew, owner);
    c.wait = true;
    return apply(c).outcome;
  };
  arrive(1), arrive(2);
  now_ += lease_ / 2;
  const auto waiting = record_;
  EXPECT_EQ(asks(1), queued);
  EXPECT_EQ(record_, waiting);
  arrive(3);
  now_ += lease_ / 4;
  const auto open = record_;
  for (const auto owner : {1U, 2U, 3U}) EXPECT_EQ(asks(owner), granted);
  EXPECT_EQ(asks(4), absent);
  EXPECT_EQ(record_, open);
  now_ += lease_;
  EXPECT_EQ(asks(1), absent);
}

TEST_F(barrier_kernel, the_next_phase_begins_with_the_participant_that_arrives_again) {
  arrive(1), arrive(2), arrive(3);
  EXPECT_EQ(arrive(11, 1).outcome, queued);
  EXPECT_EQ(who(), "2 3 | 11");
  arrive(12, 2);
  EXPECT_EQ(arrive(13, 3).outcome, granted);
  EXPECT_EQ(who(), "11 12 13 |");
}

TEST_F(barrier_kernel, an_arrival_that_is_repeated_counts_once) {
  arrive(1);
  EXPECT_EQ(arrive(1).outcome, queued);
  arrive(2), arrive(3);
  EXPECT_EQ(arrive(2).outcome, granted) << "its phase is over";
  arrive(11, 1);
  EXPECT_EQ(arrive(11, 1).outcome, queued);
  EXPECT_EQ(who(), "2 3 | 11");
}

TEST_F(barrier_kernel, one_participant_too_many_changes_nothing) {
  arrive(1), arrive(2), arrive(3);
  const auto before = record_;
  EXPECT_EQ(arrive(4).outcome, busy);
  EXPECT_EQ(record_, before);
  arrive(11, 1);
  EXPECT_EQ(arrive(4).outcome, busy);
}

TEST_F(barrier_kernel, a_death_between_two_phases_breaks_the_next_for_all_others) {
  arrive(1), arrive(2), arrive(3);
  pass(lease_ / 2);
  arrive(11, 1), renew(2);
  pass(lease_ / 2);
  EXPECT_EQ(renew(11).outcome, absent);
  EXPECT_EQ(told(), "opened11 ");
  EXPECT_EQ(arrive(12, 2).outcome, absent) << "it was of the phase that broke";
  EXPECT_EQ(who(), "|");
  EXPECT_EQ(arrive(21).outcome, queued) << "and now it begins anew";
}

TEST_F(barrier_kernel, a_participant_that_dies_while_it_waits_breaks_the_phase) {
  arrive(1);
  pass(lease_ / 2);
  arrive(2);
  pass(lease_ / 2);
  EXPECT_EQ(arrive(3).outcome, queued) << "the first of a new one";
  EXPECT_EQ(told(), "opened2 ");
  EXPECT_EQ(renew(2).outcome, absent);
  EXPECT_EQ(who(), "| 3");
}

TEST_F(barrier_kernel, a_session_that_is_known_to_be_dead_breaks_it_at_once) {
  arrive(1), arrive(2);
  const std::vector<std::string> dead{"p1"};
  EXPECT_TRUE(holdfast::kernel::forget(record_, dead));
  EXPECT_EQ(renew(2).outcome, absent);
  EXPECT_EQ(who(), "|");
}

TEST_F(barrier_kernel, each_waiter_learns_how_many_have_arrived) {
  capacity_ = 4;
  EXPECT_EQ(arrive(1).position, 1u);
  EXPECT_EQ(arrive(2).position, 2u);
  EXPECT_EQ(arrive(3).position, 3u);
  EXPECT_EQ(renew(1).position, 3u);
  release(2);
  EXPECT_EQ(arrive(3).position, 2u) << "its reply was lost";
}

TEST_F(barrier_kernel, all_participants_are_named_to_sessions_that_can_see_deaths) {
  arrive(1), arrive(2);
  const auto blockers = renew(1).blockers;
  EXPECT_NE(std::find(blockers.begin(), blockers.end(), "p2"), blockers.end());
}

TEST_F(barrier_kernel, the_last_arrival_continues_at_once_and_wakes_the_others) {
  arrive_to_complete(1), arrive_to_complete(2);
  EXPECT_EQ(arrive_to_complete(3).position, 1u);
  EXPECT_EQ(last_.outcome, granted);
  EXPECT_EQ(told(), "");
  EXPECT_EQ(who(), "3 | 1 2");
  EXPECT_EQ(arrive_to_complete(3).position, 1u) << "its reply was lost";
  EXPECT_EQ(arrive(4, 3).outcome, granted);
  EXPECT_EQ(last_.position, 0u);
  EXPECT_EQ(told(), "granted1 granted2 ");
  EXPECT_EQ(arrive_to_complete(1).position, 0u) << "it was not the one to call them";
}

TEST_F(barrier_kernel, a_phase_that_was_complete_is_over_for_the_others_though_one_leaves) {
  arrive_to_complete(1), arrive_to_complete(2), arrive_to_complete(3);
  EXPECT_EQ(release(1).outcome, done) << "while 3 does the work of the phase";
  EXPECT_EQ(who(), "3 | 2");
  EXPECT_EQ(arrive(4, 3).outcome, granted);
  EXPECT_EQ(told(), "granted2 ");
  EXPECT_EQ(who(), "2 4 |");
  EXPECT_EQ(arrive_to_complete(5).outcome, queued) << "the next phase, of three again";
}

TEST_F(barrier_kernel, a_completing_participant_goes_on_though_all_others_have_left) {
  capacity_ = 2;
  arrive_to_complete(1), arrive_to_complete(2);
  release(1);
  EXPECT_EQ(arrive(3, 2).outcome, granted);
  EXPECT_EQ(who(), "3 |");
}

TEST_F(barrier_kernel, the_completing_participant_may_have_arrived_before) {
  arrive_to_complete(1), arrive_to_complete(2), arrive_to_complete(3);
  EXPECT_EQ(arrive(1, 3).outcome, granted) << "a place in the queue is no reason to keep it shut";
  EXPECT_EQ(told(), "granted2 ");
  EXPECT_EQ(who(), "1 2 |");
}

TEST_F(barrier_kernel, the_death_of_the_completing_participant_breaks_it) {
  arrive_to_complete(1), arrive_to_complete(2), arrive_to_complete(3);
  pass(lease_ / 2);
  renew(1), renew(2);
  pass(lease_ / 2);
  EXPECT_EQ(renew(1).outcome, absent);
  EXPECT_EQ(arrive(4, 3).outcome, absent);
  EXPECT_EQ(who(), "|");
}

TEST_F(barrier_kernel, a_participant_that_drops_out_counts_as_arrived_from_then_on) {
  arrive(1), arrive(2);
  EXPECT_EQ(drop_out(3).outcome, queued);
  EXPECT_EQ(told(), "granted1 granted2 ");
  arrive(11, 1);
  EXPECT_EQ(arrive(12, 2).outcome, granted);
  EXPECT_EQ(told(), "granted11 ");
  EXPECT_EQ(who(), "11 12 | 3");
}

TEST_F(barrier_kernel, the_last_participant_to_drop_out_may_have_to_call_the_others) {
  arrive_to_complete(1), arrive_to_complete(2);
  auto c = arrival(3, 0);
  c.outlives_session = c.lingers = true;
  EXPECT_EQ(apply(c).position, 1u);
  EXPECT_EQ(drop_out(4, 3).outcome, queued);
  EXPECT_EQ(told(), "granted1 granted2 ");
  EXPECT_EQ(who(), "1 2 | 4");
}

TEST_F(barrier_kernel, a_barrier_that_all_participants_left_keeps_no_record) {
  drop_out(1), drop_out(2);
  EXPECT_EQ(who(), "| 1 2");
  EXPECT_EQ(drop_out(3).outcome, done);
  EXPECT_EQ(who(), "|");
  EXPECT_EQ(record_.capacity, 0u);
}

TEST_F(barrier_kernel, a_participant_that_dropped_out_is_forgotten_in_time_and_breaks_nothing) {
  place_ = 2 * lease_;
  drop_out(1);
  place_ = 10 * lease_;
  arrive(2);
  pass(2 * lease_);
  EXPECT_EQ(renew(2).outcome, queued);
  EXPECT_EQ(who(), "| 2");
}

TEST_F(barrier_kernel, a_participant_that_dropped_out_is_remembered_while_the_others_go_on) {
  constexpr auto day = holdfast::kernel::dropped_lasts_us;
  arrive(1), arrive(2);
  place_ = 2 * lease_;
  drop_out(3);
  lease_ = place_ = 2 * day;
  renew(1), renew(2);
  pass(day - 1);
  EXPECT_EQ(arrive(11, 1).outcome, queued);
  EXPECT_EQ(arrive(12, 2).outcome, granted);
  pass(day - 1);
  EXPECT_EQ(arrive(21, 11).outcome, queued);
  EXPECT_EQ(arrive(22, 12).outcome, granted);
}

TEST_F(barrier_kernel, a_participant_that_leaves_properly_makes_room_and_breaks_nothing) {
  arrive(1), arrive(2), arrive(3);
  arrive(11, 1);
  EXPECT_EQ(release(2).outcome, done);
  EXPECT_EQ(arrive(4).outcome, queued);
  EXPECT_EQ(arrive(13, 3).outcome, granted);
  EXPECT_EQ(who(), "11 4 13 |");
}

TEST_F(barrier_kernel, when_the_last_one_leaves_dropped_participants_are_forgotten) {
  arrive(1), arrive(2), drop_out(3);
  release(1);
  EXPECT_EQ(who(), "2 | 3");
  release(2);
  EXPECT_EQ(who(), "|");
}

TEST_F(barrier_kernel, a_release_that_finds_nothing_forgets_no_dropped_participant) {
  arrive(1), drop_out(3);
  drop_out(2, 1);
  EXPECT_EQ(who(), "| 3 2");
  EXPECT_EQ(release(9).outcome, absent);
  EXPECT_EQ(who(), "| 3 2") << "the third one has yet to come";
  EXPECT_EQ(arrive(4).outcome, granted) << "the others have dropped out";
  release(4);
  EXPECT_EQ(who(), "|");
}

TEST_F(barrier_kernel, an_operator_may_break_it) {
  arrive(1), arrive(2);
  EXPECT_EQ(evict(0).position, 2u);
  EXPECT_EQ(told(), "opened1 opened2 ");
  EXPECT_EQ(renew(1).outcome, absent);
}

TEST_F(barrier_kernel, another_count_is_refused) {
  arrive(1);
  capacity_ = 4;
  EXPECT_EQ(arrive(2).outcome, permits_outcome::capacity_mismatch);
  EXPECT_EQ(who(), "| 1");
}

}  // namespace
}  // namespace kernel_test
