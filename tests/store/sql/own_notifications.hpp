#pragma once

#include <gtest/gtest.h>

#include <holdfast/store/state_store.hpp>
#include <optional>

namespace sql_test {

/// A session whose waiters poll. None of its threads need ever read the inbox.
inline void keeps_a_thousand_notifications_by_itself(holdfast::store::state_store& store) {
  holdfast::store::notification to;
  to.peer = store.inbox().peer();
  for (to.fence = 1; to.fence <= 1500; ++to.fence) EXPECT_TRUE(store.tell(to));
  std::uint64_t read = 0, first = 0;
  while (const auto next = store.inbox().receive(holdfast::boot_clock::now())) {
    if (++read == 1) first = next->fence;
  }
  EXPECT_EQ(read, 1000U);
  EXPECT_EQ(first, 501U) << "the oldest are dropped";
}

}  // namespace sql_test
