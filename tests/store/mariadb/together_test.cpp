#include "fixture.hpp"
#include "harness/several_names.hpp"
#include "session/session_impl.hpp"

// A multi_lock: several rows in one transaction.
namespace mariadb_test {
namespace {

// The server notifies nobody, so a waiter of another session polls.
TEST_F(mariadb_store, a_waiter_of_the_same_session_is_notified_of_its_turn) {
  const auto s = open(), other = open();
  const auto ask = [&](const holdfast::session& by, holdfast::store::permits_verb verb,
                       std::uint64_t owner) {
    holdfast::store::permits_command c{.verb = verb, .owner = {1, owner}, .wait = true};
    const std::string peer = by.impl()->peer();
    c.lease_us = c.queue_lease_us = 60'000'000, c.peer = peer;
    return by.impl()->permits("m", c).value().outcome;
  };
  using enum holdfast::store::permits_verb;
  ask(s, acquire, 1), ask(s, acquire, 2), ask(other, acquire, 3);
  holdfast::engine::dispatcher::registration second(s.impl()->dispatcher(), {1, 2});
  holdfast::engine::dispatcher::registration third(other.impl()->dispatcher(), {1, 3});
  EXPECT_EQ(ask(s, release, 1), holdfast::store::permits_outcome::done);
  const auto told = second.wait(holdfast::boot_clock::now() + std::chrono::seconds(10));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->what, holdfast::store::notification_kind::granted);
  ask(s, release, 2);
  EXPECT_FALSE(third.wait(holdfast::boot_clock::now() + std::chrono::milliseconds(1)));
}

TEST_F(mariadb_store, several_names_are_taken_in_one_transaction_or_not_at_all) {
  harness::take_all_or_none([&] { return open(); });
}

TEST_F(mariadb_store, names_that_overlap_are_taken_by_one_after_the_other) {
  harness::take_overlapping_names([&] { return open(); });
}

}  // namespace
}  // namespace mariadb_test
