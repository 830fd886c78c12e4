#include "kernel/contender_family_fixture.hpp"

#include "harness/counting_clock.hpp"
#include "harness/eventually.hpp"

// The family's behaviour over a port, whatever the store: no server, and a clock that stands still.
namespace kernel_test {
namespace {

using namespace holdfast::store;
using namespace std::chrono_literals;
using enum permits_outcome;
using holdfast::errc;

TEST_F(contender_family, a_free_lock_is_acquired_with_one_entry_and_one_read) {
  EXPECT_EQ(acquire(1).outcome, granted);
  EXPECT_EQ(port_.entered_count, 1);
  EXPECT_EQ(port_.listed, 1);
  EXPECT_EQ(release(1).outcome, done);
  EXPECT_EQ(port_.size("n"), 0U);
}

TEST_F(contender_family, no_contender_polls_if_the_store_notifies_the_queue) {
  port_.tells_line = true;
  EXPECT_EQ(acquire(1).outcome, granted);
  EXPECT_EQ(acquire(2, false).outcome, busy);
  EXPECT_EQ(port_.listed, 0);
}

TEST_F(contender_family, its_thread_wakes_for_the_first_of_many_short_holds) {
  harness::counting_clock clock;
  const auto family = holdfast::family::over(std::make_unique<fake_contender_store>(clock), clock);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(family->permits("n", command(permits_verb::acquire, 1))->outcome, granted);
    EXPECT_EQ(family->permits("n", command(permits_verb::release, 1))->outcome, done);
    clock.until_asleep(1);
  }
  EXPECT_LE(clock.wakes(), 1);
}

TEST_F(contender_family, fences_are_the_numbers_of_the_entries) {
  const auto first = acquire(1).fence;
  (void)release(1);
  EXPECT_GT(acquire(2).fence, first);
}

TEST_F(contender_family, a_waiter_watches_its_predecessor_and_is_notified_when_it_leaves) {
  port_.put("n", stranger(1));
  port_.put("n", stranger(2));
  EXPECT_EQ(acquire(1).outcome, queued);
  EXPECT_EQ(port_.watched("n"), 1U);
  port_.remove_all("n", {9, 1});
  EXPECT_FALSE(told(1)) << "not the one it waits for";
  port_.remove_all("n", {9, 2});
  EXPECT_TRUE(told(1));
  EXPECT_EQ(acquire(1).outcome, granted);
}

// The predecessor enters anew after the queue was read, and before it is watched.
TEST_F(contender_family, a_waiter_does_not_wait_for_a_contender_that_is_now_behind_it) {
  port_.names_by_owner = true;
  port_.put("n", stranger(1));
  port_.put("n", stranger(2));
  port_.on_listed = [&] {
    port_.remove_all("n", {9, 2});
    port_.put("n", stranger(2));
  };
  EXPECT_EQ(acquire(1).outcome, queued);
  port_.remove_all("n", {9, 1});
  EXPECT_TRUE(told(1)) << "it is the first now";
  EXPECT_EQ(acquire(1).outcome, granted);
}

TEST_F(contender_family, without_a_change_the_store_gets_no_request) {
  port_.put("n", stranger(1));
  EXPECT_EQ(acquire(1).outcome, queued);
  const int before = port_.listed;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(acquire(1).outcome, queued);
  EXPECT_EQ(port_.listed, before);
}

TEST_F(contender_family, an_entry_with_a_lost_reply_is_found_again) {
  port_.lose_reply = true;
  const auto lost = family_->permits("n", command(permits_verb::acquire, 1));
  ASSERT_FALSE(lost);
  EXPECT_TRUE(lost.error().outcome_unknown);
  EXPECT_EQ(acquire(1).outcome, granted);
  EXPECT_EQ(port_.size("n"), 1U) << "no ghost";
  EXPECT_EQ(port_.entered_count, 1);
}

// Its process learns only later that the entry exists, when the entry is the first.
TEST_F(contender_family, an_entry_of_another_kind_with_a_lost_reply_never_holds_beside_others) {
  const auto as = [&](holdfast::store::kind kind, std::uint64_t owner) {
    auto c = command(permits_verb::acquire, owner);
    c.kind = kind;
    c.capacity = 3;
    return c;
  };
  using holdfast::store::kind;
  ASSERT_EQ(family_->permits("n", as(kind::semaphore, 1))->outcome, granted);
  port_.lose_reply = true;
  ASSERT_FALSE(family_->permits("n", as(kind::shared_mutex, 2)));
  EXPECT_EQ(family_->permits("n", as(kind::semaphore, 3))->outcome, queued);
  EXPECT_EQ(release(1).outcome, done);
  EXPECT_EQ(family_->permits("n", as(kind::shared_mutex, 2))->outcome, granted);
  EXPECT_EQ(family_->permits("n", as(kind::semaphore, 3))->outcome, queued);
  EXPECT_EQ(release(2).outcome, done);
  EXPECT_TRUE(told(3));
  EXPECT_EQ(family_->permits("n", as(kind::semaphore, 3))->outcome, granted);
}

// The entry may still be there for a while, but nothing keeps it, and the store's present session
// does not count for it.
TEST_F(contender_family, an_entry_of_an_ended_session_is_not_held) {
  ASSERT_EQ(acquire(1).outcome, granted);
  port_.session = 2;
  EXPECT_FALSE(family_->standing_of("n", {0, 1}));
  EXPECT_EQ(renew(1).outcome, absent);
  EXPECT_EQ(port_.size("n"), 0U) << "nothing is left of it";
  EXPECT_EQ(acquire(1).outcome, granted);
  EXPECT_EQ(port_.entered_count, 2);
}

TEST_F(contender_family, a_waiter_of_a_session_that_has_ended_enters_anew) {
  port_.put("n", stranger(1));
  EXPECT_EQ(acquire(1).outcome, queued);
  port_.session = 2;
  port_.remove_all("n", {9, 1});
  EXPECT_EQ(acquire(1).outcome, granted);
  EXPECT_EQ(port_.entered_count, 2);
}

TEST_F(contender_family, an_entry_found_again_is_judged_by_the_session_that_created_it) {
  port_.lose_reply = true;
  ASSERT_FALSE(family_->permits("n", command(permits_verb::acquire, 1)));
  port_.session = 2;
  EXPECT_EQ(acquire(1).outcome, granted);
  EXPECT_EQ(port_.entered_count, 2);
}

TEST_F(contender_family, a_transaction_may_compare_the_entry_of_a_holder_and_no_other) {
  EXPECT_EQ(family_->standing_of("n", {0, 1}).error().code, errc::lost);
  const auto fence = acquire(1).fence;
  const auto there = family_->standing_of("n", {0, 1}).value();
  EXPECT_EQ(there.created, fence);
  EXPECT_EQ(there.key, "n/" + std::to_string(fence));
  EXPECT_EQ(acquire(2).outcome, queued);
  EXPECT_EQ(family_->standing_of("n", {0, 2}).error().code, errc::lost) << "it only waits";
}

TEST_F(contender_family, a_failed_try_leaves_no_entry) {
  port_.put("n", stranger(1));
  EXPECT_EQ(acquire(1, false).outcome, busy);
  EXPECT_EQ(port_.size("n"), 1U);
}

TEST_F(contender_family, a_try_that_cannot_remove_its_entry_removes_it_later) {
  port_.put("n", stranger(1));
  port_.fail_leaves = 1;
  EXPECT_EQ(acquire(1, false).outcome, busy);
  harness::eventually("it has left", [&] {
    clock_.advance(100ms);
    return port_.size("n") == 1;
  });
}

TEST_F(contender_family, a_removed_entry_is_not_held) {
  EXPECT_EQ(acquire(1).outcome, granted);
  port_.remove_all("n", {0, 1});
  EXPECT_EQ(renew(1).outcome, absent);
  EXPECT_EQ(release(1).outcome, absent);
}

TEST_F(contender_family, a_hold_ends_with_the_guaranteed_time_of_its_session) {
  port_.safe_for = 10s;
  const auto reply = acquire(1);
  EXPECT_EQ(reply.expires_at - reply.now_at, 10 * second) << "and not the 30 that were asked for";
}

TEST_F(contender_family, a_waiter_that_stops_polling_is_removed) {
  port_.put("n", stranger(1));
  EXPECT_EQ(acquire(1).outcome, queued);
  clock_.advance(5s);
  harness::eventually("its place is given up", [&] { return port_.size("n") == 1; });
}

// A release of a lock that is over finds it given up, not about to be given up.
TEST_F(contender_family, a_lock_held_too_long_is_free_when_its_release_returns) {
  EXPECT_EQ(acquire(1).outcome, granted);
  port_.fail_leaves = 1;
  clock_.advance(31s);
  harness::eventually("it could not be given up", [&] { return port_.left == 1; });
  EXPECT_EQ(release(1).outcome, absent);
  EXPECT_EQ(port_.size("n"), 0U);
}

TEST_F(contender_family, a_failed_release_of_a_lock_held_too_long_reports_it) {
  EXPECT_EQ(acquire(1).outcome, granted);
  port_.fail_leaves = 2;
  clock_.advance(31s);
  harness::eventually("it could not be given up", [&] { return port_.left == 1; });
  EXPECT_FALSE(family_->permits("n", command(permits_verb::release, 1)));
  EXPECT_EQ(release(1).outcome, absent);
  EXPECT_EQ(port_.size("n"), 0U);
}

// An entry that could not be given up yet is given up before the owner enters again, and not after.
TEST_F(contender_family, a_late_removal_never_removes_a_newer_entry_of_the_owner) {
  port_.lose_reply = true;
  ASSERT_FALSE(family_->permits("n", command(permits_verb::acquire, 1)));
  port_.fail_leaves = 1;
  clock_.advance(5s);
  harness::eventually("it could not be given up", [&] { return port_.left == 1; });
  EXPECT_EQ(acquire(1).outcome, granted);
  EXPECT_EQ(port_.size("n"), 1U);
  port_.put("other", stranger(1));
  EXPECT_EQ(family_->permits("other", command(permits_verb::acquire, 2)).value().outcome, queued);
  clock_.advance(5s);
  harness::eventually("the thread has gone on", [&] { return port_.size("other") == 1; });
  EXPECT_EQ(port_.size("n"), 1U);
  EXPECT_EQ(renew(1).outcome, granted);
}

TEST_F(contender_family, a_late_removal_never_removes_a_newer_entry_at_a_latch) {
  auto c = wait_of(1);
  port_.lose_reply = true;
  ASSERT_FALSE(family_->countdown("l", c));
  port_.fail_leaves = 1;
  clock_.advance(5s);
  harness::eventually("it could not be given up", [&] { return port_.left == 1; });
  c.queue_lease_us = 60 * second;
  EXPECT_EQ(family_->countdown("l", c).value().outcome, countdown_outcome::closed);
  EXPECT_EQ(port_.size("l"), 1U) << "the one before is gone";
  port_.put("other", stranger(1));
  EXPECT_EQ(family_->permits("other", command(permits_verb::acquire, 2)).value().outcome, queued);
  clock_.advance(5s);
  harness::eventually("the thread has gone on", [&] { return port_.size("other") == 1; });
  EXPECT_EQ(port_.size("l"), 1U) << "it still waits";
}

// Without an answer, it may also be carried out when the owner waits again.
TEST_F(contender_family, a_pending_removal_never_removes_a_newer_entry_at_a_latch) {
  const auto waits = [&] { return family_->countdown("l", wait_of(1)).value().outcome; };
  EXPECT_EQ(waits(), countdown_outcome::closed);
  port_.delay_leave = true;
  auto gives_up = wait_of(1);
  gives_up.verb = countdown_verb::leave;
  ASSERT_TRUE(family_->countdown("l", gives_up));
  harness::eventually("it has left", [&] { return port_.size("l") == 0; });
  EXPECT_EQ(waits(), countdown_outcome::closed);
  port_.deliver_late();
  EXPECT_EQ(port_.size("l"), 1U) << "it waits again";
}

TEST_F(contender_family, a_waiter_at_a_latch_of_a_session_that_has_ended_enters_anew) {
  const auto waits = [&] { return family_->countdown("l", wait_of(1)).value().outcome; };
  EXPECT_EQ(waits(), countdown_outcome::closed);
  port_.session = 2;
  port_.remove_all("l", {0, 1});
  EXPECT_EQ(waits(), countdown_outcome::closed);
  EXPECT_EQ(port_.size("l"), 1U) << "others see it wait";
}

TEST_F(contender_family, a_waiter_at_a_latch_whose_creation_was_not_carried_out_enters_anew) {
  port_.lose_reply = true;
  ASSERT_FALSE(family_->countdown("l", wait_of(1)));
  port_.remove_all("l", {0, 1});
  EXPECT_EQ(family_->countdown("l", wait_of(1)).value().outcome, countdown_outcome::closed);
  EXPECT_EQ(port_.size("l"), 1U) << "others see it wait";
}

// The program may be suspended between the store's answer and its own next step.
TEST_F(contender_family, a_hold_that_is_over_when_the_renewal_is_answered_is_not_renewed) {
  ASSERT_EQ(acquire(1).outcome, granted);
  port_.on_confirm = [&] {
    clock_.advance(31s);
    harness::eventually("it is given up", [&] { return port_.size("n") == 0; });
  };
  EXPECT_EQ(renew(1).outcome, absent);
}

// One owner id may hold several names: multi_lock.
TEST_F(contender_family, a_hold_of_one_name_does_not_count_for_another_name) {
  port_.put("taken", stranger(1));
  const auto ask = [&](const char* name, permits_verb verb) {
    return family_->permits(name, command(verb, 1, false)).value();
  };
  const auto one = ask("n", permits_verb::acquire);
  EXPECT_EQ(one.outcome, granted);
  EXPECT_EQ(ask("taken", permits_verb::acquire).outcome, busy);
  EXPECT_EQ(ask("taken", permits_verb::renew).outcome, absent);
  const auto two = ask("free", permits_verb::acquire);
  EXPECT_EQ(two.outcome, granted);
  EXPECT_NE(two.fence, one.fence);
  EXPECT_EQ(ask("n", permits_verb::renew).fence, one.fence);
  EXPECT_EQ(ask("free", permits_verb::renew).fence, two.fence);
  EXPECT_EQ(ask("n", permits_verb::release).outcome, done);
  EXPECT_EQ(ask("free", permits_verb::renew).outcome, granted) << "it was not given back";
  EXPECT_EQ(ask("free", permits_verb::release).outcome, done);
  EXPECT_EQ(port_.size("n") + port_.size("free"), 0U);
  EXPECT_EQ(port_.size("taken"), 1U);
}

// The request was repeated over another server, and the first copy is still on its way.
TEST_F(contender_family, a_pending_request_never_enters_after_its_release) {
  port_.repeat_requests = true;
  EXPECT_EQ(acquire(1).outcome, granted);
  EXPECT_EQ(release(1).outcome, done);
  port_.deliver_late();
  EXPECT_EQ(port_.size("n"), 0U);
}

TEST_F(contender_family, a_pending_request_never_enters_after_its_wait_ended) {
  port_.put("n", stranger(1));
  port_.repeat_requests = true;
  EXPECT_EQ(acquire(1, false).outcome, busy);
  EXPECT_EQ(acquire(2).outcome, queued);
  EXPECT_EQ(release(2).outcome, done);
  port_.deliver_late();
  EXPECT_EQ(port_.size("n"), 1U) << "the other one";
}

TEST_F(contender_family, an_unanswered_attempt_never_enters_after_its_release) {
  port_.repeat_requests = true;
  port_.lose_reply = true;
  ASSERT_FALSE(family_->permits("n", command(permits_verb::acquire, 1)));
  port_.remove_all("n", {0, 1});  // the entry that came in; it has gone again
  EXPECT_EQ(release(1).outcome, absent);
  port_.deliver_late();
  EXPECT_EQ(port_.size("n"), 0U);
}

TEST_F(contender_family, a_removed_contender_is_not_restored_by_a_pending_request) {
  port_.repeat_requests = true;
  EXPECT_EQ(acquire(1).outcome, granted);
  port_.remove_all("n", {0, 1});
  const int before = port_.listed;
  EXPECT_EQ(renew(1).outcome, absent);
  harness::eventually("it is settled", [&] { return port_.listed > before; });
  port_.deliver_late();
  EXPECT_EQ(port_.size("n"), 0U);
}

TEST_F(contender_family, a_pending_upgrade_never_enters_after_the_downgrade) {
  const auto resize = [&](std::uint32_t weight) {
    auto c = command(permits_verb::resize, 1);
    c.kind = kind::shared_mutex;
    c.capacity = 100;
    c.weight = weight;
    return family_->permits("n", c).value().outcome;
  };
  auto c = command(permits_verb::acquire, 1);
  c.kind = kind::shared_mutex;
  c.capacity = 100;
  EXPECT_EQ(family_->permits("n", c).value().outcome, granted);
  port_.repeat_requests = true;
  EXPECT_EQ(resize(100), granted);
  EXPECT_EQ(port_.size("n"), 2U);
  EXPECT_EQ(resize(1), granted);
  port_.deliver_late();
  EXPECT_EQ(port_.size("n"), 1U);
}

TEST_F(contender_family, an_upgrade_is_refused_while_a_reader_waits_behind_a_writer) {
  const auto ask = [&](permits_verb verb, std::uint64_t owner, std::uint32_t weight) {
    auto c = command(verb, owner);
    c.kind = kind::shared_mutex;
    c.capacity = 100;
    c.weight = weight;
    return family_->permits("n", c).value().outcome;
  };
  EXPECT_EQ(ask(permits_verb::acquire, 1, 1), granted);
  EXPECT_EQ(ask(permits_verb::acquire, 2, 100), queued);
  EXPECT_EQ(ask(permits_verb::acquire, 3, 1), queued);
  EXPECT_EQ(ask(permits_verb::resize, 1, 100), busy);
  EXPECT_EQ(release(2).outcome, done);
  EXPECT_EQ(ask(permits_verb::acquire, 3, 1), granted) << "beside the reader that stayed one";
  EXPECT_EQ(ask(permits_verb::resize, 1, 100), busy);
  EXPECT_EQ(release(3).outcome, done);
  EXPECT_EQ(ask(permits_verb::resize, 1, 100), granted);
  EXPECT_EQ(ask(permits_verb::acquire, 3, 1), queued);
}

TEST_F(contender_family, a_lock_held_too_long_is_released_and_passes_to_the_next) {
  EXPECT_EQ(acquire(1).outcome, granted);
  clock_.advance(31s);
  harness::eventually("its place is given up", [&] { return port_.size("n") == 0; });
  EXPECT_EQ(acquire(2).outcome, granted);
}

// A store keeps each watch until its subject has changed.
TEST_F(contender_family, a_long_wait_for_a_latch_is_one_watch_and_counts_as_a_use) {
  countdown_command c;
  c.verb = countdown_verb::wait;
  c.owner = {0, 1};
  c.count = 1;
  c.keep_us = 60 * second;
  c.queue_lease_us = 4 * second;
  for (int looks = 0; looks < 100; ++looks) {
    EXPECT_EQ(family_->countdown("l", c).value().outcome, countdown_outcome::closed);
    clock_.advance(1s);
  }
  EXPECT_EQ(port_.record_watches, 1);
  EXPECT_GE(port_.record_waits, 10);
  EXPECT_LE(port_.record_reads, port_.record_waits + 1) << "one round trip for each look";
}

TEST_F(contender_family, a_wait_keeps_a_latch_that_is_kept_for_a_short_time) {
  const auto c = wait_of(1, 3);
  (void)family_->countdown("l", c).value();
  for (int looks = 1; looks <= 6; ++looks) {
    const int waits_before = port_.record_waits;
    for (int i = 0; i < 2; ++i) {
      const auto reply = family_->countdown("l", c).value();
      EXPECT_LE(reply.retry_after_us, second);
      clock_.advance(std::chrono::microseconds(reply.retry_after_us));
    }
    EXPECT_GT(port_.record_waits, waits_before) << "in 2 s, of 3";
  }
}

TEST_F(contender_family, an_expired_latch_is_removed_when_names_are_listed) {
  for (const std::int64_t keep : {1, 90}) {
    auto c = arrival({1, 1});
    c.keep_us = keep * second;
    (void)family_->countdown("kept for " + std::to_string(keep), c).value();
  }
  const std::vector<std::string> kept{"kept for 90"};
  port_.now.now_at += 2 * second;
  EXPECT_EQ(family_->names().value(), kept);
  EXPECT_EQ(port_.names().value().size(), 2U) << "the arrival may be repeated";
  port_.now.now_at += 60 * second;
  EXPECT_EQ(family_->names().value(), kept);
  EXPECT_EQ(port_.names().value().size(), 1U) << "its record is removed";
}

TEST_F(contender_family, an_expired_latch_makes_room_for_a_lock_at_once) {
  auto c = arrival({1, 1});
  c.keep_us = second;
  (void)family_->countdown("n", c).value();
  EXPECT_EQ(acquire(1).outcome, kind_mismatch);
  port_.now.now_at += 2 * second;
  EXPECT_EQ(acquire(1).outcome, granted);
}

TEST_F(contender_family, a_latch_on_a_store_without_a_clock_counts_each_arrival_once) {
  countdown_command c;
  c.verb = countdown_verb::arrive;
  c.count = 3'000;
  c.drop = 1;
  c.keep_us = 60 * second;
  for (std::uint64_t i = 1; i <= 1'500; ++i) {
    c.owner = {1, i};
    (void)family_->countdown("l", c).value();
  }
  EXPECT_EQ(family_->countdown("l", c).value().remaining, 1'500U) << "the last one, again";
  const auto found = family_->countdown("l", {}).value().found;
  EXPECT_EQ(found.arrivals.size(), 1'000U) << "it does not grow for ever";
}

// The latch began when the request was carried out, and not when its answer was given up.
TEST_F(contender_family, an_arrival_whose_latch_may_have_ended_is_not_counted_again) {
  for (const auto later : {500ms, 1'500ms}) {
    const bool in_time = later == 500ms;
    const std::string name = in_time ? "in time" : "late";
    auto c = arrival({1, 1});
    c.keep_us = 3 * second;
    port_.lose_replaced = true;
    port_.on_lost = [&] { clock_.advance(2s); };
    ASSERT_FALSE(family_->countdown(name, c));
    port_.end_record(name);
    clock_.advance(later);
    const auto again = family_->countdown(name, c);
    EXPECT_EQ(again.ok(), in_time);
    EXPECT_TRUE(again || again.error().outcome_unknown);
  }
}

// The arrival may have been written just before the latch ended.
TEST_F(contender_family, an_arrival_at_a_vanished_latch_is_not_counted_again) {
  (void)family_->countdown("l", arrival({1, 1})).value();
  port_.lose_replaced = true;
  ASSERT_FALSE(family_->countdown("l", arrival({1, 2})));
  port_.end_record("l");
  const auto again = family_->countdown("l", arrival({1, 2}));
  ASSERT_FALSE(again);
  EXPECT_TRUE(again.error().outcome_unknown);
}

// On a store whose clock says until when it may be repeated.
TEST_F(contender_family, an_arrival_outlives_its_latch_also_after_a_peek) {
  auto c = arrival({1, 1});
  c.keep_us = 10 * second;
  port_.lose_replaced = true;
  ASSERT_FALSE(family_->countdown("l", c));
  port_.now.now_at += 11 * second;
  EXPECT_EQ(family_->countdown("l", {}).value().remaining, 0U);
  EXPECT_TRUE(family_->names().value().empty());
  clock_.advance(9s);
  EXPECT_TRUE(family_->countdown("l", c).ok());
  EXPECT_EQ(family_->countdown("l", {}).value().found.count, 0U) << "it made no other latch";
}

TEST_F(contender_family, an_arrival_that_may_have_been_forgotten_is_not_counted_again) {
  for (const std::uint64_t others : {0U, 998U, 999U, 1'500U}) {
    const std::string name = "l" + std::to_string(others);
    countdown_command c;
    c.verb = countdown_verb::arrive;
    c.count = 3'000;
    c.drop = 1;
    c.keep_us = 60 * second;
    const auto arrive = [&](std::uint64_t owner) {
      c.owner = {1, owner};
      return family_->countdown(name, c);
    };
    (void)arrive(10'000).value();
    port_.lose_replaced = true;
    ASSERT_FALSE(arrive(10'001));
    for (std::uint64_t i = 1; i <= others; ++i) (void)arrive(i).value();
    auto again = arrive(10'001);
    if (others < 1'000) {
      EXPECT_EQ(std::move(again).value().remaining, 3'000U - 2U - others);
    } else {
      EXPECT_EQ(again.error().code, errc::unavailable);
      EXPECT_TRUE(again.error().outcome_unknown);
      EXPECT_EQ(family_->countdown(name, {}).value().remaining, 3'000U - 2U - others);
    }
  }
}

// The queue's state for an entry that has gone before it could be read is not true any more.
TEST_F(contender_family, a_holder_behind_a_removed_entry_is_shown_as_a_holder) {
  (void)acquire(1);
  (void)acquire(2);
  port_.on_listed = [this] { port_.remove_all("n", {0, 1}); };
  const auto shown = family_->permits("n", {}).value().found;
  ASSERT_EQ(shown.holders.size(), 1U);
  EXPECT_EQ(shown.holders[0].owner, (holdfast::store::owner_id{0, 2}));
  EXPECT_TRUE(shown.queue.empty());
}

}  // namespace
TEST_F(contender_family, a_holder_whose_query_for_waiters_failed_repeats_it) {
  auto keeps = command(permits_verb::acquire, 1);
  keeps.lingers = true;
  port_.tells_line = true;
  port_.fail_lists = 2;
  ASSERT_EQ(family_->permits("n", keeps)->outcome, permits_outcome::granted);
  port_.put("n", stranger(2));
  harness::eventually("it is told", [&] {
    clock_.advance(1s);
    const auto n = family_->inbox().receive(clock_.now());
    return n && n->what == holdfast::store::notification_kind::wanted;
  });
  EXPECT_EQ(port_.fail_lists, 0);
}

// As etcd without a server: the watch ends at once, and so does the query.
TEST_F(contender_family, a_holder_whose_query_for_waiters_failed_pauses_before_the_next) {
  auto keeps = command(permits_verb::acquire, 1);
  keeps.lingers = true;
  port_.tells_line = true;
  port_.fail_lists = port_.cannot_watch = 1'000;
  ASSERT_EQ(family_->permits("n", keeps)->outcome, permits_outcome::granted);
  go_on_for_600_ms();
  EXPECT_EQ(port_.listed, 1);
}

// As with a network that lets queries through, and ends long-lived streams.
TEST_F(contender_family, a_holder_whose_store_cannot_watch_for_waiters_queries_at_growing_pauses) {
  auto keeps = command(permits_verb::acquire, 1);
  keeps.lingers = true;
  port_.tells_line = true;
  port_.cannot_watch = 1'000;
  ASSERT_EQ(family_->permits("n", keeps)->outcome, permits_outcome::granted);
  go_on_for_600_ms();
  EXPECT_LE(port_.listed, 4);
  // The pause counts from the end of a query, so no time may pass before it sleeps.
  const auto await_pause = [&] {
    harness::eventually("it pauses", [&] { return clock_.next_wake() <= clock_.now() + 100ms; });
  };
  for (int pauses = 0; pauses < 20; ++pauses) {
    await_pause();
    const int before = port_.listed;
    clock_.advance(100ms);
    harness::eventually("it looks again", [&] { return port_.listed > before; });
    await_pause();
    EXPECT_EQ(port_.listed, before + 1);
  }
  port_.put("n", stranger(2));
  clock_.advance(100ms);
  harness::eventually("it is told", [&] {
    const auto n = family_->inbox().receive(clock_.now());
    return n && n->what == holdfast::store::notification_kind::wanted;
  });
}

// The watch may end after the failure.
TEST_F(contender_family, a_call_after_a_failure_requests_no_check_before_the_pause_ends) {
  auto keeps = command(permits_verb::acquire, 1);
  keeps.lingers = true;
  port_.tells_line = true;
  port_.calls_late = 1;
  ASSERT_EQ(family_->permits("n", keeps)->outcome, permits_outcome::granted);
  ASSERT_TRUE(port_.late_alarm);
  port_.late_alarm();
  go_on_for_600_ms();
  EXPECT_EQ(port_.listed, 1);
  clock_.advance(1s);
  harness::eventually("it looks again", [&] { return port_.listed == 2; });
}

TEST_F(contender_family, a_waiter_whose_store_cannot_watch_is_called_ever_more_rarely) {
  port_.put("n", stranger(1));
  port_.cannot_watch_one = 1'000;
  ASSERT_EQ(acquire(2).outcome, permits_outcome::queued);
  expect_ever_rarer_calls(2, [&] { return acquire(2).outcome == permits_outcome::queued; });
  port_.remove_all("n", stranger(1).owner);
  clock_.advance(100ms);
  harness::eventually("it is called", [&] { return told(2); });
  EXPECT_EQ(acquire(2).outcome, permits_outcome::granted);
}

TEST_F(contender_family, a_waiter_whose_last_poll_is_long_ago_is_notified_at_once) {
  port_.put("n", stranger(1));
  port_.cannot_watch_one = 7;
  ASSERT_EQ(acquire(2).outcome, permits_outcome::queued);
  while (port_.watched("n") == 0) {
    clock_.advance(100ms);
    harness::eventually("it is called", [&] { return told(2); });
    ASSERT_EQ(acquire(2).outcome, permits_outcome::queued);
  }
  clock_.advance(100ms);
  port_.remove_all("n", stranger(1).owner);
  EXPECT_TRUE(told(2));
}

TEST_F(contender_family, a_waiter_is_called_at_once_after_many_reconnections_in_a_long_wait) {
  port_.put("n", stranger(1));
  ASSERT_EQ(acquire(2).outcome, permits_outcome::queued);
  for (int connections = 0; connections < 10; ++connections) {
    clock_.advance(1s);
    port_.end_watches("n");
    ASSERT_TRUE(told(2));
    ASSERT_EQ(acquire(2).outcome, permits_outcome::queued);
  }
  clock_.advance(5ms);
  port_.remove_all("n", stranger(1).owner);
  EXPECT_TRUE(told(2));
}

TEST_F(contender_family, a_holder_learns_of_an_arrival_at_once_after_many_reconnections) {
  auto keeps = command(permits_verb::acquire, 1);
  keeps.lingers = true;
  port_.tells_line = true;
  port_.keeps_arrival_alarm = true;
  ASSERT_EQ(family_->permits("n", keeps)->outcome, permits_outcome::granted);
  for (int connections = 0; connections < 10; ++connections) {
    clock_.advance(1s);
    const int before = port_.listed;
    std::exchange(port_.late_alarm, {})();
    harness::eventually("it looks again", [&] { return port_.listed > before; });
    harness::until_threads_rest();
  }
  clock_.advance(5ms);
  port_.put("n", stranger(2));
  std::exchange(port_.late_alarm, {})();
  harness::eventually("it is told", [&] {
    const auto n = family_->inbox().receive(clock_.now());
    return n && n->what == holdfast::store::notification_kind::wanted;
  });
}

TEST_F(contender_family, a_waiter_of_a_latch_whose_store_cannot_watch_is_called_ever_more_rarely) {
  const auto wait = [&] {
    const auto reply = family_->countdown("l", wait_of(2));
    return reply && reply->outcome == holdfast::store::countdown_outcome::closed;
  };
  port_.cannot_watch_one = 1'000;
  ASSERT_TRUE(wait());
  expect_ever_rarer_calls(2, wait);
}

}  // namespace kernel_test
