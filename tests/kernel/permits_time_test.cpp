#include "kernel/permits_fixture.hpp"

// The rules of time: leases, queue entries, and grants that are not claimed yet.
namespace kernel_test {
namespace {

using enum permits_outcome;

TEST_F(permits, a_lease_ends_at_its_time_and_not_before) {
  acquire(1);
  pass(lease_ - 1);
  EXPECT_EQ(try_acquire(2).outcome, busy);
  pass(1);
  EXPECT_EQ(try_acquire(2).outcome, granted);
}

TEST_F(permits, an_entry_without_renewal_ends_and_the_order_of_the_others_stays) {
  acquire(1);
  acquire(2);
  acquire(3);
  acquire(4);
  pass(place_ - second);
  renew(2);
  renew(4);
  pass(second);
  EXPECT_EQ(acquire(5).position, 3u);
  EXPECT_EQ(who(), "1 | 2 4 5");
}

TEST_F(permits, a_grant_that_is_not_claimed_passes_on_within_the_claim_time) {
  acquire(1);
  acquire(2);
  acquire(3);
  release(1);
  EXPECT_EQ(who(), "2 | 3");
  pass(holdfast::kernel::claim_us - 1);
  renew(3);
  EXPECT_EQ(who(), "2 | 3");
  pass(1);
  EXPECT_EQ(renew(3).outcome, granted);
  EXPECT_EQ(who(), "3 |");
}

TEST_F(permits, a_claimed_grant_lasts_the_whole_lease) {
  acquire(1);
  acquire(2);
  release(1);
  pass(holdfast::kernel::claim_us - 1);
  EXPECT_EQ(acquire(2).expires_at, now_ + lease_);
}

TEST_F(permits, a_lease_shorter_than_the_claim_time_is_not_lengthened_by_it) {
  lease_ = 100 * ms;
  acquire(1);
  acquire(2);
  release(1);
  EXPECT_EQ(record_.holders.at(0).expires_at, now_ + 100 * ms);
}

TEST_F(permits, the_first_waiter_polls_when_the_lease_of_the_holder_ends) {
  lease_ = 100 * ms;
  acquire(1);
  acquire(2);
  pass(60 * ms);
  EXPECT_EQ(acquire(2).retry_after_us, 40 * ms);
  pass(40 * ms - 10);
  EXPECT_EQ(acquire(2).retry_after_us, holdfast::kernel::retry_after_at_least_us);
}

TEST_F(permits, the_second_waiter_polls_when_the_second_permit_ends) {
  capacity_ = 4;
  std::uint64_t owner = 0;
  for (const std::int64_t lasts : {300, 100, 900, 200}) {
    lease_ = lasts * ms;
    acquire(++owner);
  }
  EXPECT_EQ(acquire(5).retry_after_us, 100 * ms);
  EXPECT_EQ(acquire(6).retry_after_us, 200 * ms);
  EXPECT_EQ(acquire(7).retry_after_us, 300 * ms);
  EXPECT_EQ(acquire(8).retry_after_us, second) << "that far behind it is told, or others look";
  pass(50 * ms);
  EXPECT_EQ(renew(6).retry_after_us, 150 * ms);
}

TEST_F(permits, no_waiter_sleeps_over_a_second_on_a_notification_that_may_be_lost) {
  acquire(1);
  for (std::uint64_t owner = 2; owner < 50; ++owner) {
    const auto reply = acquire(owner);
    EXPECT_GT(reply.retry_after_us, 0);
    EXPECT_LE(reply.retry_after_us, second);
  }
}

}  // namespace
}  // namespace kernel_test
