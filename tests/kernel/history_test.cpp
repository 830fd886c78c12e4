#include "harness/history.hpp"

#include <gtest/gtest.h>

// The checker that every other test relies on must see every violation, and nothing else.
namespace {

using harness::hold_event;
using harness::violations;

bool complains(const std::vector<std::string>& found, const std::string& about) {
  for (const auto& v : found) {
    if (v.starts_with(about)) return true;
  }
  return false;
}

const std::vector<hold_event> one_after_the_other{
    {.begin = 1, .end = 2, .worker = 1, .fence = 10},
    {.begin = 3, .end = 4, .worker = 2, .fence = 11},
    {.begin = 5, .end = 6, .worker = 1, .fence = 20},
};

TEST(history, a_correct_history_has_no_violations) {
  EXPECT_TRUE(violations(one_after_the_other, {}).empty());
  EXPECT_TRUE(violations({}, {}).empty());
}

TEST(history, an_overlap_is_found_in_any_order_of_the_records) {
  auto events = one_after_the_other;
  events[0].end = 5;
  events[2].begin = 7;
  events[2].end = 8;
  EXPECT_TRUE(complains(violations(events, {}), "overlap"));
  std::reverse(events.begin(), events.end());
  EXPECT_TRUE(complains(violations(events, {}), "overlap"));
}

TEST(history, a_hold_inside_another_is_found) {
  EXPECT_TRUE(complains(violations({{.begin = 1, .end = 9, .worker = 1, .fence = 1},
                                    {.begin = 3, .end = 4, .worker = 2, .fence = 2}},
                                   {}),
                        "overlap"));
}

TEST(history, weights_may_sum_up_to_the_capacity_and_no_further) {
  std::vector<hold_event> events{{.begin = 1, .end = 9, .worker = 1, .fence = 1, .weight = 2},
                                 {.begin = 2, .end = 8, .worker = 2, .fence = 2, .weight = 1}};
  EXPECT_TRUE(violations(events, {.capacity = 3}).empty());
  events.push_back({.begin = 3, .end = 4, .worker = 3, .fence = 3, .weight = 1});
  EXPECT_TRUE(complains(violations(events, {.capacity = 3}), "overlap"));
}

TEST(history, only_readers_may_share_a_fence_and_only_where_readers_share_a_hold) {
  std::vector<hold_event> events{{.begin = 1, .end = 4, .worker = 1, .fence = 1, .weight = 1},
                                 {.begin = 2, .end = 6, .worker = 2, .fence = 1, .weight = 1}};
  EXPECT_TRUE(violations(events, {.capacity = 8, .readers_share = true}).empty());
  EXPECT_TRUE(complains(violations(events, {.capacity = 8}), "same fence"));
  events[1] = {.begin = 5, .end = 6, .worker = 2, .fence = 1, .weight = 8};
  EXPECT_TRUE(complains(violations(events, {.capacity = 8, .readers_share = true}), "same fence"));
}

TEST(history, a_writer_beside_a_reader_is_seen) {
  constexpr std::uint32_t readers = 1u << 30;
  EXPECT_TRUE(
      complains(violations({{.begin = 1, .end = 4, .worker = 1, .fence = 1, .weight = 1},
                            {.begin = 3, .end = 6, .worker = 2, .fence = 2, .weight = readers}},
                           {.capacity = readers}),
                "overlap"));
}

TEST(history, a_fence_that_does_not_grow_is_seen) {
  auto events = one_after_the_other;
  events[1].fence = 21;
  EXPECT_TRUE(complains(violations(events, {}), "fence did not grow"));
}

TEST(history, readers_may_begin_in_another_order_than_they_were_granted) {
  EXPECT_TRUE(violations({{.begin = 1, .end = 2, .worker = 1, .fence = 6, .weight = 1},
                          {.begin = 3, .end = 4, .worker = 2, .fence = 5, .weight = 1}},
                         {.capacity = 8})
                  .empty());
  EXPECT_TRUE(complains(violations({{.begin = 1, .end = 2, .worker = 1, .fence = 6, .weight = 8},
                                    {.begin = 3, .end = 4, .worker = 2, .fence = 5, .weight = 1}},
                                   {.capacity = 8}),
                        "fence did not grow"));
}

TEST(history, a_repeated_or_missing_fence_is_found) {
  auto events = one_after_the_other;
  events[1].fence = events[0].fence;
  EXPECT_TRUE(complains(violations(events, {}), "same fence"));
  events[1].fence = 0;
  EXPECT_TRUE(complains(violations(events, {}), "no fence"));
}

TEST(history, a_hold_that_ends_before_it_begins_is_seen) {
  EXPECT_TRUE(complains(violations({{.begin = 5, .end = 5, .worker = 1, .fence = 1}}, {}),
                        "a hold ends before"));
}

TEST(history, overtaking_is_seen_where_order_is_promised) {
  std::vector<hold_event> events{
      {.begin = 10, .end = 11, .worker = 1, .fence = 1, .asked = 3, .queued = 4},
      {.begin = 20, .end = 21, .worker = 2, .fence = 2, .asked = 1, .queued = 2}};
  EXPECT_TRUE(complains(violations(events, {.fair = true}), "overtook"));
  EXPECT_TRUE(violations(events, {}).empty());
}

TEST(history, simultaneous_requests_may_be_served_in_any_order) {
  EXPECT_TRUE(
      violations({{.begin = 10, .end = 11, .worker = 1, .fence = 1, .asked = 2, .queued = 4},
                  {.begin = 20, .end = 21, .worker = 2, .fence = 2, .asked = 1, .queued = 3}},
                 {.fair = true})
          .empty());
}

}  // namespace
