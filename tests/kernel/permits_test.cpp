#include "kernel/permits_fixture.hpp"

// The rules one by one. Texts show holders before the bar, and waiters after it.
namespace kernel_test {
namespace {

using enum permits_outcome;

TEST_F(permits, a_free_name_is_granted_at_once) {
  const auto reply = acquire(1);
  EXPECT_EQ(reply.outcome, granted);
  EXPECT_EQ(reply.expires_at, now_ + lease_);
  EXPECT_EQ(who(), "1 |");
  EXPECT_TRUE(reply.tell.empty());
}

TEST_F(permits, a_request_for_a_held_name_queues_behind_the_earlier_ones) {
  acquire(1);
  EXPECT_EQ(acquire(2).position, 1u);
  EXPECT_EQ(acquire(3).position, 2u);
  EXPECT_EQ(last_.outcome, queued);
  EXPECT_EQ(who(), "1 | 2 3");
}

TEST_F(permits, a_try_that_finds_it_held_leaves_nothing_behind) {
  acquire(1);
  const auto before = record_;
  EXPECT_EQ(try_acquire(2).outcome, busy);
  EXPECT_EQ(record_, before);
}

TEST_F(permits, a_try_does_not_pass_the_waiters) {
  capacity_ = 3;
  kind_ = kind::semaphore;
  acquire(1, 2);
  acquire(2, 2);
  EXPECT_EQ(try_acquire(3, 1).outcome, busy);
  EXPECT_EQ(who(), "1 | 2");
}

TEST_F(permits, the_last_try_of_a_waiter_takes_it_out_of_the_queue) {
  acquire(1);
  acquire(2);
  acquire(3);
  EXPECT_EQ(try_acquire(2).outcome, busy);
  EXPECT_EQ(who(), "1 | 3");
}

TEST_F(permits, a_large_waiter_that_gives_up_lets_the_small_ones_behind_it_in) {
  capacity_ = 3;
  kind_ = kind::semaphore;
  acquire(1, 2);
  acquire(2, 2);
  acquire(3, 1);
  EXPECT_EQ(try_acquire(2, 2).outcome, busy);
  EXPECT_EQ(who(), "1 3 |");
  ASSERT_EQ(last_.tell.size(), 1u);
  EXPECT_EQ(last_.tell[0].owner.low, 3u);
}

TEST_F(permits, acquire_by_the_holder_renews_and_gives_the_same_fence) {
  const auto first = acquire(1);
  pass(10 * second);
  const auto again = acquire(1);
  EXPECT_EQ(again.outcome, granted);
  EXPECT_EQ(again.fence, first.fence);
  EXPECT_EQ(again.expires_at, now_ + lease_);
}

TEST_F(permits, an_attempt_that_arrives_late_does_not_shorten_an_extended_lease) {
  acquire(1);
  const auto lease = std::exchange(lease_, 4 * lease_);
  const auto extended = renew(1);
  lease_ = lease;
  pass(second);
  EXPECT_EQ(acquire(1).expires_at, extended.expires_at);
}

TEST_F(permits, acquire_by_a_waiter_keeps_its_entry_and_prolongs_it) {
  acquire(1);
  acquire(2);
  acquire(3);
  pass(3 * second);
  EXPECT_EQ(acquire(2).position, 1u);
  pass(3 * second);
  acquire(2);
  EXPECT_EQ(who(), "1 | 2") << "3 did not renew its place";
}

TEST_F(permits, release_hands_over_in_the_same_step_and_names_the_waiter_to_tell) {
  const auto first = acquire(1);
  acquire(2);
  acquire(3);
  const auto reply = release(1);
  EXPECT_EQ(reply.outcome, done);
  EXPECT_EQ(who(), "2 | 3");
  ASSERT_EQ(reply.tell.size(), 1u);
  const notification& told = reply.tell[0];
  EXPECT_EQ(told.what, notification_kind::granted);
  EXPECT_EQ(told.owner.low, 2u);
  EXPECT_EQ(told.peer, "p2");
  EXPECT_EQ(told.fence, fence_of(2));
  EXPECT_GT(told.fence, first.fence);
}

TEST_F(permits, a_lingering_holder_learns_of_the_first_waiter_at_each_poll) {
  permits_command keeps = command(permits_verb::acquire, 1);
  keeps.lingers = true;
  apply(keeps);
  for (int look = 0; look < 2; ++look) {
    const auto reply = acquire(2);
    ASSERT_EQ(reply.tell.size(), 1u);
    EXPECT_EQ(reply.tell[0].what, notification_kind::wanted);
    EXPECT_EQ(reply.tell[0].owner.low, 1u);
    EXPECT_EQ(reply.tell[0].peer, "p1");
  }
  EXPECT_TRUE(acquire(3).tell.empty()) << "the one before it has told";
  EXPECT_EQ(try_acquire(4).tell.size(), 0u);
}

TEST_F(permits, a_lingering_holder_learns_of_a_try) {
  permits_command keeps = command(permits_verb::acquire, 1);
  keeps.lingers = true;
  apply(keeps);
  EXPECT_EQ(try_acquire(2).tell.size(), 1u) << "it may have it the next time";
}

TEST_F(permits, a_served_lingering_holder_learns_that_others_wait_behind) {
  acquire(1);
  permits_command keeps = command(permits_verb::acquire, 2);
  keeps.lingers = true;
  keeps.wait = true;
  apply(keeps);
  acquire(3);
  const auto reply = release(1);
  ASSERT_EQ(reply.tell.size(), 2u);
  EXPECT_EQ(reply.tell[0].what, notification_kind::granted);
  EXPECT_EQ(reply.tell[1].what, notification_kind::wanted);
  EXPECT_EQ(reply.tell[1].owner.low, 2u);
}

TEST_F(permits, a_holder_that_does_not_linger_gets_no_notice_of_waiters) {
  acquire(1);
  EXPECT_TRUE(acquire(2).tell.empty());
}

TEST_F(permits, release_lets_in_all_waiters_that_fit) {
  capacity_ = 3;
  kind_ = kind::semaphore;
  acquire(1, 3);
  acquire(2, 1);
  acquire(3, 2);
  acquire(4, 1);
  EXPECT_EQ(release(1).tell.size(), 2u);
  EXPECT_EQ(who(), "2 3 | 4");
}

TEST_F(permits, no_waiter_passes_a_head_that_does_not_fit_yet) {
  capacity_ = 3;
  kind_ = kind::semaphore;
  acquire(1, 2);
  acquire(2, 3);
  EXPECT_EQ(acquire(3, 1).outcome, queued);
  EXPECT_EQ(who(), "1 | 2 3");
}

TEST_F(permits, a_poll_of_a_waiter_renews_all_queue_entries_of_its_session) {
  for (const unsigned owner : {1U, 2U, 12U, 3U, 22U}) acquire(owner);  // 2, 12 and 22 are of one
  pass(place_ - 1);
  acquire(12);
  pass(1);
  EXPECT_EQ(acquire(12).position, 2u);
  EXPECT_EQ(who(), "1 | 2 12 22") << "3 did not renew its place";
  pass(place_);
  renew(1);
  EXPECT_EQ(who(), "1 |") << "nobody of the session looked";
}

TEST_F(permits, release_of_a_waiter_removes_its_entry) {
  acquire(1);
  acquire(2);
  acquire(3);
  EXPECT_EQ(release(2).outcome, done);
  EXPECT_EQ(who(), "1 | 3");
}

TEST_F(permits, release_is_harmless_to_repeat) {
  acquire(1);
  acquire(2);
  release(1);
  const auto after = record_;
  EXPECT_EQ(release(1).outcome, absent);
  EXPECT_EQ(record_, after);
  EXPECT_TRUE(last_.tell.empty());
}

TEST_F(permits, release_by_a_former_holder_changes_nothing) {
  acquire(1);
  pass(lease_);
  acquire(2);
  const auto after = record_;
  EXPECT_EQ(release(1).outcome, absent);
  EXPECT_EQ(record_, after);
}

TEST_F(permits, release_by_an_unknown_owner_changes_nothing) {
  acquire(1);
  const auto after = record_;
  EXPECT_EQ(release(9).outcome, absent);
  EXPECT_EQ(record_, after);
}

TEST_F(permits, renew_lengthens_a_hold_and_keeps_its_fence) {
  const auto first = acquire(1);
  pass(20 * second);
  const auto reply = renew(1);
  EXPECT_EQ(reply.outcome, granted);
  EXPECT_EQ(reply.fence, first.fence);
  EXPECT_EQ(reply.expires_at, now_ + lease_);
}

TEST_F(permits, renew_never_acquires_a_lock_that_is_not_held) {
  EXPECT_EQ(renew(1).outcome, absent);
  EXPECT_EQ(who(), "|");
  acquire(1);
  pass(lease_);
  EXPECT_EQ(renew(1).outcome, absent);
  EXPECT_EQ(who(), "|");
}

TEST_F(permits, renew_that_comes_late_does_not_lengthen_anothers_lease) {
  acquire(1);
  pass(lease_);
  const auto ends = acquire(2).expires_at;
  pass(second);
  EXPECT_EQ(renew(1).outcome, absent);
  ASSERT_EQ(who(), "2 |");
  EXPECT_EQ(record_.holders[0].expires_at, ends);
}

TEST_F(permits, renewing_a_queue_entry_reports_that_its_turn_has_come) {
  lease_ = second;
  acquire(1);
  acquire(2);
  pass(second);
  const auto reply = renew(2);
  EXPECT_EQ(reply.outcome, granted);
  EXPECT_EQ(reply.fence, fence_of(2));
  EXPECT_EQ(who(), "2 |");
}

TEST_F(permits, a_waiter_learns_whose_life_is_in_its_way) {
  acquire(1);
  acquire(2);
  EXPECT_EQ(acquire(3).blockers, (std::vector<std::string>{"p1", "p2"}));
  EXPECT_EQ(acquire(2).blockers, (std::vector<std::string>{"p1"}));
}

TEST_F(permits, greater_priority_comes_first_and_equals_in_order_of_arrival) {
  acquire(1);
  acquire(2, 1, 0);
  acquire(3, 1, 5);
  acquire(4, 1, 0);
  acquire(5, 1, 5);
  acquire(6, 1, -1);
  EXPECT_EQ(who(), "1 | 3 5 2 4 6");
}

TEST_F(permits, a_replacement_leaves_and_comes_in_one_step) {
  acquire(1);
  acquire(2);
  permits_command c = command(permits_verb::acquire, 3);
  c.replaces = {0, 1};
  c.wait = true;
  EXPECT_EQ(apply(c).outcome, queued);
  EXPECT_TRUE(last_.replaced);
  EXPECT_EQ(who(), "2 | 3");
  const auto after = record_;
  apply(c);
  EXPECT_FALSE(last_.replaced) << "it left before";
  EXPECT_EQ(record_, after);
}

TEST_F(permits, a_replacement_without_waiters_is_granted_at_once) {
  const auto first = acquire(1);
  permits_command c = command(permits_verb::acquire, 2);
  c.replaces = {0, 1};
  EXPECT_EQ(apply(c).outcome, granted);
  EXPECT_GT(last_.fence, first.fence);
  EXPECT_EQ(who(), "2 |");
}

TEST_F(permits, a_detached_hold_outlives_the_session_that_got_it) {
  permits_command c = command(permits_verb::acquire, 1);
  c.outlives_session = true;
  apply(c);
  const std::vector<std::string> dead{"p1"};
  EXPECT_FALSE(holdfast::kernel::forget(record_, dead));
  EXPECT_EQ(who(), "1 |");
}

TEST_F(permits, a_waiter_for_a_detached_hold_is_tied_to_its_session_until_it_claims_it) {
  acquire(2);
  permits_command c = command(permits_verb::acquire, 1);
  c.outlives_session = true;
  c.wait = true;
  apply(c);
  release(2);
  EXPECT_EQ(record_.holders.at(0).peer, "p1");
  apply(c);
  EXPECT_EQ(record_.holders.at(0).peer, "");
}

TEST_F(permits, only_the_fence_stays_after_the_last_release) {
  acquire(1);
  acquire(2);
  release(2);
  release(1);
  EXPECT_EQ(record_.capacity, 0u);
  EXPECT_EQ(who(), "|");
}

}  // namespace
}  // namespace kernel_test
