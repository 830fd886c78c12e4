#include "kernel/state_family_fixture.hpp"

#include <utility>

#include "family/record_codec.hpp"

namespace kernel_test {
namespace {

using namespace holdfast::store;
using holdfast::errc;
using enum permits_outcome;

TEST_F(state_family, a_grant_notifies_its_waiter_with_the_name) {
  acquire(1);
  acquire(2);
  release(1);
  ASSERT_EQ(port_.told.size(), 1u);
  EXPECT_EQ(port_.told[0].name, "n");
  EXPECT_EQ(port_.told[0].peer, "p2");
  EXPECT_EQ(port_.told[0].owner.low, 2u);
  EXPECT_GT(port_.told[0].fence, 0u);
}

// A store can then answer the question without the lock that its writers need.
TEST_F(state_family, a_query_is_marked_as_read_only) {
  const auto asked_by = [&](const auto& what) {
    const int before = port_.only_asked;
    what();
    return port_.only_asked - before;
  };
  auto arrival = command(permits_verb::acquire, 1), question = command(permits_verb::renew, 1);
  arrival.kind = kind::barrier;
  arrival.capacity = 2;
  auto renewal = question;
  renewal.wait = false;
  EXPECT_EQ(asked_by([&] { (void)family_->permits("n", arrival); }), 0);
  EXPECT_EQ(asked_by([&] { (void)family_->permits("n", renewal); }), 0);
  EXPECT_EQ(asked_by([&] { release(1); }), 0);
  EXPECT_EQ(asked_by([&] { (void)family_->permits("n", question); }), 1);
  EXPECT_EQ(asked_by([&] { (void)record(); }), 1);
  EXPECT_EQ(asked_by([&] { (void)family_->buckets("n"); }), 1);
  EXPECT_EQ(asked_by([&] { (void)wait_at_latch("l"); }), 0);
  EXPECT_EQ(asked_by([&] { (void)family_->countdown("l", {}); }), 1);
  const named_command questions[] = {{"n", question}, {"n", question}, {"o", question}};
  EXPECT_EQ(asked_by([&] { (void)family_->execute_batch(questions); }), 2) << "one for each name";
  const named_command mixed[] = {{"n", question}, {"n", renewal}};
  EXPECT_EQ(asked_by([&] { (void)family_->execute_batch(mixed); }), 0);
}

TEST_F(state_family, a_grant_to_a_dead_session_passes_on_in_the_same_call) {
  acquire(1);
  acquire(2);
  acquire(3);
  acquire(4);
  port_.dead = {"p2", "p3"};
  release(1);
  EXPECT_EQ(port_.told.back().owner.low, 4u);
  ASSERT_EQ(record().holders.size(), 1u);
  EXPECT_EQ(record().holders[0].owner.low, 4u);
}

TEST_F(state_family, a_dead_holder_is_removed_when_the_first_waiter_polls) {
  acquire(1);
  EXPECT_EQ(acquire(2).outcome, queued);
  port_.dead = {"p1"};
  EXPECT_EQ(acquire(2).outcome, granted);
}

TEST_F(state_family, a_fence_never_decreases_over_a_latch_or_limiter_of_its_name) {
  const bucket_choice one_a_second{"", {second, 1, 1, second}};
  rate_command take{.verb = rate_verb::take, .buckets = {&one_a_second, 1}};
  for (const std::string_view meanwhile : {"a limiter", "a latch", "a latch that was removed"}) {
    const auto before = acquire(1).fence;
    release(1);
    pass(second);
    if (meanwhile == "a limiter") {
      EXPECT_EQ(family_->rate("n", take).value().outcome, rate_outcome::granted);
    } else {
      EXPECT_EQ(wait_at_latch("n").value().outcome, countdown_outcome::closed);
    }
    EXPECT_EQ(acquire(2).outcome, kind_mismatch) << meanwhile;
    if (meanwhile == "a latch that was removed") {
      ASSERT_TRUE(family_->countdown("n", {.verb = countdown_verb::remove}));
      EXPECT_TRUE(family_->names().value().empty());
    }
    port_.now.now_at += 600 * second;
    port_.now.wall_at -= 600 * second;  // a clock that is set back
    const auto after = acquire(3);
    ASSERT_EQ(after.outcome, granted) << meanwhile;
    EXPECT_GT(after.fence, before) << meanwhile;
    release(3);
  }
}

TEST_F(state_family, without_the_capability_no_session_is_believed_to_be_dead) {
  port_.capabilities.sees_death = false;
  acquire(1);
  port_.dead = {"p1"};
  EXPECT_EQ(acquire(2).outcome, queued);
}

TEST_F(state_family, a_waiter_without_notifications_keeps_its_turn_until_its_next_poll) {
  port_.capabilities.sees_death = false;
  port_.capabilities.notifications = false;
  acquire(1);
  acquire(2);
  acquire(3);
  release(1);
  pass(2 * second);  // every waiter polls at least every second and a half
  EXPECT_EQ(acquire(3).outcome, queued);
  EXPECT_EQ(acquire(2).outcome, granted);
}

TEST_F(state_family, a_waiter_without_notifications_polls_more_often_near_its_turn) {
  port_.capabilities.notifications = false;
  port_.now = {port_.now.wall_at, port_.now.wall_at};  // as an SQL server counts
  acquire(1);
  pass(1);
  EXPECT_EQ(acquire(2).retry_after_us, second / 200) << "it has just been taken";
  EXPECT_EQ(acquire(3).retry_after_us, second / 100);
  pass(second / 100);
  EXPECT_EQ(acquire(2).retry_after_us, second / 100 + 1) << "as long as it has been held";
  EXPECT_EQ(acquire(3).retry_after_us, second / 50 + 2);
  port_.now.now_at -= second;
  EXPECT_EQ(acquire(2).retry_after_us, second / 20) << "a clock that was set back says nothing";
  pass(2 * second);
  EXPECT_EQ(acquire(2).retry_after_us, second / 20);
  EXPECT_EQ(acquire(3).retry_after_us, second / 10);
  std::int64_t last = 0;
  for (std::uint64_t owner = 4; owner < 50; ++owner) last = acquire(owner).retry_after_us;
  EXPECT_EQ(last, second * 3 / 2);
  auto c = command(permits_verb::acquire, 50);
  c.lease_us = second;
  EXPECT_EQ(family_->permits("n", c)->retry_after_us, second / 2) << "its grant lasts no longer";
  port_.capabilities.notifications = true;
  EXPECT_GT(acquire(2).retry_after_us, second / 10);
}

TEST_F(state_family, a_try_sees_a_dead_holder_as_well) {
  acquire(1);
  port_.dead = {"p1"};
  auto c = command(permits_verb::acquire, 2);
  c.wait = false;
  EXPECT_EQ(family_->permits("n", c).value().outcome, granted);
}

TEST_F(state_family, a_waiter_that_dies_takes_nothing_along) {
  acquire(1);
  acquire(2);
  acquire(3);
  port_.dead = {"p2"};
  EXPECT_EQ(acquire(3).position, 1u);
}

TEST_F(state_family, a_peek_and_a_mismatch_write_nothing) {
  acquire(1);
  const int writes = port_.writes;
  (void)record();
  auto c = command(permits_verb::acquire, 2);
  c.kind = kind::semaphore;
  EXPECT_EQ(family_->permits("n", c).value().outcome, kind_mismatch);
  EXPECT_EQ(wait_at_latch("n").value().outcome, countdown_outcome::kind_mismatch);
  EXPECT_EQ(release(4).outcome, absent);
  EXPECT_EQ(port_.writes, writes);
}

TEST_F(state_family, a_latch_on_the_name_of_a_mutex_in_use_is_a_mismatch_and_the_other_way_round) {
  acquire(1);
  const auto at_mutex = wait_at_latch("n").value();
  EXPECT_EQ(at_mutex.outcome, countdown_outcome::kind_mismatch);
  EXPECT_EQ(at_mutex.found_kind, kind::mutex);
  (void)wait_at_latch("l");
  const auto at_latch = acquire(1, "l");
  EXPECT_EQ(at_latch.outcome, kind_mismatch);
  EXPECT_EQ(at_latch.found.kind, kind::latch);
}

TEST_F(state_family, a_limiter_keeps_its_name_until_all_its_buckets_are_full) {
  const std::vector<bucket_choice> bucket{{"a", {1, 1, 1'000'000, 1}}};
  const rate_command take{rate_verb::take, {}, 1, 0, 0, bucket};
  EXPECT_EQ(family_->rate("n", take).value().outcome, rate_outcome::granted);
  EXPECT_EQ(acquire(1, "n").outcome, kind_mismatch);
  EXPECT_EQ(acquire(1, "n").found.kind, kind::rate_limiter);
  EXPECT_EQ(wait_at_latch("n").value().found_kind, kind::rate_limiter);
  port_.now.now_at += 1'000'000;
  EXPECT_EQ(acquire(1, "n").outcome, granted);
  EXPECT_EQ(family_->rate("n", take).value().found_kind, kind::mutex);
}

TEST_F(state_family, a_limiter_keeps_no_more_buckets_than_can_be_read_each_time) {
  const bucket_rule slow{1, 1, 1'000'000'000, 2};
  rate_record full;
  for (int i = 0; i < 10'000; ++i) {
    full.buckets.push_back({std::to_string(i), 0, slow, 1, port_.now.now_at});
  }
  holdfast::family::encode(full, port_.records["n"]);
  const std::vector<bucket_choice> known{{"7", slow}};
  const std::vector<bucket_choice> other{{"new", slow}};
  const auto before = port_.records;
  const auto refused = family_->rate("n", {rate_verb::take, {}, 1, 0, 0, other});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, errc::overloaded);
  EXPECT_EQ(port_.records, before);
  EXPECT_TRUE(family_->rate("n", {rate_verb::take, {}, 1, 0, 0, known}).ok());
}

TEST_F(state_family,
       a_name_that_a_crashed_holder_left_may_become_a_latch_when_its_lease_has_ended) {
  acquire(1);
  port_.now.now_at += 31 * second;
  EXPECT_EQ(wait_at_latch("n").value().outcome, countdown_outcome::closed);
}

TEST_F(state_family, a_latch_unused_for_its_time_may_become_a_mutex) {
  (void)wait_at_latch("n");
  port_.now.now_at += 61 * second;
  EXPECT_EQ(acquire(1).outcome, granted);
}

TEST_F(state_family, an_arrival_that_is_repeated_after_the_end_of_its_latch_makes_no_other) {
  auto c = arrival({2, 2});
  (void)family_->countdown("l", c).value();
  pass(10 * second);
  (void)family_->countdown("l", c).value();
  EXPECT_TRUE(family_->names().value().empty());
  c.owner = {2, 3};
  EXPECT_EQ(family_->countdown("l", c).value().remaining, 1u);
}

TEST_F(state_family, waiters_at_a_latch_are_notified_when_it_opens) {
  (void)wait_at_latch("l");
  countdown_command c;
  c.verb = countdown_verb::arrive;
  c.owner = {2, 2};
  c.count = c.drop = 2;
  c.keep_us = second;
  EXPECT_EQ(family_->countdown("l", c).value().outcome, countdown_outcome::open);
  ASSERT_EQ(port_.told.size(), 1u);
  EXPECT_EQ(port_.told[0].what, notification_kind::opened);
  EXPECT_EQ(port_.told[0].name, "l");
}

TEST_F(state_family, foreign_newer_and_damaged_records_are_named_and_left_alone) {
  const std::pair<std::string, errc> cases[] = {{"hello", errc::foreign_data},
                                                {"[2,\"mutex\"]", errc::newer_format},
                                                {"[1,\"mutex\",1", errc::corrupt}};
  for (const auto& [text, reason] : cases) {
    port_.records["n"] = text;
    const auto permits = family_->permits("n", command(permits_verb::acquire, 1));
    ASSERT_FALSE(permits.ok());
    EXPECT_EQ(permits.error().code, reason);
    const auto countdown = wait_at_latch("n");
    ASSERT_FALSE(countdown.ok());
    EXPECT_EQ(countdown.error().code, reason);
    EXPECT_EQ(port_.records["n"], text);
  }
}

TEST_F(state_family, a_failure_of_the_store_is_returned_and_no_waiter_is_notified) {
  acquire(1);
  acquire(2);
  port_.fails = holdfast::failure{errc::unavailable, "gone fishing", true};
  const auto r = family_->permits("n", command(permits_verb::release, 1));
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().what, "gone fishing");
  EXPECT_TRUE(r.error().outcome_unknown);
  EXPECT_TRUE(port_.told.empty());
}

TEST_F(state_family, a_batch_of_renewals_is_answered_in_order_one_failure_beside_the_others) {
  acquire(1, "a");
  acquire(2, "b");
  port_.records["c"] = "hello";
  const std::vector<named_command> batch{{"b", command(permits_verb::renew, 2)},
                                         {"c", command(permits_verb::renew, 3)},
                                         {"a", command(permits_verb::renew, 1)},
                                         {"a", command(permits_verb::renew, 4)}};
  const auto replies = family_->execute_batch(batch);
  ASSERT_EQ(replies.size(), 4u);
  EXPECT_EQ(replies[0]->outcome, granted);
  EXPECT_EQ(replies[1].error().code, errc::foreign_data);
  EXPECT_EQ(replies[2]->outcome, granted);
  EXPECT_EQ(replies[3]->outcome, absent);
}

TEST_F(state_family, commands_of_a_batch_about_one_name_are_one_write_and_answered_one_by_one) {
  acquire(1);
  acquire(2, "other");
  std::vector<named_command> batch;
  for (unsigned owner = 2; owner <= 50; ++owner) {
    auto c = command(permits_verb::acquire, owner);
    c.wait = true;
    batch.push_back({"n", c});
    if (owner == 20) batch.push_back({"other", command(permits_verb::renew, 2)});
    if (owner == 30) batch.push_back({"n", command(permits_verb::release, 1)});
  }
  batch.push_back({"n", command(permits_verb::release, 77)});  // changes nothing
  const auto one_by_one = port_.records;
  port_.writes = 0;
  const auto together = family_->execute_batch(batch);
  EXPECT_EQ(port_.writes, 2);
  const auto records = std::exchange(port_.records, one_by_one);
  const auto told = std::exchange(port_.told, {});
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto alone = family_->permits(batch[i].name, batch[i].command);
    ASSERT_TRUE(alone.ok() && together[i].ok()) << i;
    EXPECT_EQ(together[i]->outcome, alone->outcome) << i;
    EXPECT_EQ(together[i]->position, alone->position) << i;
    EXPECT_EQ(together[i]->fence, alone->fence) << i;
  }
  EXPECT_EQ(records, port_.records);
  EXPECT_EQ(told.size(), port_.told.size());
}

// Entries that had expired when a command was refused, or at a query, may be written by the next
// command.
TEST_F(state_family, a_command_of_a_batch_that_changes_nothing_hides_no_notification) {
  const auto at_condition = [&](permits_verb verb, std::uint64_t owner) {
    auto c = command(verb, owner);
    c.kind = kind::condition_variable;
    c.capacity = 1U << 30;
    c.queue_lease_us = 60 * second;
    return c;
  };
  const auto of_a_mutex = command(permits_verb::acquire, 4);
  const auto look = at_condition(permits_verb::inspect, 4);
  for (const auto& first : {of_a_mutex, look}) {
    port_.records.clear();
    for (const std::uint64_t owner : {1U, 2U}) {
      ASSERT_EQ(family_->permits("n", at_condition(permits_verb::acquire, owner))->outcome, queued);
    }
    ASSERT_TRUE(family_->permits("n", at_condition(permits_verb::notify, 3)));
    port_.told.clear();
    pass(5 * second);  // the first one did not wake up, so it is the turn of the second
    const std::vector<named_command> batch{{"n", first},
                                           {"n", at_condition(permits_verb::acquire, 5)}};
    ASSERT_EQ(family_->execute_batch(batch).size(), 2U);
    ASSERT_EQ(port_.told.size(), 1U);
    EXPECT_EQ(port_.told.front().owner, (owner_id{0, 2}));
  }
}

TEST_F(state_family, a_batch_looks_each_session_up_once) {
  std::vector<named_command> batch;
  for (const std::string_view name : {"a", "b", "c", "d"}) {
    acquire(1, name);
    acquire(2, name);
    batch.push_back({name, {.verb = permits_verb::inspect}});
  }
  port_.dead = {"p2"};
  port_.looked_up = 0;
  for (auto& reply : family_->execute_batch(batch))
    EXPECT_EQ(std::move(reply).value().blockers, std::vector<std::string>{"p2"});
  EXPECT_EQ(port_.looked_up, 2);
}

TEST_F(state_family, a_batch_about_a_name_of_another_kind_is_refused_command_by_command) {
  (void)wait_at_latch("b");
  const std::vector<named_command> batch{{"b", command(permits_verb::acquire, 1)},
                                         {"b", command(permits_verb::release, 2)}};
  const auto replies = family_->execute_batch(batch);
  EXPECT_EQ(replies[0]->outcome, permits_outcome::kind_mismatch);
  EXPECT_EQ(replies[1]->outcome, absent);
}

TEST_F(state_family, names_lists_used_names_and_no_others) {
  acquire(1, "a");
  (void)wait_at_latch("b");
  acquire(2, "left");
  (void)family_->permits("left", command(permits_verb::release, 2));
  EXPECT_EQ(family_->names().value(), (std::vector<std::string>{"a", "b"}));
}

// A release that was carried out, and whose answer was lost: others have the name already.
TEST_F(state_family, a_release_that_may_have_been_stored_is_no_loss) {
  (void)acquire(2);
  const std::string of_another = port_.records["n"];
  port_.records.clear();
  (void)acquire(1);
  port_.stored_before = of_another;
  EXPECT_EQ(release(1).outcome, permits_outcome::done);
  EXPECT_EQ(release(1).outcome, permits_outcome::absent);
}

TEST_F(state_family, a_possible_eviction_counts_as_done) {
  (void)acquire(2);
  const std::string of_another = port_.records["n"];
  for (const bool is_a_latch_now : {false, true}) {
    port_.records.clear();
    (void)acquire(1);
    const std::string before = port_.records["n"];
    port_.stored_before = of_another;
    if (is_a_latch_now) {
      port_.records.clear();
      ASSERT_TRUE(wait_at_latch("n"));
      port_.stored_before = std::exchange(port_.records["n"], before);
    }
    const auto gone = family_->permits("n", command(permits_verb::evict, 1)).value();
    EXPECT_EQ(gone.outcome, done);
    EXPECT_EQ(gone.position, 1U);
    EXPECT_EQ(family_->permits("n", command(permits_verb::evict, 1))->position, 0U);
  }
}

TEST_F(state_family, an_eviction_at_the_second_attempt_counts_once) {
  (void)acquire(1);
  port_.stored_before = port_.records["n"];
  EXPECT_EQ(family_->permits("n", command(permits_verb::evict, 1))->position, 1U);
}

TEST_F(state_family, a_possible_replacement_of_a_holder_counts_as_done) {
  (void)acquire(2);
  const std::string of_another = port_.records["n"];
  port_.records.clear();
  (void)acquire(1);
  port_.stored_before = of_another;
  auto c = command(permits_verb::acquire, 3);
  c.replaces = {0, 1};
  EXPECT_TRUE(family_->permits("n", c).value().replaced);
}

TEST_F(state_family, fences_grow_over_uses_of_a_name_as_another_kind) {
  const auto first = acquire(1).fence;
  release(1);
  auto c = command(permits_verb::acquire, 2);
  c.kind = kind::semaphore;
  c.capacity = 3;
  EXPECT_GT(family_->permits("n", c).value().fence, first);
}

}  // namespace
}  // namespace kernel_test
