#include "family/shared_watches.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "kernel/contender_family_fixture.hpp"

// A session watches each thing at the store once, and notifies each waiter of its change.
namespace kernel_test {
namespace {

using namespace holdfast::store;
using enum permits_outcome;
using holdfast::family::shared_watches;

struct shared_watch : testing::Test {
  using alarm = shared_watches::alarm;

  std::vector<std::uint64_t> told;
  shared_watches all{[this](std::string_view name, const owner_id& owner, std::string_view what) {
    EXPECT_EQ(name, "n");
    EXPECT_EQ(what, "p");
    told.push_back(owner.low);
  }};
  std::vector<alarm> at_store;

  /// Reads while `meanwhile` happens.
  template <class Meanwhile>
  void read(std::uint64_t owner, bool is_there, Meanwhile meanwhile) {
    const auto ask = [&](alarm call) {
      meanwhile();
      if (call) at_store.push_back(std::move(call));
      return is_there;
    };
    (void)all.read("n", "p", owner_id{0, owner}, ask, [](bool found) { return found; });
  }
  void read(std::uint64_t owner, bool is_there = true) {
    read(owner, is_there, [] {});
  }
  void change() {
    for (const auto& call : std::exchange(at_store, {})) call();
  }
};

using owners = std::vector<std::uint64_t>;

TEST_F(shared_watch, is_one_for_all_waiters_and_notifies_each_once) {
  for (const std::uint64_t owner : {3U, 1U, 2U, 1U}) read(owner);
  EXPECT_EQ(at_store.size(), 1U);
  change();
  EXPECT_EQ(told, (owners{1, 2, 3}));
  EXPECT_EQ(all.size(), 0U);
  read(1);
  EXPECT_EQ(at_store.size(), 1U) << "of the next change";
}

TEST_F(shared_watch, does_not_notify_waiters_that_left) {
  for (std::uint64_t owner = 0; owner < 1'000; ++owner) {
    read(owner);
    all.forget("n", "p", {0, owner});
  }
  EXPECT_EQ(at_store.size(), 1U);
  read(7);
  change();
  EXPECT_EQ(told, owners{7});
}

// The read value may be from before a change that the watch came too late to see.
TEST_F(shared_watch, makes_waiters_poll_that_joined_before_it_began) {
  read(1, true, [&] { read(2); });
  EXPECT_EQ(told, owners{2});
  change();
  EXPECT_EQ(told, (owners{2, 1}));
}

TEST_F(shared_watch, makes_waiters_poll_that_joined_a_watch_that_never_began) {
  read(1, false, [&] { read(2); });
  EXPECT_EQ(told, owners{2});
  EXPECT_EQ(all.size(), 0U);
}

TEST_F(shared_watch, that_could_not_be_set_is_set_by_the_next_waiter) {
  EXPECT_THROW(read(1, true, [] { throw std::runtime_error("no memory"); }), std::runtime_error);
  EXPECT_EQ(all.size(), 0U);
  read(2);
  change();
  EXPECT_EQ(told, owners{2});
}

TEST_F(shared_watch, does_not_tell_a_waiter_whose_read_failed) {
  read(1);
  read(2, false);
  change();
  EXPECT_EQ(told, owners{1});
}

// The read that began the watch ends when the next watch has been requested: it says nothing about
// the next one.
TEST_F(shared_watch, that_fires_before_its_read_ends_is_replaced) {
  const auto ask = [&](alarm call) {
    call();
    read(2);
    return false;
  };
  (void)all.read("n", "p", owner_id{0, 1}, ask, [](bool found) { return found; });
  EXPECT_EQ(told, owners{1});
  EXPECT_EQ(all.size(), 1U);
  change();
  EXPECT_EQ(told, (owners{1, 2}));
}

class watches_of_a_line : public contender_family {};

TEST_F(watches_of_a_line, grow_with_the_watched_entries_and_not_with_past_waiters) {
  port_.put("n", stranger(1));
  for (std::uint64_t owner = 1; owner <= 1'000; ++owner) {
    ASSERT_EQ(acquire(owner).outcome, queued);
    ASSERT_EQ(release(owner).outcome, done);
  }
  EXPECT_EQ(port_.watched("n"), 1U);
  EXPECT_EQ(acquire(2'000).outcome, queued);
  port_.remove_all("n", {9, 1});
  EXPECT_TRUE(told(2'000));
  EXPECT_FALSE(told(2'000)) << "and nobody else";
  EXPECT_EQ(acquire(2'000).outcome, granted);
}

TEST_F(watches_of_a_line, tell_all_readers_behind_one_writer) {
  const auto share = [&](std::uint64_t owner, std::uint32_t weight) {
    auto c = command(permits_verb::acquire, owner);
    c.kind = kind::shared_mutex;
    c.capacity = 100;
    c.weight = weight;
    return family_->permits("n", c).value();
  };
  ASSERT_EQ(share(1, 100).outcome, granted);
  for (const std::uint64_t reader : {2U, 3U, 4U}) ASSERT_EQ(share(reader, 1).outcome, queued);
  EXPECT_EQ(port_.watched("n"), 1U);
  ASSERT_EQ(release(1).outcome, done);
  for (const std::uint64_t reader : {2U, 3U, 4U}) EXPECT_TRUE(told(reader));
}

TEST_F(watches_of_a_line, of_a_latch_grow_no_more_than_others) {
  for (std::uint64_t owner = 1; owner <= 100; ++owner) {
    auto c = wait_of(owner);
    ASSERT_EQ(family_->countdown("l", c).value().outcome, countdown_outcome::closed);
    c.verb = countdown_verb::leave;
    (void)family_->countdown("l", c).value();
  }
  EXPECT_EQ(port_.record_watches, 1);
}

TEST_F(watches_of_a_line, of_a_latch_whose_request_failed_are_requested_again) {
  const auto c = wait_of(1);
  port_.fail_watched_records = 1;
  EXPECT_FALSE(family_->countdown("l", c));
  EXPECT_EQ(family_->countdown("l", c).value().outcome, countdown_outcome::closed);
  EXPECT_EQ(port_.record_watches, 2) << "and not believed to be watched";
}

}  // namespace
}  // namespace kernel_test
