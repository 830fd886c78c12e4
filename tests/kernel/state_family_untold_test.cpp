#include <holdfast/store/forwarding_store.hpp>
#include <set>
#include <string>

#include "kernel/state_family_fixture.hpp"

// Changes without a notification, outcomes that are undone, and how long a record is kept.
namespace kernel_test {
namespace {

using namespace holdfast::store;
using enum permits_outcome;

TEST_F(state_family, a_record_is_kept_for_a_fence_that_the_time_has_not_reached) {
  port_.now.wall_only_grows = true;
  auto c = command(permits_verb::acquire, 1);
  c.fence_at_least = static_cast<std::uint64_t>(port_.now.wall_at + 20 * second);
  const auto first = family_->permits("n", c)->fence;
  EXPECT_EQ(first, c.fence_at_least);
  release(1);
  EXPECT_EQ(port_.records.count("n"), 1U);
  EXPECT_GT(acquire(2).fence, first);
  pass(21 * second);
  release(2);
  EXPECT_EQ(port_.records.count("n"), 0U) << "now the time alone makes the next one greater";
}

TEST_F(state_family, the_first_waiter_without_notifications_polls_when_the_lease_in_its_way_ends) {
  port_.capabilities.notifications = false;
  port_.now = {port_.now.wall_at, port_.now.wall_at};  // as an SQL server counts
  acquire(1);
  pass(30 * second - 2'000);
  EXPECT_EQ(acquire(2).retry_after_us, 2'000);
  EXPECT_GT(acquire(3).retry_after_us, 50'000) << "it is not its turn then";
}

/// Participants of a barrier, waiters for a condition or for a latch, at a store that notifies
/// nobody.
class waiters_that_go_on_together : public state_family {
 protected:
  waiters_that_go_on_together() {
    port_.capabilities.notifications = false;
    port_.now = {port_.now.wall_at, port_.now.wall_at};  // as an SQL server counts
  }
  std::int64_t pause_of(kind what, std::uint64_t owner) {
    if (what == kind::latch) {
      countdown_command c{countdown_verb::wait, {owner, owner}, 1};
      c.keep_us = 3'600 * second, c.queue_lease_us = 4 * second;
      return family_->countdown("l", c)->retry_after_us;
    }
    auto c = command(permits_verb::acquire, owner);
    c.kind = what, c.capacity = 1'000;
    return family_->permits(to_string(what), c)->retry_after_us;
  }
  std::size_t waiting(kind what) {
    if (what == kind::latch) return family_->countdown("l", {}).value().found.waiting.size();
    return family_->permits(to_string(what), {}).value().found.queue.size();
  }
};

TEST_F(waiters_that_go_on_together, poll_after_as_long_as_they_have_waited) {
  for (const auto what : {kind::barrier, kind::condition_variable, kind::latch}) {
    EXPECT_EQ(pause_of(what, 1), 5'000) << to_string(what);
    pass(20'000);
    EXPECT_EQ(pause_of(what, 1), 20'000) << to_string(what);
    pass(second);
    EXPECT_EQ(pause_of(what, 1), 50'000) << to_string(what);
  }
}

TEST_F(waiters_that_go_on_together, poll_more_seldom_if_they_are_many) {
  for (const auto what : {kind::barrier, kind::condition_variable, kind::latch}) {
    for (std::uint64_t owner = 1; owner <= 64; ++owner) pause_of(what, owner);
    pass(2 * second);
    EXPECT_EQ(pause_of(what, 1), 400'000) << to_string(what);
    EXPECT_EQ(pause_of(what, 64), 400'000) << "its place does not count, " << to_string(what);
  }
}

TEST_F(waiters_that_go_on_together, write_seldom_while_they_poll_often) {
  for (const auto what : {kind::condition_variable, kind::latch}) {
    for (std::uint64_t owner = 1; owner <= 8; ++owner) pause_of(what, owner);
    port_.writes = 0;
    for (int poll = 0; poll < 200; ++poll) {
      pass(50'000);
      for (std::uint64_t owner = 1; owner <= 8; ++owner) pause_of(what, owner);
    }
    EXPECT_GT(port_.writes, 0) << to_string(what);
    EXPECT_LE(port_.writes, 8 * 10) << "1600 polls in ten seconds, " << to_string(what);
  }
}

// Their entries last four seconds, and two of them are left if the next poll comes in time.
TEST_F(waiters_that_go_on_together, may_poll_late_although_most_polls_only_read) {
  for (const auto what : {kind::condition_variable, kind::latch}) {
    for (const std::uint64_t all : {1U, 40U}) {
      for (int poll = 0; poll < 30; ++poll) {
        std::int64_t pause = 0;
        for (std::uint64_t owner = 1; owner <= all; ++owner) {
          pause = std::max(pause, pause_of(what, owner));
        }
        pass(pause + 2 * second - 1);
        ASSERT_EQ(waiting(what), all) << to_string(what);
        pass(1 - 2 * second);
      }
    }
  }
}

// Two uses of a latch keep it for an hour after the second of them, or nearly so.
TEST_F(waiters_that_go_on_together, keep_a_latch_as_long_as_if_each_poll_wrote) {
  pause_of(kind::latch, 1);
  for (int poll = 0; poll < 200; ++poll) pass(50'000), pause_of(kind::latch, 1);
  countdown_command c{countdown_verb::arrive, {9, 9}, 2, 1};
  pass(3'600 * second - 57 * second);
  EXPECT_EQ(family_->countdown("l", c)->outcome, countdown_outcome::capacity_mismatch);
}

// A minute, less a 64th part. Between writes for the queue entry there are up to two seconds.
TEST_F(waiters_that_go_on_together, keep_a_latch_as_long_if_it_is_not_kept_for_long) {
  for (int polls = 20; polls < 60; polls += 5) {
    const auto name = std::to_string(polls);
    countdown_command c{countdown_verb::wait, {1, 1}, 1};
    c.keep_us = 60 * second, c.queue_lease_us = 4 * second;
    for (int poll = 0; poll < polls; ++poll) pass(50'000), (void)family_->countdown(name, c);
    pass(59 * second);
    const countdown_command other{countdown_verb::arrive, {9, 9}, 2, 1};
    EXPECT_EQ(family_->countdown(name, other)->outcome, countdown_outcome::capacity_mismatch)
        << name;
  }
}

// Owners 1, 6, 11 … are of one session.
TEST_F(waiters_that_go_on_together, tell_the_others_of_their_session_when_they_may_go_on) {
  const auto open_by = [&](kind what, permits_verb verb, std::uint64_t owner) {
    auto c = command(verb, owner);
    c.kind = what, c.capacity = 11;
    if (verb == permits_verb::notify) c.weight = 11;
    return family_->permits(to_string(what), c).value().outcome;
  };
  for (const auto what : {kind::barrier, kind::condition_variable}) {
    for (std::uint64_t owner = 1; owner <= 10; ++owner) open_by(what, permits_verb::acquire, owner);
    const bool meets = what == kind::barrier;
    open_by(what, meets ? permits_verb::acquire : permits_verb::notify, 12);
    port_.told.clear();
    EXPECT_EQ(open_by(what, permits_verb::renew, 1), granted);
    ASSERT_EQ(port_.told.size(), 1U) << to_string(what);
    EXPECT_EQ(port_.told[0].owner.low, 6U);
    EXPECT_EQ(port_.told[0].name, to_string(what));
    EXPECT_EQ(open_by(what, permits_verb::renew, 6), granted);
    EXPECT_EQ(port_.told.size(), 1U) << "once for each phase, " << to_string(what);
  }
}

// The renewals of two barriers alternate, for as long as the participants do not wait.
TEST_F(waiters_that_go_on_together, are_not_notified_by_renewals) {
  for (const std::string_view name : {"b", "c"}) {
    for (std::uint64_t owner = 1; owner <= 11; owner += 5) {
      auto c = command(permits_verb::acquire, owner);
      c.kind = kind::barrier, c.capacity = 3;
      (void)family_->permits(name, c).value();
    }
  }
  port_.told.clear();
  std::vector<named_command> renewals;
  for (std::uint64_t owner = 1; owner <= 11; owner += 5) {
    for (const std::string_view name : {"b", "c"}) {
      renewals.push_back({name, command(permits_verb::renew, owner)});
      renewals.back().command.wait = false;
    }
  }
  for (const auto& one : family_->execute_batch(renewals)) EXPECT_EQ(one->outcome, granted);
  EXPECT_TRUE(port_.told.empty()) << port_.told.size();
}

TEST_F(state_family, participants_are_notified_in_one_call) {
  auto c = command(permits_verb::acquire, 0);
  c.kind = kind::barrier, c.capacity = 20;
  for (std::uint64_t owner = 1; owner <= 20; ++owner) {
    EXPECT_EQ(port_.told_at_once, 0);
    c.owner = {0, owner};
    (void)family_->permits("b", c).value();
  }
  EXPECT_EQ(port_.told.size(), 19U);
  EXPECT_EQ(port_.told_at_once, 1);
  c.verb = permits_verb::renew, c.owner = {0, 1};
  EXPECT_EQ(family_->permits("b", c)->outcome, granted);
  EXPECT_EQ(port_.told_at_once, 1) << "where waiters are notified, none tells the others";
}

TEST_F(waiters_that_go_on_together, poll_seldom_after_a_clock_that_was_set_back) {
  pause_of(kind::barrier, 1);
  pass(-10 * second);
  EXPECT_EQ(pause_of(kind::barrier, 1), 50'000);
}

// A waiter that polled once after that, and then died, is not in the way for an hour.
TEST_F(waiters_that_go_on_together, leave_in_time_after_a_clock_that_was_set_back) {
  for (const auto what : {kind::condition_variable, kind::latch}) {
    pause_of(what, 1);
    pass(-3'600 * second);
    pause_of(what, 1);
    pass(4 * second);
    EXPECT_EQ(waiting(what), 0U) << to_string(what);
  }
}

/// Waiters for a mutex that owner 100 holds, at a store that notifies nobody.
class waiters_for_a_lock : public waiters_that_go_on_together {
 protected:
  waiters_for_a_lock() {
    auto c = command(permits_verb::acquire, 100);
    c.lease_us = 3'600 * second;
    (void)family_->permits("n", c).value();
    pass(second);
  }
  std::int64_t all_poll(std::uint64_t all) {
    std::int64_t pause = 0;
    for (std::uint64_t owner = 1; owner <= all; ++owner)
      pause = std::max(pause, acquire(owner).retry_after_us);
    return pause;
  }
};

TEST_F(waiters_for_a_lock, write_seldom_while_they_poll_often) {
  all_poll(8);
  port_.writes = 0;
  for (int poll = 0; poll < 200; ++poll) pass(50'000), all_poll(8);
  EXPECT_GT(port_.writes, 0);
  EXPECT_LE(port_.writes, 8 * 10) << "1600 polls in ten seconds";
}

TEST_F(waiters_for_a_lock, may_poll_late_although_most_polls_only_read) {
  for (int poll = 0; poll < 30; ++poll) {
    const auto pause = all_poll(40);
    pass(pause + 2 * second - 1);
    ASSERT_EQ(record().queue.size(), 40U);
    pass(1 - 2 * second);
  }
}

// Owners 1 and 26 are of one session. The latter's next poll comes late, so its entry has to be
// extended now.
TEST_F(waiters_for_a_lock, do_not_take_what_was_not_written_for_extended) {
  all_poll(26);
  pass(second);
  port_.writes = 0;
  const std::vector<named_command> both{{"n", command(permits_verb::acquire, 1)},
                                        {"n", command(permits_verb::acquire, 26)}};
  ASSERT_EQ(acquire(1).outcome, queued);
  ASSERT_EQ(port_.writes, 0);
  const auto replies = family_->execute_batch(both);
  ASSERT_GT(replies.back()->retry_after_us, second);
  EXPECT_EQ(port_.writes, 1);
}

// It believes a notification for as long as the place in the queue is sure after its last poll.
TEST_F(waiters_for_a_lock, write_at_each_poll_if_they_are_notified) {
  port_.capabilities.notifications = true;
  acquire(1);
  port_.writes = 0;
  for (int poll = 0; poll < 10; ++poll) pass(50'000), acquire(1);
  EXPECT_EQ(port_.writes, 10);
}

// The hand-over came before: the claim is undone, not the turn.
TEST_F(state_family, a_turn_without_tokens_passes_to_the_next_waiter) {
  const std::vector<bucket_choice> bucket{{"b", {1, 1, 1'000 * second, 1}}};
  const rate_command take{rate_verb::take, {}, 1, 0, 0, bucket};
  const auto ask = [&](std::uint64_t owner) {
    return family_->admit({"n", command(permits_verb::acquire, owner)}, "rate", take).value();
  };
  ASSERT_EQ(ask(1).permits.outcome, granted);
  ASSERT_EQ(ask(2).permits.outcome, queued);
  ASSERT_EQ(ask(3).permits.outcome, queued);
  release(1);
  ASSERT_EQ(record().holders.at(0).owner.low, 2U) << "it has only to come for it";
  const auto refused = ask(2);
  ASSERT_TRUE(refused.tokens);
  EXPECT_EQ(refused.tokens->outcome, rate_outcome::refused);
  ASSERT_EQ(record().holders.size(), 1U);
  EXPECT_EQ(record().holders[0].owner.low, 3U);
  EXPECT_EQ(port_.told.back().owner.low, 3U);
}

TEST_F(state_family, no_lock_of_several_is_acquired_if_one_is_held) {
  acquire(9, "c");
  EXPECT_EQ(together({"a", "b", "c"}).back().outcome, busy);
  EXPECT_EQ(family_->names().value(), std::vector<std::string>{"c"});
}

// The second attempt is undone. The first was carried out, and its answer was lost.
TEST_F(state_family, a_request_refused_tokens_after_a_lost_answer_has_no_permit) {
  const std::vector<bucket_choice> bucket{{"b", {1, 1, 1'000 * second, 1}}};
  const rate_command take{rate_verb::take, {}, 1, 0, 0, bucket};
  bool came_between = false;
  port_.after_lost_commit = [&] { came_between = true; };
  const auto asks = asks_for({"n"});
  const auto refused = family_->admit(asks.front(), "rate", take).value();
  ASSERT_TRUE(came_between);
  ASSERT_TRUE(refused.tokens);
  EXPECT_EQ(refused.tokens->outcome, rate_outcome::refused);
  EXPECT_TRUE(record().holders.empty());
}

TEST_F(state_family, a_permit_that_may_be_left_behind_is_in_doubt) {
  const std::vector<bucket_choice> bucket{{"b", {1, 1, 1'000 * second, 1}}};
  const rate_command take{rate_verb::take, {}, 1, 0, 0, bucket};
  port_.after_lost_commit = [&] {
    port_.fails_alone = holdfast::failure{holdfast::errc::busy, "now"};
  };
  const auto asks = asks_for({"n"});
  const auto both = family_->admit(asks.front(), "rate", take);
  ASSERT_FALSE(both.ok());
  EXPECT_TRUE(both.error().outcome_unknown);
}

TEST_F(state_family, a_request_refused_one_of_several_after_a_lost_answer_holds_no_name) {
  port_.after_lost_commit = [&] {
    (void)family_->permits("b", command(permits_verb::evict, 3)).value();
    acquire(9, "b");
  };
  EXPECT_EQ(together({"a", "b"}).back().outcome, busy);
  EXPECT_EQ(family_->names().value(), std::vector<std::string>{"b"});
}

// A hand-over that the end of a lease caused was undone with the rest.
TEST_F(state_family, an_undone_grant_notifies_no_waiter) {
  acquire(9, "c");
  acquire(1, "a");
  auto patient = command(permits_verb::acquire, 2);
  patient.queue_lease_us = 100 * second;
  ASSERT_EQ(family_->permits("a", patient)->outcome, queued);
  pass(29 * second);
  (void)family_->permits("c", command(permits_verb::renew, 9));
  pass(2 * second);
  EXPECT_EQ(together({"a", "c"}).back().outcome, busy);
  EXPECT_TRUE(port_.told.empty());
  EXPECT_EQ(family_->permits("a", patient)->outcome, granted);
}

TEST_F(state_family, names_that_expired_are_not_listed) {
  acquire(1, "a");
  pass(31 * second);
  EXPECT_TRUE(family_->names()->empty());
}

TEST_F(state_family, a_bucket_that_is_full_again_is_not_kept) {
  const auto take = [&](const char* id) {
    const std::vector<bucket_choice> bucket{{id, {1, 1, second, 1}}};
    return family_->rate("r", {rate_verb::take, {}, 1, 0, 0, bucket})->outcome;
  };
  EXPECT_EQ(take("first"), rate_outcome::granted);
  const auto one = port_.records["r"].size();
  pass(2 * second);
  EXPECT_EQ(take("other"), rate_outcome::granted);
  EXPECT_EQ(port_.records["r"].size(), one);
}

/// Has no transaction over several names, and fails to release some of them.
class reluctant final : public one_by_one {
 public:
  using one_by_one::one_by_one;
  holdfast::result<permits_reply> permits(std::string_view name,
                                          const permits_command& c) override {
    if (c.verb == permits_verb::release && keeps.contains(std::string(name))) {
      return holdfast::failure{holdfast::errc::unavailable, "not now"};
    }
    return inner().permits(name, c);
  }
  std::set<std::string> keeps;
};

TEST_F(state_family, without_a_transaction_acquired_locks_of_several_are_released) {
  acquire(9, "c");
  reluctant store(std::move(family_));
  const auto all = asks_for({"a", "b", "c"});
  EXPECT_EQ(store.acquire_together(all)->back().outcome, busy);
  EXPECT_EQ(store.names().value(), std::vector<std::string>{"c"});
}

TEST_F(state_family, without_a_transaction_a_permit_without_tokens_is_released) {
  const std::vector<bucket_choice> bucket{{"b", {1, 1, second, 1}}};
  const rate_command take{rate_verb::take, {}, 1, 0, 0, bucket};
  ASSERT_EQ(family_->rate("rate", take)->outcome, rate_outcome::granted);
  reluctant store(std::move(family_));
  const auto both = store.admit({"n", command(permits_verb::acquire, 1)}, "rate", take).value();
  ASSERT_TRUE(both.tokens);
  EXPECT_EQ(both.tokens->outcome, rate_outcome::refused);
  EXPECT_EQ(store.permits("n", {})->found.holders.size(), 0U);
}

TEST_F(state_family, a_failed_release_keeps_no_other_name) {
  acquire(9, "c");
  reluctant store(std::move(family_));
  store.keeps = {"a"};
  const auto got = store.acquire_together(asks_for({"a", "b", "c"}));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().what, "not now");
  EXPECT_EQ(store.names().value(), (std::vector<std::string>{"a", "c"}));
}

}  // namespace
}  // namespace kernel_test
