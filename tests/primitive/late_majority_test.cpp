#include <gtest/gtest.h>

#include <algorithm>

#include "engine/slow_to_answer.hpp"
#include "engine/stage.hpp"

// What late_reply_test.cpp says of one store, of a majority: the lease counts from before the first
// request. When it ends here, a majority of the nodes has not ended it, so nobody else gets one.
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
  std::ptrdiff_t keep_it_longer_than(std::chrono::nanoseconds here) const {
    return std::ranges::count_if(nodes_, [&](const holdfast::session& node) {
      const auto holders = node.show("m").holders;
      return !holders.empty() && holders.front().expires_in > here;
    });
  }
  void expect_to_end_before_a_majority_ends_it(const holdfast::quorum_lease& held) const {
    std::ptrdiff_t longer{};
    holdfast::boot_time at;
    do {  // once more if an answer came in between: it moves the clock
      at = clock_->now();
      longer = keep_it_longer_than(held.remaining());
    } while (clock_->now() != at);
    EXPECT_GE(longer, 2) << "it lasts " << held.remaining().count() << " ns here";
  }

  const std::shared_ptr<holdfast::testing::fake_clock> clock_ =
      std::make_shared<holdfast::testing::fake_clock>();
  const std::shared_ptr<engine_test::delay> late_ = std::make_shared<engine_test::delay>();
  const std::vector<holdfast::session> nodes_ = open_three();
  redlock lock_{nodes_, "m", {.node_timeout = 20s}};
};

TEST_F(late_majorities, an_acquired_lease_ends_before_a_majority_ends_it) {
  answers_come(permits_verb::acquire, 3s);
  const auto held = lock_.acquire();
  expect_to_end_before_a_majority_ends_it(held);
}

// A renewal of a majority is an acquire that is repeated.
TEST_F(late_majorities, a_renewed_lease_ends_before_a_majority_ends_it) {
  const auto held = lock_.acquire();
  answers_come(permits_verb::acquire, 1s);
  clock_->advance(10s);
  harness::eventually("renewed", [&] { return held.remaining() > 20s; });
  expect_to_end_before_a_majority_ends_it(held);
}

}  // namespace
