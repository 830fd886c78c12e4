#include "kernel/permits_fixture.hpp"

// Kinds and capacities, fences, shared locks, and the commands of an operator and of the family.
namespace kernel_test {
namespace {

using enum permits_outcome;

constexpr std::uint32_t all = 1u << 30;

class shared_permits : public permits {
 protected:
  shared_permits() {
    kind_ = kind::shared_mutex;
    capacity_ = all;
  }
};

TEST_F(permits, another_kind_on_a_name_in_use_is_a_mismatch_and_changes_nothing) {
  acquire(1);
  const auto before = record_;
  kind_ = kind::semaphore;
  EXPECT_EQ(acquire(2).outcome, kind_mismatch);
  EXPECT_EQ(last_.found.kind, kind::mutex);
  EXPECT_EQ(record_, before);
}

TEST_F(permits, another_capacity_on_a_name_in_use_is_a_mismatch_and_changes_nothing) {
  kind_ = kind::semaphore;
  capacity_ = 3;
  acquire(1);
  const auto before = record_;
  capacity_ = 4;
  EXPECT_EQ(acquire(2).outcome, capacity_mismatch);
  EXPECT_EQ(last_.found.capacity, 3u);
  EXPECT_EQ(record_, before);
}

TEST_F(permits, a_name_that_is_no_longer_used_may_become_another_kind) {
  acquire(1);
  release(1);
  kind_ = kind::semaphore;
  capacity_ = 5;
  EXPECT_EQ(acquire(2).outcome, granted);
}

TEST_F(permits, a_name_whose_last_lease_has_ended_may_become_another_kind) {
  acquire(1);
  pass(lease_);
  kind_ = kind::semaphore;
  EXPECT_EQ(acquire(2).outcome, granted);
}

TEST_F(permits, fences_grow_from_hold_to_hold) {
  std::uint64_t last = 0;
  for (std::uint64_t owner = 1; owner < 20; ++owner) {
    const auto fence = acquire(owner).fence;
    EXPECT_GT(fence, last);
    last = fence;
    release(owner);
  }
}

TEST_F(permits, fences_grow_also_when_the_record_was_lost) {
  const auto before = acquire(1).fence;
  record_ = {};
  pass(1);
  EXPECT_GT(acquire(2).fence, before);
}

TEST_F(permits, fences_grow_also_when_the_wall_clock_goes_back) {
  const auto before = acquire(1).fence;
  release(1);
  const auto c = command(permits_verb::acquire, 2);
  const auto reply = holdfast::kernel::apply(record_, c, {now_, wall_start - 3'600 * second});
  EXPECT_GT(reply.fence, before);
}

TEST_F(permits, a_wall_clock_before_1970_is_no_floor_and_does_no_harm) {
  const auto c = command(permits_verb::acquire, 1);
  const auto first = holdfast::kernel::apply(record_, c, {now_, -5 * second});
  EXPECT_LT(first.fence, std::uint64_t{1} << 62);
  release(1);
  EXPECT_GT(acquire(2).fence, first.fence);
}

TEST_F(permits, a_peek_changes_nothing_and_shows_holders_and_waiters) {
  acquire(1);
  acquire(2);
  const auto before = record_;
  const auto reply = apply(command(permits_verb::inspect, 0));
  EXPECT_EQ(reply.outcome, done);
  EXPECT_EQ(reply.found, before);
  EXPECT_EQ(record_, before);
}

TEST_F(permits, a_peek_shows_no_expired_entries) {
  acquire(1);
  pass(lease_);
  EXPECT_TRUE(apply(command(permits_verb::inspect, 0)).found.holders.empty());
}

TEST_F(permits, eviction_of_all_grants_the_next_and_counts_the_removed_holders) {
  acquire(1);
  acquire(2);
  permits_command c = command(permits_verb::evict, 0);
  c.owner = {};
  EXPECT_EQ(apply(c).outcome, done);
  EXPECT_EQ(last_.position, 1u);
  EXPECT_EQ(who(), "2 |");
  EXPECT_EQ(last_.tell.size(), 1u);
}

TEST_F(permits, eviction_of_one_leaves_the_others) {
  kind_ = kind::semaphore;
  capacity_ = 2;
  acquire(1);
  acquire(2);
  EXPECT_EQ(evict(1).outcome, done);
  EXPECT_EQ(who(), "2 |");
  EXPECT_EQ(evict(1).outcome, absent);
}

TEST_F(permits, an_evicted_holder_finds_out_at_its_next_renewal) {
  acquire(1);
  evict(1);
  EXPECT_EQ(renew(1).outcome, absent);
}

TEST_F(permits, dead_sessions_are_removed_as_holders_and_as_waiters) {
  acquire(1);
  acquire(2);
  acquire(3);
  const std::vector<std::string> dead{"p1", "p2"};
  EXPECT_TRUE(holdfast::kernel::forget(record_, dead));
  EXPECT_EQ(renew(3).outcome, granted);
  EXPECT_EQ(who(), "3 |");
  EXPECT_FALSE(holdfast::kernel::forget(record_, dead));
}

TEST_F(shared_permits, readers_are_in_together_and_a_writer_is_alone) {
  acquire(1);
  acquire(2);
  EXPECT_EQ(acquire(3, all).outcome, queued);
  EXPECT_EQ(who(), "1 2 | 3");
  release(1);
  EXPECT_EQ(who(), "2 | 3");
  release(2);
  EXPECT_EQ(who(), "3 |");
  EXPECT_EQ(acquire(4).outcome, queued);
}

TEST_F(shared_permits, a_waiting_writer_holds_up_later_readers) {
  acquire(1);
  acquire(2, all);
  EXPECT_EQ(acquire(3).outcome, queued);
  EXPECT_EQ(who(), "1 | 2 3");
}

TEST_F(shared_permits, a_reader_with_priority_passes_waiting_writers) {
  acquire(1);
  acquire(2, all);
  EXPECT_EQ(acquire(3, 1, 1).outcome, granted);
  EXPECT_EQ(who(), "1 3 | 2");
}

TEST_F(shared_permits, a_downgrade_wakes_readers_and_keeps_its_fence) {
  const auto writer = acquire(1, all);
  acquire(2);
  acquire(3);
  acquire(4, all);
  const auto reply = resize(1, 1);
  EXPECT_EQ(reply.outcome, granted);
  EXPECT_EQ(reply.fence, writer.fence);
  EXPECT_EQ(who(), "1 2 3 | 4");
  EXPECT_EQ(reply.tell.size(), 2u);
}

TEST_F(shared_permits, no_writer_slips_in_at_a_downgrade) {
  acquire(1, all);
  acquire(2, all);
  resize(1, 1);
  EXPECT_EQ(who(), "1 | 2");
}

TEST_F(shared_permits, the_only_reader_becomes_writer_with_a_new_fence) {
  const auto reader = acquire(1);
  const auto reply = resize(1, all);
  EXPECT_EQ(reply.outcome, granted);
  EXPECT_GT(reply.fence, reader.fence);
  const auto again = resize(1, all);
  EXPECT_EQ(again.fence, reply.fence) << "repeated, because the reply was lost";
}

TEST_F(shared_permits, of_two_readers_neither_becomes_writer_and_neither_waits) {
  acquire(1);
  acquire(2);
  const auto before = record_;
  EXPECT_EQ(resize(1, all).outcome, busy);
  EXPECT_EQ(resize(2, all).outcome, busy);
  EXPECT_EQ(record_, before);
}

TEST_F(shared_permits, the_weight_of_a_free_lock_cannot_change) {
  EXPECT_EQ(resize(1, all).outcome, absent);
  acquire(1, all);
  acquire(2);
  EXPECT_EQ(resize(2, all).outcome, absent);
}

}  // namespace
}  // namespace kernel_test
