#include <gtest/gtest.h>

#include "quorum/quorum.hpp"

namespace {

using namespace std::chrono_literals;
using holdfast::boot_time;
using holdfast::errc;
using holdfast::failure;
using holdfast::engine::quorum_node;

constexpr boot_time vote_begins{10s}, then = vote_begins + 5us;

// An answer may arrive between the moment at which a vote reads the clock and its first request.
TEST(quorum_node, is_worth_asking_for_a_vote_that_began_just_before_its_last_answer) {
  quorum_node node({}, {});
  node.asked(vote_begins - 1ms);
  node.answered(holdfast::store::permits_reply{}, vote_begins - 1ms, then);
  EXPECT_TRUE(node.worth_asking(vote_begins, 1h));
  node.asked(vote_begins);
  node.answered(failure{errc::not_permitted, "the user may not"}, vote_begins, then);
  EXPECT_TRUE(node.worth_asking(vote_begins, 1h)) << "it answered";
}

TEST(quorum_node, rests_after_a_request_without_an_answer) {
  quorum_node node({}, {});
  node.asked(vote_begins);
  node.answered(failure{errc::unavailable, "no answer"}, vote_begins, then);
  EXPECT_FALSE(node.worth_asking(then, 1h));
  EXPECT_TRUE(node.worth_asking(then + 50ms, 1h));
}

}  // namespace
