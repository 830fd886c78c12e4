#include <gtest/gtest.h>

#include "engine/slow_to_answer.hpp"
#include "engine/stage.hpp"

// What late_reply_test.cpp says of one store, of a majority: the lease counts from before the first
// request, and ends here before the first node ends it.
namespace {

using namespace std::chrono_literals;
using holdfast::redlock;
using holdfast::store::permits_verb;

class late_majorities : public testing::Test {
 protected:
  std::vector<holdfast::session> open_three() {
    std::vector<holdfast::session> nodes;
    for (int i = 0; i < 3; ++i) {
      holdfast::session_options o;
      o.clock = clock_;
      o.lease = 30s;
      o.decorate = [d = late_, c = clock_](auto inner) {
        return std::make_unique<engine_test::slow_to_answer>(std::move(inner), d, c);
      };
      nodes.push_back(holdfast::open("memory:", o));
    }
    return nodes;
  }
  void answers_come(permits_verb verb, std::chrono::nanoseconds after) {
    late_->verb = verb;
    late_->each = after;
  }
  void expect_to_end_before_any_node_ends_it(const holdfast::quorum_lease& held) {
    const auto here = held.remaining();
    for (const auto& node : nodes_) {
      for (const auto& h : node.show("m").holders) EXPECT_LT(here, h.expires_in);
    }
  }

  const std::shared_ptr<holdfast::testing::fake_clock> clock_ =
      std::make_shared<holdfast::testing::fake_clock>();
  const std::shared_ptr<engine_test::delay> late_ = std::make_shared<engine_test::delay>();
  const std::vector<holdfast::session> nodes_ = open_three();
  redlock lock_{nodes_, "m", {.node_timeout = 20s}};
};

TEST_F(late_majorities, an_acquired_lease_ends_before_any_node_ends_it) {
  answers_come(permits_verb::acquire, 3s);
  const auto held = lock_.acquire();
  expect_to_end_before_any_node_ends_it(held);
}

// A renewal of a majority is an acquire that is repeated.
TEST_F(late_majorities, a_renewed_lease_ends_before_any_node_ends_it) {
  const auto held = lock_.acquire();
  answers_come(permits_verb::acquire, 1s);
  clock_->advance(10s);
  harness::eventually("renewed", [&] { return held.remaining() > 20s; });
  expect_to_end_before_any_node_ends_it(held);
}

}  // namespace
