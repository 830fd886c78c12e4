#include <holdfast/store/rate.hpp>

#include "family/record_codec.hpp"
#include "kernel/state_family_fixture.hpp"

// Records that are over, and to which no program returns, are removed.
namespace kernel_test {
namespace {

using namespace holdfast::store;
using enum permits_outcome;

class state_sweep : public state_family {
 protected:
  static constexpr std::int64_t a_while = 60 * second;

  /// A session looks at other names when it has made 32 and releases: first at a random place, then
  /// it continues from there.
  void make_names() {
    for (int i = 0; i < 512; ++i) {
      acquire(1, "made" + std::to_string(number_++));
      release(1);
    }
  }
  void arrive(std::string_view name) { (void)family_->countdown(name, arrival({1, 1})).value(); }
  void rate(std::string_view name, rate_verb verb) {
    const bucket_choice one_a_second{"", {second, 1, 1, second}};
    (void)family_
        ->rate(name, {.verb = verb, .owner = {1, 2}, .tokens = 1, .buckets = {&one_a_second, 1}})
        .value();
  }
  bool there(const std::string& name) const { return port_.records.contains(name); }
  /// Only its last fence is left.
  bool is_free(const std::string& name) const {
    return port_.records.at(name).starts_with("[1,\"mutex\",0,");
  }

 private:
  int number_ = 0;
};

TEST_F(state_sweep, records_that_expired_a_while_ago_are_removed_with_new_names) {
  arrive("latch");
  rate("limiter", rate_verb::take);
  acquire(1, "dead");
  pass(3 * a_while);
  make_names();
  EXPECT_FALSE(there("latch"));
  EXPECT_FALSE(there("limiter"));
  EXPECT_TRUE(is_free("dead"));
}

TEST_F(state_sweep, the_fence_of_a_holder_that_died_stays_below_the_next) {
  const auto before = acquire(1, "dead").fence;
  pass(3 * a_while);
  make_names();
  ASSERT_TRUE(is_free("dead"));
  port_.now.wall_at -= 600 * second;  // a clock that is set back
  EXPECT_GT(acquire(2, "dead").fence, before);
}

TEST_F(state_sweep, records_in_use_or_just_used_stay) {
  acquire(1, "held");
  pass(a_while);
  arrive("latch");
  rate("limiter", rate_verb::take);
  pass(2 * second);
  const auto before = port_.records;
  make_names();
  for (const auto& [name, record] : before) EXPECT_EQ(port_.records[name], record) << name;
}

TEST_F(state_sweep, a_large_store_is_swept_in_small_steps) {
  make_names();
  for (int i = 0; i < 10; ++i) arrive("z" + std::to_string(i));
  pass(3 * a_while);
  for (int i = 0; i < 3; ++i) make_names();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(there("z" + std::to_string(i))) << i;
}

// A repeated request must find the original.
TEST_F(state_sweep, a_record_stays_while_its_request_may_be_repeated) {
  holdfast::store::rate_record refunded;
  refunded.refunds.push_back({{1, 2}, port_.now.now_at + 3'600 * second});
  holdfast::family::encode(refunded, port_.records["limiter"]);
  pass(a_while + second);
  make_names();
  EXPECT_TRUE(there("limiter"));
}

TEST_F(state_sweep, leaders_of_an_election_and_unreadable_records_stay) {
  auto stands = command(permits_verb::acquire, 1);
  stands.kind = kind::election;
  (void)family_->permits("election", stands).value();
  port_.records["foreign"] = "not ours";
  pass(3'600 * second);
  const auto before = port_.records;
  make_names();
  for (const auto& [name, record] : before) EXPECT_EQ(port_.records[name], record) << name;
}

// The lease of the grant is running already.
TEST_F(state_sweep, a_grant_does_not_sweep_other_names) {
  for (int i = 0; i < 512; ++i) acquire(1, "made" + std::to_string(i));
  EXPECT_EQ(port_.walks, 0);
  auto more = asks_for({"a", "b"});
  (void)family_->execute_batch(more);
  EXPECT_EQ(port_.walks, 0);
  for (auto& one : more) one.command = {.verb = permits_verb::release, .owner = {0, 3}};
  (void)family_->execute_batch(more);
  EXPECT_EQ(port_.walks, 0) << "as the thread that renews all leases gives back";
  release(1);
  EXPECT_EQ(port_.walks, 1);
  for (int i = 0; i < 100; ++i) release(1);
  EXPECT_LE(port_.walks, 17) << "for each 32 that it has made";
}

// A session that makes names only by a multi_lock or an admission.
TEST_F(state_sweep, a_batch_of_locks_sweeps_other_names_at_its_release) {
  for (int i = 0; i < 31; ++i) {
    (void)together({"a" + std::to_string(i), "b" + std::to_string(i)});
  }
  EXPECT_EQ(port_.walks, 0);
  auto back = asks_for({"a0", "b0"});
  for (auto& one : back) one.command.verb = permits_verb::release;
  port_.fails_alone = holdfast::failure{holdfast::errc::unavailable, "away"};
  (void)family_->execute_batch(back);
  EXPECT_EQ(port_.walks, 0) << "the store is away: a look would only wait for it again";
  port_.fails_alone.reset();
  (void)family_->execute_batch(back);
  EXPECT_EQ(port_.walks, 1);
  for (int i = 0; i < 10; ++i) (void)family_->execute_batch(back);
  EXPECT_LE(port_.walks, 2) << "for each 32 that it has made";
}

TEST_F(state_sweep, an_admission_sweeps_other_names_at_its_release) {
  const bucket_choice many{"", {1, 1, 1, 1'000}};
  const rate_command take{rate_verb::take, {}, 1, 0, 0, {&many, 1}};
  for (int i = 0; i < 64; ++i) {
    const auto name = "made" + std::to_string(i);
    ASSERT_TRUE(family_->admit(asks_for({name}).front(), "limiter", take));
  }
  EXPECT_EQ(port_.walks, 0);
  release(1);
  EXPECT_EQ(port_.walks, 1);
}

TEST_F(state_sweep, an_undone_request_makes_no_record) {
  acquire(9, "taken");
  for (int i = 0; i < 200; ++i) (void)together({"a", "b", "taken"});
  release(1);
  EXPECT_EQ(port_.walks, 0);
}

// A store without transactions over several names is asked for the permit, and then for the tokens.
TEST_F(state_sweep, an_admission_by_two_calls_does_not_sweep_other_names) {
  for (int i = 0; i < 64; ++i) acquire(1, "made" + std::to_string(i));
  port_.together = false;
  holdfast::store::rate_command take;
  take.verb = rate_verb::take;
  take.owner = {3, 3};
  take.tokens = 1;
  const auto asks = asks_for({"slots"});
  ASSERT_TRUE(family_->admit(asks.front(), "limiter", take));
  EXPECT_EQ(port_.walks, 0);
  release(1);
  EXPECT_EQ(port_.walks, 1);
}

TEST_F(state_sweep, a_release_sweeps_only_a_few_other_names) {
  for (int i = 0; i < 300; ++i) acquire(1, "dead" + std::to_string(i));
  pass(3 * a_while);
  make_names();
  EXPECT_TRUE(is_free("dead0"));
  EXPECT_LE(port_.most_walked, 64U);
  EXPECT_LE(port_.most_together, 32U);
}

TEST_F(state_sweep, a_countdown_or_a_take_sweeps_other_names_as_well) {
  for (int i = 0; i < 64; ++i) arrive("latch" + std::to_string(i));
  EXPECT_GE(port_.walks, 1);
  const int before = port_.walks;
  for (int i = 0; i < 64; ++i) rate("limiter" + std::to_string(i), rate_verb::take);
  EXPECT_GT(port_.walks, before);
}

TEST_F(state_sweep, a_session_that_creates_no_records_sweeps_none) {
  arrive("latch");
  acquire(1), release(1);
  pass(3 * a_while);
  for (int i = 0; i < 1'000; ++i) acquire(1), release(1);
  EXPECT_TRUE(there("latch"));
}

}  // namespace
}  // namespace kernel_test
