#include <gtest/gtest.h>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"

// The queue of a fair_mutex over processes: order of arrival, even if entries die or sleep in it.
namespace {

using namespace fault_test;
using harness::child;
using harness::resource;

// Arguments: URL PAGE WORKER REASON. Waits for its turn, uses the resource, reports that.
const harness::role in_line{"in_line", [](const std::vector<std::string>& args) {
                              auto session = holdfast::open(args[0]);
                              resource at(args[1]);
                              const auto number = static_cast<std::uint32_t>(std::stoul(args[2]));
                              holdfast::fair_mutex m{
                                  session, "m", {.lease = a_month, .reason = args[2]}};
                              const auto asked = at.tick();
                              const holdfast::lease held = m.acquire();
                              at.use({.worker = number, .fence = held.fence(), .asked = asked});
                              harness::say("done");
                              return 0;
                            }};

class queue : public testing::Test {
 protected:
  static constexpr std::uint32_t length = 5;

  /// Queues this many processes behind this one, in the order of their numbers.
  void line_up() {
    for (std::uint32_t i = 0; i < length; ++i) {
      line_.emplace_back("in_line", std::vector<std::string>{g_.url, g_.page, std::to_string(i)});
      g_.await_waiters(session_, "m", i + 1);
      queued_.push_back(at_.tick());
    }
  }
  std::vector<std::uint32_t> served() const {
    std::vector<std::uint32_t> order;
    for (const auto& e : at_.history()) order.push_back(e.worker);
    return order;
  }
  static std::vector<std::uint32_t> all_but(std::uint32_t one) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < length; ++i) {
      if (i != one) order.push_back(i);
    }
    return order;
  }

  ground g_;
  resource at_{g_.page};
  holdfast::session session_ = holdfast::open(g_.url);
  holdfast::fair_mutex lock_{session_, "m", {.lease = a_month}};
  holdfast::lease held_ = lock_.acquire();
  std::vector<child> line_;
  std::vector<std::uint64_t> queued_;
};

TEST_F(queue, serves_processes_in_the_order_of_their_arrival) {
  line_up();
  EXPECT_EQ(session_.show("m").waiters.at(3).reason, "3");
  EXPECT_FALSE(held_.release());
  for (auto& c : line_) EXPECT_EQ(c.wait(), 0);
  auto history = at_.history();
  for (auto& e : history) e.queued = queued_.at(e.worker);
  EXPECT_EQ(history.size(), length);
  const auto wrong = harness::violations(history, {.fair = true});
  EXPECT_TRUE(wrong.empty()) << harness::summary(wrong);
}

TEST_F(queue, is_emptied_by_the_death_of_all_waiters) {
  line_up();
  for (auto& c : line_) c.kill();
  EXPECT_FALSE(held_.release());
  EXPECT_TRUE(lock_.try_acquire());
}

TEST_F(queue, moves_on_when_the_process_that_is_served_dies_at_that_moment) {
  line_up();
  EXPECT_FALSE(held_.release());
  line_[0].kill();  // before, while or after it was served
  for (std::uint32_t i = 1; i < length; ++i) EXPECT_EQ(line_[i].wait(), 0) << i;
  auto order = served();
  std::erase(order, 0U);
  EXPECT_EQ(order, all_but(0));
}

class queue_with_a_sleeper : public queue, public testing::WithParamInterface<std::uint32_t> {};

INSTANTIATE_TEST_SUITE_P(at_each_place, queue_with_a_sleeper, testing::Range(0U, 5U));

TEST_P(queue_with_a_sleeper, serves_the_others_in_order_and_the_sleeper_when_it_wakes) {
  line_up();
  auto& sleeper = line_.at(GetParam());
  g_.stop(sleeper);
  EXPECT_FALSE(held_.release());
  for (std::uint32_t i = 0; i < length; ++i) {
    if (i != GetParam()) {
      EXPECT_EQ(line_[i].wait(), 0) << i;
    }
  }
  EXPECT_EQ(served(), all_but(GetParam()));
  sleeper.resume();
  EXPECT_EQ(sleeper.expect_line(), "done");
  EXPECT_EQ(sleeper.wait(), 0);
  EXPECT_EQ(at_.count().fence_errors, 0U);
}

}  // namespace
