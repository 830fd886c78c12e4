#include <gtest/gtest.h>

#include <holdfast/testing.hpp>

#include "family/state_family.hpp"
#include "store/memory/memory.hpp"

namespace {

using namespace holdfast::store;
using holdfast::status;
using std::string_view;

/// Counts the steps of a store.
class counted final : public state_store {
 public:
  explicit counted(std::unique_ptr<state_store> inner) : inner_(std::move(inner)) {}
  const capabilities& can() const noexcept override { return inner_->can(); }
  const std::string& url() const noexcept override { return inner_->url(); }
  status transact(string_view name, transition& change) override {
    ++alone;
    return inner_->transact(name, change);
  }
  status transact_together(std::span<const step> steps, const judge& after) override {
    ++together;
    return inner_->transact_together(steps, after);
  }
  holdfast::result<std::vector<entry>> entries() override { return inner_->entries(); }
  holdfast::result<moment> time() override { return inner_->time(); }
  bool departed(string_view peer) override { return inner_->departed(peer); }
  bool tell(const notification& to) override { return inner_->tell(to); }
  holdfast::store::inbox& inbox() noexcept override { return inner_->inbox(); }

  int alone = 0, together = 0;

 private:
  const std::unique_ptr<state_store> inner_;
};

class admission_steps : public testing::Test {
 protected:
  permits_command permit(permits_verb verb, std::uint64_t owner, bool wait) const {
    permits_command c;
    c.verb = verb;
    c.owner = {0, owner};
    c.kind = kind::semaphore;
    c.capacity = 1;
    c.wait = wait;
    c.lease_us = c.queue_lease_us = 30'000'000;
    c.peer = port_->inbox().peer();
    return c;
  }
  /// Nothing is refilled while a test runs: this clock stands still.
  rate_command tokens(std::int64_t count) const {
    return {rate_verb::take, {}, count, 0, 0, bucket_};
  }
  admission admit(std::uint64_t owner, bool wait, std::int64_t count = 1) {
    const auto asks = permit(permits_verb::acquire, owner, wait);
    return family_->admit({"slots", asks}, "tokens", tokens(count)).value();
  }
  permits_record slots() { return family_->permits("slots", {}).value().found; }
  void release(std::uint64_t owner) {
    (void)family_->permits("slots", permit(permits_verb::release, owner, false));
  }

  const bucket_choice bucket_[1] = {{"b", {1, 1, 1'000'000, 3}}};
  holdfast::testing::fake_clock clock_;
  counted* const port_ = new counted(memory::open_memory("", clock_));
  const std::unique_ptr<session_store> family_ =
      holdfast::family::over(std::unique_ptr<state_store>(port_));
};

TEST_F(admission_steps, a_decision_is_one_step_with_any_outcome) {
  EXPECT_EQ(admit(1, false).tokens->outcome, rate_outcome::granted);
  EXPECT_EQ(admit(2, false).permits.outcome, permits_outcome::busy);
  release(1);
  port_->alone = 0;
  EXPECT_EQ(admit(2, false, 3).tokens->outcome, rate_outcome::refused);
  EXPECT_EQ(port_->together, 3);
  EXPECT_EQ(port_->alone, 0);
  EXPECT_TRUE(slots().holders.empty());
}

TEST_F(admission_steps, a_refusal_by_permits_takes_no_tokens) {
  (void)admit(1, false);
  const auto in_line = admit(2, true, 2);
  EXPECT_EQ(in_line.permits.outcome, permits_outcome::queued);
  EXPECT_FALSE(in_line.tokens);
  EXPECT_EQ(slots().queue.size(), 1u);
  const auto left = family_->rate("tokens", {rate_verb::inspect, {}, 1, 0, 0, bucket_}).value();
  EXPECT_EQ(left.buckets.at(0).remaining, 2);
}

TEST_F(admission_steps, a_turn_without_tokens_goes_to_the_next) {
  (void)admit(1, false, 3);
  (void)admit(2, true);
  (void)family_->permits("slots", permit(permits_verb::acquire, 3, true));
  release(1);
  EXPECT_EQ(slots().holders.at(0).owner, (owner_id{0, 2})) << "it is his turn";
  EXPECT_EQ(admit(2, true).tokens->outcome, rate_outcome::refused);
  EXPECT_EQ(slots().holders.at(0).owner, (owner_id{0, 3}));
  EXPECT_TRUE(slots().queue.empty());
}

TEST_F(admission_steps, a_request_repeated_after_a_lost_reply_has_one_permit) {
  (void)admit(1, false);
  const auto again = admit(1, false);
  EXPECT_EQ(again.permits.outcome, permits_outcome::granted);
  EXPECT_EQ(slots().holders.size(), 1u);
}

}  // namespace
