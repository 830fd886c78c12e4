#include "family/slot_family.hpp"

#include <gtest/gtest.h>

#include <holdfast/testing.hpp>

#include "kernel/fake_slot_store.hpp"
#include "kernel/times.hpp"

namespace kernel_test {
namespace {

using namespace holdfast::store;
using namespace std::chrono_literals;
using holdfast::errc;
using enum permits_outcome;

class slot_family : public testing::Test {
 protected:
  slot_family() { port_.capabilities.notifications = false; }

  permits_command command(permits_verb verb, std::uint64_t owner) const {
    permits_command c;
    c.verb = verb;
    c.owner = {1, owner};
    c.wait = true;
    c.lease_us = 30 * second;
    return c;
  }
  permits_reply acquire(std::uint64_t owner, bool wait = true) {
    auto c = command(permits_verb::acquire, owner);
    c.wait = wait;
    return family_->permits("n", c).value();
  }
  permits_reply permit(std::uint64_t owner, std::uint32_t capacity = 3) {
    auto c = command(permits_verb::acquire, owner);
    c.kind = kind::semaphore;
    c.capacity = capacity;
    return family_->permits("n", c).value();
  }
  permits_reply ask(permits_verb verb, std::uint64_t owner) {
    return family_->permits("n", command(verb, owner)).value();
  }
  permits_record record() { return family_->permits("n", {}).value().found; }

  holdfast::testing::fake_clock clock_;
  fake_slot_store* const made_ = new fake_slot_store(clock_);
  fake_slot_store& port_ = *made_;
  std::unique_ptr<session_store> family_ =
      holdfast::family::over(std::unique_ptr<slot_store>(made_), clock_);
};

TEST_F(slot_family, the_first_owner_holds_the_slot_for_its_lease_and_the_second_waits) {
  const auto first = acquire(1);
  EXPECT_EQ(first.outcome, granted);
  EXPECT_EQ(first.expires_at - first.now_at, 30 * second);
  EXPECT_EQ(acquire(2).outcome, queued);
  EXPECT_EQ(acquire(3, false).outcome, busy);
}

TEST_F(slot_family, a_released_slot_is_granted_next_with_a_greater_fence) {
  const auto fence = acquire(1).fence;
  EXPECT_EQ(ask(permits_verb::release, 1).outcome, done);
  EXPECT_GT(acquire(2).fence, fence);
}

TEST_F(slot_family, a_repeated_acquire_by_the_holder_renews_with_the_same_fence) {
  const auto fence = acquire(1).fence;
  clock_.advance(20s);
  EXPECT_EQ(acquire(1).fence, fence);
  clock_.advance(20s);
  EXPECT_EQ(acquire(2).outcome, queued);
}

TEST_F(slot_family, release_by_a_former_holder_changes_nothing) {
  acquire(1);
  clock_.advance(31s);
  EXPECT_EQ(acquire(2).outcome, granted);
  EXPECT_EQ(ask(permits_verb::release, 1).outcome, absent);
  EXPECT_EQ(ask(permits_verb::renew, 1).outcome, absent);
  EXPECT_EQ(ask(permits_verb::renew, 2).outcome, granted);
  EXPECT_EQ(record().holders.at(0).owner.low, 2u);
}

TEST_F(slot_family, renewals_of_many_locks_are_sent_together_and_answered_separately) {
  acquire(1);
  auto c = command(permits_verb::acquire, 2);
  ASSERT_EQ(family_->permits("m", c)->outcome, granted);
  port_.all.erase({"n", 0});
  const std::vector<named_command> batch{{"n", command(permits_verb::renew, 1)},
                                         {"m", command(permits_verb::renew, 2)},
                                         {"n", command(permits_verb::renew, 3)}};
  const auto replies = family_->execute_batch(batch);
  EXPECT_EQ(replies[0]->outcome, absent);
  EXPECT_EQ(replies[1]->outcome, granted);
  EXPECT_EQ(replies[1]->expires_at - replies[1]->now_at, 30 * second);
  EXPECT_EQ(replies[2]->outcome, absent);
}

TEST_F(slot_family, a_waiter_polls_at_growing_pauses_but_not_after_the_end_of_the_lease) {
  acquire(1);
  EXPECT_EQ(acquire(2).retry_after_us, holdfast::family::shortest_pause_us);
  clock_.advance(300ms);
  EXPECT_EQ(acquire(2).retry_after_us, 100'000);
  clock_.advance(10s);
  EXPECT_EQ(acquire(2).retry_after_us, holdfast::family::longest_pause_us);
  clock_.advance(19'600ms);
  EXPECT_EQ(acquire(2).retry_after_us, 101'000);
}

TEST_F(slot_family, a_waiter_polls_no_faster_while_the_store_keeps_an_entry_whose_lease_has_ended) {
  port_.keeps_for_longer = 2s;
  acquire(1);
  EXPECT_EQ(acquire(2).retry_after_us, holdfast::family::shortest_pause_us);
  clock_.advance(28s);
  EXPECT_EQ(acquire(2).retry_after_us, holdfast::family::longest_pause_us);
}

TEST_F(slot_family, waiters_register_at_a_store_that_notifies_until_they_leave) {
  port_.capabilities.notifications = true;
  acquire(1);
  EXPECT_EQ(acquire(2).retry_after_us, holdfast::family::shortest_pause_us)
      << "what came before it listened was not heard";
  EXPECT_EQ(port_.waiting.size(), 1u);
  EXPECT_EQ(acquire(2).retry_after_us, holdfast::family::longest_pause_where_told_us);
  acquire(3);
  ask(permits_verb::release, 3);
  EXPECT_EQ(port_.waiting.size(), 1u) << "a waiter that gave up is not notified any more";
  ask(permits_verb::release, 1);
  EXPECT_EQ(acquire(2).outcome, granted);
  EXPECT_TRUE(port_.waiting.empty());
}

TEST_F(slot_family, a_session_that_hands_over_in_its_process_leaves_a_gap_for_the_others) {
  acquire(1);
  auto c = command(permits_verb::acquire, 2);
  c.replaces = {1, 1};
  const auto reply = family_->permits("n", c).value();
  EXPECT_EQ(reply.outcome, queued);
  EXPECT_TRUE(reply.replaced);
  EXPECT_EQ(acquire(3).outcome, granted);
  EXPECT_FALSE(family_->permits("n", c)->replaced);
}

TEST_F(slot_family, a_semaphore_has_as_many_slots_as_permits) {
  for (std::uint64_t owner = 1; owner <= 3; ++owner) EXPECT_EQ(permit(owner).outcome, granted);
  EXPECT_EQ(permit(4).outcome, queued);
  EXPECT_EQ(record().holders.size(), 3u);
  EXPECT_EQ(permit(2).outcome, granted) << "which it has already";
  EXPECT_EQ(record().holders.size(), 3u);
  ask(permits_verb::release, 2);
  EXPECT_EQ(permit(4).outcome, granted);
}

TEST_F(slot_family, another_kind_or_capacity_is_refused_and_changes_nothing) {
  acquire(1);
  EXPECT_EQ(permit(2).outcome, kind_mismatch);
  ask(permits_verb::release, 1);
  for (std::uint64_t owner = 1; owner <= 3; ++owner) permit(owner);
  const auto other = permit(4, 5);
  EXPECT_EQ(other.outcome, capacity_mismatch);
  EXPECT_EQ(other.found.capacity, 3u);
  EXPECT_EQ(acquire(5).outcome, kind_mismatch);
  EXPECT_EQ(record().holders.size(), 3u);
}

TEST_F(slot_family, another_capacity_that_was_read_is_refused_although_its_holder_leaves) {
  permit(1);
  permit(2);
  port_.after_look = [&] { (void)port_.remove({.name = "n"}, {1, 1}); };
  EXPECT_EQ(permit(3, 5).outcome, capacity_mismatch);
  EXPECT_EQ(record().holders.size(), 1u);
}

TEST_F(slot_family, a_try_whose_slot_was_taken_by_a_faster_client_takes_another_one) {
  port_.after_look = [&] { permit(2); };
  auto c = command(permits_verb::acquire, 1);
  c.kind = kind::semaphore;
  c.capacity = 3;
  c.wait = false;
  EXPECT_EQ(family_->permits("n", c).value().outcome, granted);
  EXPECT_EQ(record().holders.size(), 2u);
  c.owner = {1, 3};
  port_.after_look = [&] { permit(4); };
  EXPECT_EQ(family_->permits("n", c).value().outcome, busy) << "that was the last one";
  EXPECT_EQ(record().holders.size(), 3u);
}

TEST_F(slot_family, a_request_for_more_than_one_permit_is_refused) {
  auto c = command(permits_verb::acquire, 1);
  c.kind = kind::semaphore;
  c.capacity = 3;
  c.weight = 2;
  EXPECT_EQ(family_->permits("n", c).error().code, errc::unsupported);
  EXPECT_EQ(family_->countdown("n", {countdown_verb::wait}).error().code, errc::unsupported);
  EXPECT_TRUE(port_.all.empty());
}

TEST_F(slot_family, a_grant_whose_answer_was_lost_is_released_or_acquired_again) {
  port_.drops_answers = true;
  auto c = command(permits_verb::acquire, 1);
  EXPECT_TRUE(family_->permits("n", c).error().outcome_unknown);
  port_.drops_answers = false;
  EXPECT_EQ(ask(permits_verb::release, 1).outcome, done);
  EXPECT_TRUE(port_.all.empty());
  port_.drops_answers = true;
  (void)family_->permits("n", c);
  port_.drops_answers = false;
  EXPECT_EQ(acquire(1).outcome, granted);
}

TEST_F(slot_family, a_permit_whose_answer_was_lost_is_found_again_and_is_one_permit) {
  ASSERT_EQ(permit(1).outcome, granted);
  port_.drops_answers = true;
  auto c = command(permits_verb::acquire, 2);
  c.kind = kind::semaphore;
  c.capacity = 3;
  EXPECT_FALSE(family_->permits("n", c));
  port_.drops_answers = false;
  ask(permits_verb::release, 1);
  EXPECT_EQ(permit(2).outcome, granted);
  EXPECT_EQ(record().holders.size(), 1u);
}

TEST_F(slot_family, a_renewed_permit_always_keeps_its_slot) {
  permit(1);
  EXPECT_EQ(permit(2).outcome, granted);
  for (int i = 0; i < 200; ++i) {
    clock_.advance(10s);
    EXPECT_EQ(permit(1).outcome, granted);
    ASSERT_EQ(ask(permits_verb::renew, 2).outcome, granted);
  }
}

TEST_F(slot_family, while_the_store_is_away_nothing_is_forgotten) {
  acquire(1);
  port_.drops_requests = true;
  EXPECT_EQ(family_->permits("n", command(permits_verb::release, 1)).error().code,
            errc::unavailable);
  port_.drops_requests = false;
  EXPECT_EQ(ask(permits_verb::release, 1).outcome, done);
}

TEST_F(slot_family, a_force_release_removes_one_holder_or_all) {
  for (std::uint64_t owner = 1; owner <= 3; ++owner) permit(owner);
  EXPECT_EQ(ask(permits_verb::evict, 2).position, 1u);
  auto all = command(permits_verb::evict, 0);
  all.owner = {};
  EXPECT_EQ(family_->permits("n", all)->position, 2u);
  EXPECT_EQ(ask(permits_verb::renew, 1).outcome, absent);
}

TEST_F(slot_family, a_holder_that_may_have_been_evicted_is_neither_counted_nor_left_out) {
  acquire(1);
  port_.repeats_removals = true;
  const auto unheard = family_->permits("n", command(permits_verb::evict, 1));
  ASSERT_FALSE(unheard);
  EXPECT_EQ(unheard.error().code, errc::unavailable);
  EXPECT_TRUE(unheard.error().outcome_unknown);
  EXPECT_EQ(ask(permits_verb::evict, 1).position, 0u);
  acquire(2);
  EXPECT_EQ(ask(permits_verb::release, 2).outcome, done) << "a release has succeeded";
}

TEST_F(slot_family, an_uncontended_lock_and_unlock_cost_one_call_each) {
  acquire(1);
  ask(permits_verb::release, 1);
  EXPECT_EQ(port_.calls, 2);
}

// ---- semaphores whose first slots are free

TEST_F(slot_family, permits_in_distant_slots_are_shown_and_can_be_evicted) {
  for (std::uint64_t owner = 1; owner <= 23; ++owner) ASSERT_EQ(permit(owner, 40).outcome, granted);
  for (std::uint64_t owner = 1; owner <= 20; ++owner) ask(permits_verb::release, owner);
  const auto found = record();
  EXPECT_EQ(found.kind, kind::semaphore);
  EXPECT_EQ(found.capacity, 40u);
  EXPECT_EQ(found.holders.size(), 3u);
  EXPECT_EQ(ask(permits_verb::evict, 22).position, 1u);
  auto all = command(permits_verb::evict, 0);
  all.owner = {};
  EXPECT_EQ(family_->permits("n", all)->position, 2u);
  EXPECT_TRUE(port_.all.empty());
}

TEST_F(slot_family, the_last_possible_slot_is_found_in_few_reads) {
  slot_entry there;
  there.owner = {1, 7};
  there.kind = kind::semaphore;
  there.capacity = port_.capabilities.max_slots;
  port_.all[{"n", there.capacity - 1}] = {there, clock_.now() + 1h};
  EXPECT_EQ(record().holders.size(), 1u);
  EXPECT_EQ(port_.calls, 4);
  port_.all.clear();
  EXPECT_TRUE(record().holders.empty());
  EXPECT_EQ(port_.calls, 8);
  acquire(1);
  EXPECT_EQ(record().holders.size(), 1u);
  EXPECT_EQ(port_.calls, 10) << "the holder of a mutex is in the first slot";
}

// Any program may have written the value.
TEST_F(slot_family, a_holder_record_with_too_many_slots_is_ignored) {
  slot_entry there;
  there.owner = {1, 7};
  there.kind = kind::semaphore;
  there.capacity = port_.capabilities.max_slots + 1;
  port_.all[{"n", 0}] = {there, clock_.now() + 1h};
  EXPECT_EQ(record().holders.size(), 1u);
  EXPECT_LE(port_.looked_at, port_.capabilities.max_slots);
}

TEST_F(slot_family, a_permit_whose_answer_was_lost_is_released_from_any_slot) {
  for (std::uint64_t owner = 1; owner <= 20; ++owner) ASSERT_EQ(permit(owner, 40).outcome, granted);
  port_.drops_answers = true;
  auto c = command(permits_verb::acquire, 21);
  c.kind = kind::semaphore;
  c.capacity = 40;
  EXPECT_FALSE(family_->permits("n", c));
  port_.drops_answers = false;
  for (std::uint64_t owner = 1; owner <= 20; ++owner) ask(permits_verb::release, owner);
  ASSERT_EQ(port_.all.size(), 1u);
  port_.drops_requests = true;
  EXPECT_FALSE(family_->permits("n", command(permits_verb::release, 21))) << "it is repeated";
  port_.drops_requests = false;
  const int calls = port_.calls;
  EXPECT_EQ(ask(permits_verb::release, 21).outcome, done);
  EXPECT_TRUE(port_.all.empty());
  EXPECT_EQ(port_.calls, calls + 2) << "a look at its forty slots, and the release";
}

// A command to leave names the owner, and nothing else.
TEST_F(slot_family, a_release_of_a_read_write_lock_need_not_name_its_kind) {
  port_.capabilities.notifications = true;
  auto c = command(permits_verb::acquire, 1);
  c.kind = kind::shared_mutex;
  c.capacity = c.weight = 1U << 30;
  EXPECT_EQ(family_->permits("n", c)->outcome, granted);
  EXPECT_EQ(record().holders.at(0).weight, c.weight) << "a writer has it all";
  c.owner = {1, 2};
  EXPECT_EQ(family_->permits("n", c)->outcome, queued);
  EXPECT_EQ(ask(permits_verb::release, 2).outcome, absent);
  EXPECT_EQ(ask(permits_verb::release, 1).outcome, done);
  port_.drops_answers = true;
  EXPECT_FALSE(family_->permits("n", c));
  port_.drops_answers = false;
  EXPECT_EQ(ask(permits_verb::release, 2).outcome, done) << "found by a look";
  EXPECT_EQ(port_.left_as, std::vector(3, kind::shared_mutex));
}

// ---- where the store counts, or keeps a queue

TEST_F(slot_family, a_store_that_counts_permits_gets_one_request_for_all_of_them) {
  auto c = command(permits_verb::acquire, 1);
  c.kind = kind::semaphore;
  c.capacity = 5;
  c.weight = 3;
  EXPECT_FALSE(family_->permits("n", c)) << "one by one";
  port_.capabilities.semaphore = true;
  EXPECT_EQ(family_->permits("n", c)->outcome, granted);
  EXPECT_EQ((port_.all.at({"n", 0}).who.weight), 3u);
  EXPECT_EQ(record().holders.at(0).weight, 3u);
}

TEST_F(slot_family, permits_that_are_neither_free_nor_known_belong_to_other_holders) {
  port_.capabilities.semaphore = true;
  permit(1, 5);
  port_.all.at({"n", 0}).who.free = 1;
  permits_command look;
  look.kind = kind::semaphore;
  look.capacity = 5;
  const auto found = family_->permits("n", look)->found;
  ASSERT_EQ(found.holders.size(), 2u);
  EXPECT_FALSE(found.holders.at(1).owner);
  EXPECT_EQ(found.holders.at(1).weight, 3u);
  EXPECT_EQ(record().holders.size(), 1u) << "for a client that does not know the capacity";
}

TEST_F(slot_family, a_permit_that_came_from_elsewhere_is_extended_and_released_by_its_command) {
  port_.capabilities.expiring = port_.capabilities.semaphore = true;
  slot_entry there;
  there.owner = {1, 7};
  there.kind = kind::semaphore;
  port_.all[{"n", 0}] = {there, clock_.now() + 1h};
  auto c = command(permits_verb::renew, 7);
  c.kind = kind::semaphore;
  EXPECT_EQ(family_->permits("n", c)->outcome, absent) << "a hold of this session is known";
  c.outlives_session = true;
  EXPECT_EQ(family_->permits("n", c)->outcome, granted);
  c.verb = permits_verb::release;
  EXPECT_EQ(family_->permits("n", c)->outcome, done);
  EXPECT_TRUE(port_.all.empty());
}

TEST_F(slot_family, a_waiter_that_gives_up_leaves_its_queue_and_takes_no_turns) {
  acquire(1);
  auto c = command(permits_verb::acquire, 2);
  c.in_order = true;
  EXPECT_EQ(family_->permits("n", c)->outcome, queued);
  const int calls = port_.calls;
  ask(permits_verb::release, 2);
  EXPECT_EQ(port_.calls, calls + 1);
  EXPECT_EQ(port_.looked_at, 0U) << "it is in no slot";
}

TEST_F(slot_family, a_release_that_is_repeated_leaves_the_queue_as_the_first_would_have) {
  acquire(1);
  auto c = command(permits_verb::acquire, 2);
  c.in_order = true;
  EXPECT_EQ(family_->permits("n", c)->outcome, queued);
  port_.drops_requests = true;
  EXPECT_FALSE(family_->permits("n", command(permits_verb::release, 2)));
  port_.drops_requests = false;
  const int calls = port_.calls;
  ask(permits_verb::release, 2);
  EXPECT_EQ(port_.calls, calls + 1);
  EXPECT_EQ(port_.looked_at, 0U) << "it is in no slot";
}

}  // namespace
}  // namespace kernel_test
