#include "kernel/permits_fixture.hpp"

namespace kernel_test {
namespace {

constexpr auto granted = permits_outcome::granted;
constexpr auto queued = permits_outcome::queued;
constexpr auto absent = permits_outcome::absent;
constexpr auto done = permits_outcome::done;

class condition_kernel : public permits {
 protected:
  condition_kernel() {
    kind_ = kind::condition_variable;
    capacity_ = 1u << 30;
  }
  permits_reply notify(std::uint32_t most) {
    auto c = command(permits_verb::notify, 0);
    c.weight = most;
    return apply(c);
  }
  void three_wait() { acquire(1), acquire(2), acquire(3); }
};

TEST_F(condition_kernel, a_waiter_is_not_granted_without_a_notification) {
  three_wait();
  EXPECT_EQ(acquire(1).outcome, queued);
  EXPECT_EQ(renew(2).outcome, queued);
  EXPECT_EQ(who(), "| 1 2 3");
}

TEST_F(condition_kernel, the_first_waiter_is_woken_and_notified) {
  three_wait();
  EXPECT_EQ(notify(1).outcome, done);
  ASSERT_EQ(last_.tell.size(), 1u);
  EXPECT_EQ(last_.tell[0].owner.low, 1u);
  EXPECT_EQ(who(), "1 | 2 3");
  EXPECT_EQ(renew(1).outcome, granted);
  EXPECT_EQ(who(), "| 2 3") << "a waiter that confirms that it is awake is gone";
  EXPECT_EQ(renew(1).outcome, absent);
}

TEST_F(condition_kernel, all_are_woken) {
  three_wait();
  EXPECT_EQ(notify(1u << 30).position, 3u);
  for (const std::uint64_t owner : {3U, 1U, 2U}) EXPECT_EQ(renew(owner).outcome, granted);
  EXPECT_EQ(record_.capacity, 0u);
}

TEST_F(condition_kernel, a_notification_without_a_waiter_is_not_kept) {
  EXPECT_EQ(notify(1).outcome, absent);
  EXPECT_EQ(acquire(1).outcome, queued);
}

TEST_F(condition_kernel, a_waiter_that_does_not_wake_up_passes_the_notification_on) {
  three_wait();
  notify(1);
  pass(holdfast::kernel::claim_us);
  EXPECT_EQ(renew(3).outcome, queued);
  EXPECT_EQ(who(), "2 | 3");
}

TEST_F(condition_kernel, a_waiter_known_to_be_dead_passes_the_notification_on_at_once) {
  three_wait();
  notify(1);
  const std::vector<std::string> dead{"p1"};
  holdfast::kernel::forget(record_, dead);
  EXPECT_EQ(renew(3).outcome, queued);
  EXPECT_EQ(who(), "2 | 3");
}

TEST_F(condition_kernel, a_waiter_that_gives_up_when_woken_passes_the_notification_on) {
  three_wait();
  notify(1);
  EXPECT_EQ(release(1).outcome, done);
  EXPECT_EQ(who(), "2 | 3");
}

TEST_F(condition_kernel, a_waiter_that_gives_up_unwoken_leaves_the_queue) {
  three_wait();
  release(1);
  EXPECT_EQ(who(), "| 2 3");
  pass(place_);
  EXPECT_EQ(renew(2).outcome, absent);
  EXPECT_EQ(who(), "|");
}

TEST_F(condition_kernel, a_notification_wakes_no_waiter_of_another_kind) {
  kind_ = kind::mutex;
  capacity_ = 1;
  acquire(1);
  acquire(2);
  kind_ = kind::condition_variable;
  EXPECT_EQ(notify(1).outcome, permits_outcome::kind_mismatch);
  EXPECT_EQ(who(), "1 | 2");
}

}  // namespace
}  // namespace kernel_test
