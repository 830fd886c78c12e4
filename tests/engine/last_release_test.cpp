#include <gtest/gtest.h>

#include <atomic>

#include "harness/passing_on.hpp"
#include "stage.hpp"

// A release that a session could not send in time is sent at its end.
namespace {

using namespace engine_test;
using holdfast::lease;
using holdfast::mutex;
using holdfast::testing::fault;
using verb = holdfast::store::permits_verb;

TEST(last_release, that_got_lost_is_repeated_when_the_session_ends) {
  stage s("memory:last1");
  auto other = holdfast::open("memory:last1", {.clock = s.clock});
  {
    auto session = std::make_unique<holdfast::session>(holdfast::open("memory:last1", s.options()));
    lease one = mutex(*session, "m").acquire(), two = mutex(*session, "n").acquire();
    s.script->set(verb::release, fault::drop_request);
    EXPECT_EQ(one.release(), holdfast::errc::unavailable);
    s.script->await(verb::release, 2);  // the keeper's attempt at it
    EXPECT_EQ(two.release(), holdfast::errc::unavailable);
    s.script->await(verb::release, 5);  // of both, and no other until the clock advances
    s.script->set(verb::release, fault::none);
  }
  EXPECT_TRUE(other.show("m").holders.empty());
  EXPECT_TRUE(other.show("n").holders.empty());
}

TEST(last_release, to_an_unavailable_store_is_tried_only_a_few_times) {
  stage s("memory:last2");
  auto other = holdfast::open("memory:last2", {.clock = s.clock});
  std::size_t before = 0;
  {
    auto session = std::make_unique<holdfast::session>(holdfast::open("memory:last2", s.options()));
    lease held = mutex(*session, "m").acquire();
    s.script->set(verb::release, fault::drop_request);
    EXPECT_EQ(held.release(), holdfast::errc::unavailable);
    s.script->await(verb::release, 2);
    before = s.script->count(verb::release);
  }
  EXPECT_GT(s.script->count(verb::release), before);
  EXPECT_LE(s.script->count(verb::release), before + 3);
  EXPECT_EQ(other.show("m").holders.size(), 1U);
}

/// Single releases fail while the store is away; those of the keeper hang that long.
struct away_store {
  std::atomic<bool> away{true};
  std::atomic<std::size_t> largest{0};  ///< batch
  std::atomic<std::size_t> released{0};
};

class away final : public harness::passing_on {
 public:
  away(std::unique_ptr<session_store> inner, std::shared_ptr<away_store> at)
      : passing_on(std::move(inner)), at_(std::move(at)) {}
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    if (c.verb == verb::release && at_->away)
      return holdfast::failure{holdfast::errc::unavailable, "away"};
    auto reply = inner_->permits(name, c);
    if (c.verb == verb::release) ++at_->released;
    return reply;
  }
  std::vector<holdfast::result<holdfast::store::permits_reply>> execute_batch(
      std::span<const holdfast::store::named_command> batch) override {
    at_->away.wait(true);
    at_->largest = std::max(at_->largest.load(), batch.size());
    return passing_on::execute_batch(batch);
  }

 private:
  const std::shared_ptr<away_store> at_;
};

TEST(last_release, of_very_many_locks_is_sent_in_batches) {
  constexpr std::size_t many = 1'100;
  const auto at = std::make_shared<away_store>();
  holdfast::session_options o;
  o.clock = std::make_shared<holdfast::testing::fake_clock>();
  o.decorate = [&](auto inner) { return std::make_unique<away>(std::move(inner), at); };
  const auto session = holdfast::open("memory:", o);
  std::vector<lease> all;
  for (std::size_t i = 0; i < many; ++i) {
    all.push_back(mutex(session, "m" + std::to_string(i)).acquire());
  }
  for (lease& l : all) EXPECT_EQ(l.release(), holdfast::errc::unavailable);
  at->away = false;
  at->away.notify_all();
  harness::eventually("all are released", [&] { return at->released == many; });
  EXPECT_LE(at->largest, 500U);
}

}  // namespace
