#include "harness/eventually.hpp"
#include "harness/whole_waits.hpp"
#include "kernel/contender_family_fixture.hpp"

// A session leaves nothing in the queue that it does not hold or wait for.
namespace kernel_test {
namespace {

using namespace holdfast::store;
using namespace std::chrono_literals;
using enum permits_outcome;

class contender_line : public contender_family {
 protected:
  permits_reply share(permits_verb verb, std::uint64_t owner, std::uint32_t weight) {
    auto c = command(verb, owner);
    c.kind = kind::shared_mutex;
    c.capacity = 100;
    c.weight = weight;
    return family_->permits("n", c).value();
  }
  static countdown_command arrival(std::uint64_t owner) {
    countdown_command c;
    c.verb = countdown_verb::arrive;
    c.owner = {1, owner};
    c.count = 5;
    c.drop = 1;
    c.keep_us = 60 * second;
    return c;
  }
  countdown_reply arrive(std::uint64_t owner) {
    return family_->countdown("l", arrival(owner)).value();
  }
};

TEST_F(contender_line, a_replaced_holder_leaves_in_the_step_that_enters) {
  ASSERT_EQ(acquire(1).outcome, granted);
  auto c = command(permits_verb::acquire, 2);
  c.replaces = {0, 1};
  const auto next = family_->permits("n", c).value();
  EXPECT_EQ(next.outcome, granted);
  EXPECT_TRUE(next.replaced);
  EXPECT_EQ(port_.size("n"), 1U);
  EXPECT_EQ(renew(1).outcome, absent);
}

TEST_F(contender_line, a_request_of_another_kind_removes_its_node_again) {
  port_.put("n", stranger(1));
  auto c = command(permits_verb::acquire, 1);
  c.kind = kind::semaphore;
  c.capacity = 3;
  EXPECT_EQ(family_->permits("n", c)->outcome, kind_mismatch);
  EXPECT_EQ(port_.size("n"), 1U);
}

TEST_F(contender_line, a_failed_removal_of_an_entry_is_repeated) {
  ASSERT_EQ(acquire(1).outcome, granted);
  port_.fail_leaves = 2;
  clock_.advance(31s);
  harness::eventually("it is given up", [&] {
    clock_.advance(1s);
    return port_.size("n") == 0;
  });
  EXPECT_EQ(port_.left, 3);
}

TEST_F(contender_line, a_refused_upgrade_leaves_it_as_it_was) {
  ASSERT_EQ(share(permits_verb::acquire, 1, 1).outcome, granted);
  ASSERT_EQ(share(permits_verb::acquire, 2, 1).outcome, granted);
  EXPECT_EQ(share(permits_verb::resize, 1, 100).outcome, busy);
  EXPECT_EQ(port_.size("n"), 2U);
}

// Its lease ends, for example, while the upgrade is on its way.
class upgrade_of_what_is_given_up : public contender_line {
 protected:
  void SetUp() override {
    ASSERT_EQ(share(permits_verb::acquire, 1, 1).outcome, granted);
    port_.on_enter = [this] { EXPECT_EQ(release(1).outcome, done); };
  }
  holdfast::result<permits_reply> upgrade() {
    auto c = command(permits_verb::resize, 1);
    c.kind = kind::shared_mutex;
    c.capacity = c.weight = 100;
    return family_->permits("n", c);
  }
  void expect_nothing_stays() {
    harness::eventually("nothing stays in line", [&] {
      clock_.advance(1s);
      return port_.size("n") == 0;
    });
  }
};

TEST_F(upgrade_of_what_is_given_up, leaves_nothing_where_its_removal_failed_at_first) {
  port_.fail_leaves = 0;
  port_.on_enter = [this] {
    EXPECT_EQ(release(1).outcome, done);
    port_.fail_leaves = 1;
  };
  EXPECT_FALSE(upgrade());
  expect_nothing_stays();
}

TEST_F(upgrade_of_what_is_given_up, leaves_nothing_where_the_store_did_not_confirm_the_grant) {
  port_.lose_reply = true;
  EXPECT_FALSE(upgrade());
  expect_nothing_stays();
}

TEST_F(contender_line, an_eviction_after_an_upgrade_removes_both_entries_of_the_holder) {
  ASSERT_EQ(share(permits_verb::acquire, 1, 1).outcome, granted);
  ASSERT_EQ(share(permits_verb::resize, 1, 100).outcome, granted);
  ASSERT_EQ(port_.size("n"), 2U);
  EXPECT_EQ(family_->permits("n", command(permits_verb::evict, 1))->position, 1U);
  EXPECT_EQ(port_.size("n"), 0U);
}

/// A reader that was upgraded.
class downgrade_of_what_was_upgraded : public contender_line {
 protected:
  void SetUp() override {
    ASSERT_EQ(share(permits_verb::acquire, 1, 1).outcome, granted);
    ASSERT_EQ(share(permits_verb::resize, 1, 100).outcome, granted);
  }
  holdfast::result<permits_reply> resize(std::uint32_t weight) {
    auto c = command(permits_verb::resize, 1);
    c.kind = kind::shared_mutex;
    c.capacity = 100;
    c.weight = weight;
    return family_->permits("n", c);
  }
};

// Readers may enter from then on, whatever happens to the other half.
TEST_F(downgrade_of_what_was_upgraded, is_of_unknown_outcome_where_half_of_it_was_done) {
  port_.fail_reads = 1;
  const auto half = resize(1);
  ASSERT_FALSE(half);
  EXPECT_TRUE(half.error().outcome_unknown);
  EXPECT_EQ(resize(1)->outcome, granted);
  EXPECT_EQ(port_.size("n"), 1U);
  EXPECT_EQ(release(1).outcome, done);
  EXPECT_EQ(port_.size("n"), 0U);
}

TEST_F(downgrade_of_what_was_upgraded, that_had_no_answer_never_takes_a_later_upgrade_away) {
  port_.delay_leave = true;
  EXPECT_FALSE(resize(1));
  EXPECT_EQ(resize(1)->outcome, granted);
  EXPECT_EQ(resize(100)->outcome, granted);
  port_.deliver_late();
  EXPECT_EQ(port_.size("n"), 2U);
}

// A renewal that asks for the second queue entry while the downgrade gives it up.
TEST_F(downgrade_of_what_was_upgraded, that_meets_a_renewal_is_no_loss) {
  port_.before_confirm = [&] { EXPECT_EQ(resize(1)->outcome, granted); };
  EXPECT_EQ(renew(1).outcome, granted);
  EXPECT_EQ(port_.size("n"), 1U);
  bool met = false;
  port_.on_leave = [&] {
    met = true;
    EXPECT_EQ(renew(1).outcome, granted);
  };
  ASSERT_EQ(resize(100)->outcome, granted);
  EXPECT_EQ(resize(1)->outcome, granted);
  EXPECT_TRUE(met);
  EXPECT_EQ(renew(1).outcome, granted);
  EXPECT_EQ(release(1).outcome, done);
  EXPECT_EQ(port_.size("n"), 0U);
}

TEST_F(downgrade_of_what_was_upgraded, by_another_session_leaves_nothing_behind) {
  port_.remove_last("n");
  EXPECT_EQ(renew(1).outcome, absent);
  harness::eventually("nothing stays in line", [&] {
    clock_.advance(1s);
    return port_.size("n") == 0;
  });
}

TEST_F(contender_line, an_upgrade_that_succeeded_without_an_answer_has_an_unknown_outcome) {
  ASSERT_EQ(share(permits_verb::acquire, 1, 1).outcome, granted);
  port_.on_enter = [this] { port_.fail_lists = 1; };
  auto c = command(permits_verb::resize, 1);
  c.kind = kind::shared_mutex;
  c.capacity = c.weight = 100;
  const auto half = family_->permits("n", c);
  ASSERT_FALSE(half);
  EXPECT_TRUE(half.error().outcome_unknown);
  EXPECT_EQ(family_->permits("n", c)->outcome, granted);
  EXPECT_EQ(port_.size("n"), 2U);
}

TEST_F(contender_line, an_eviction_of_one_leaves_the_others) {
  ASSERT_EQ(share(permits_verb::acquire, 1, 1).outcome, granted);
  ASSERT_EQ(share(permits_verb::acquire, 2, 1).outcome, granted);
  EXPECT_EQ(family_->permits("n", command(permits_verb::evict, 1))->position, 1U);
  EXPECT_EQ(share(permits_verb::renew, 1, 1).outcome, absent);
  EXPECT_EQ(share(permits_verb::renew, 2, 1).outcome, granted);
}

// The waiter knows its turn, and not whether its session is still valid.
TEST_F(contender_line, a_long_waiter_checks_whether_its_entry_still_exists) {
  port_.put("n", stranger(1));
  ASSERT_EQ(acquire(1).outcome, queued);
  port_.unproven = true;
  port_.remove_all("n", {9, 1});
  int asked = 0;
  port_.on_confirm = [&] {
    ++asked;
    port_.unproven = false;
  };
  EXPECT_EQ(acquire(1).outcome, granted);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(acquire(1).outcome, granted) << "and what it holds is renewed as ever";
}

// The family's thread sleeps until the first entry ends, of those that it knew when it fell asleep.
TEST(contender_line_in_time, an_entry_that_ends_sooner_than_all_others_is_removed_in_time) {
  harness::whole_waits clock;
  auto made = std::make_unique<fake_contender_store>(clock);
  fake_contender_store& port = *made;
  const auto family = holdfast::family::over(std::move(made), clock);
  const auto wait = [&](const char* name, std::int64_t queue_lease_us) {
    contender other;
    other.owner = {9, 1};
    port.put(name, other);
    permits_command c;
    c.verb = permits_verb::acquire;
    c.owner = {0, 1};
    c.wait = true;
    c.lease_us = 30'000'000;
    c.queue_lease_us = queue_lease_us;
    return family->permits(name, c).value().outcome;
  };
  EXPECT_EQ(wait("long", 3'600'000'000), queued);
  harness::eventually("it sleeps until then", [&] { return clock.asleep.load(); });
  EXPECT_EQ(wait("short", 1'000), queued);
  harness::eventually("it is given up", [&] { return port.size("short") == 1; });
  EXPECT_EQ(port.size("long"), 2U);
}

TEST_F(contender_line, a_latch_made_while_a_contender_came_for_a_lock_is_taken_back) {
  port_.on_replace = [&] { port_.put("l", stranger(1)); };
  EXPECT_EQ(arrive(1).outcome, countdown_outcome::kind_mismatch);
  EXPECT_EQ(family_->countdown("l", {})->found.count, 0U);
}

// The arrival is written, and it is not known yet whether a lock was entered meanwhile.
TEST_F(contender_line, an_arrival_whose_last_read_fails_may_have_counted_and_counts_once) {
  port_.on_replace = [&] { port_.fail_lists = 1; };
  const auto first = family_->countdown("l", arrival(1));
  ASSERT_FALSE(first);
  EXPECT_TRUE(first.error().outcome_unknown);
  EXPECT_EQ(family_->countdown("l", {})->remaining, 4U);
  EXPECT_EQ(arrive(1).remaining, 4U);
}

// A contender that came in between saw no record, and has the lock.
TEST_F(contender_line, a_latch_whose_last_check_failed_is_repaired_at_the_next_request) {
  for (const auto verb : {countdown_verb::arrive, countdown_verb::wait}) {
    auto c = arrival(1);
    c.verb = verb;
    port_.on_replace = [&] {
      port_.put("l", stranger(1));
      port_.fail_lists = 1;
    };
    ASSERT_FALSE(family_->countdown("l", c));
    EXPECT_EQ(family_->countdown("l", c)->outcome, countdown_outcome::kind_mismatch);
    EXPECT_EQ(family_->countdown("l", {})->found.count, 0U);
    port_.remove_all("l", {9, 1});
  }
}

TEST_F(contender_line, a_latch_whose_creation_got_no_answer_is_repaired_too) {
  port_.lose_replaced = true;
  port_.on_replace = [&] { port_.put("l", stranger(1)); };
  ASSERT_FALSE(family_->countdown("l", arrival(1)));
  EXPECT_EQ(arrive(1).outcome, countdown_outcome::kind_mismatch);
  EXPECT_EQ(family_->countdown("l", {})->found.count, 0U);
}

// They rely on it by now.
TEST_F(contender_line, a_latch_at_which_others_have_counted_down_is_not_taken_back) {
  port_.on_replace = [&] {
    port_.put("l", stranger(1));
    port_.fail_lists = 1;
  };
  ASSERT_FALSE(family_->countdown("l", arrival(1)));
  EXPECT_EQ(arrive(2).remaining, 3U);
  EXPECT_EQ(arrive(1).outcome, countdown_outcome::kind_mismatch);
  EXPECT_EQ(family_->countdown("l", {})->remaining, 3U);
}

TEST_F(contender_line, an_arrival_beside_another_is_counted_on_top_of_it) {
  (void)arrive(1);
  port_.on_replace = [&] { (void)arrive(2); };
  EXPECT_EQ(arrive(3).remaining, 2U);
  EXPECT_EQ(family_->countdown("l", {})->remaining, 2U);
}

}  // namespace
}  // namespace kernel_test
