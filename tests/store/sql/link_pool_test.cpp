#include "store/sql/link_pool.hpp"

#include <gtest/gtest.h>

#include <new>

// What a session's threads share: connections.
namespace sql_test {
namespace {

using namespace std::chrono_literals;
using holdfast::store::sql::link_pool;
using holdfast::store::sql::row_link;
using made = holdfast::result<std::unique_ptr<row_link>>;

TEST(link_pools, have_room_again_for_what_there_was_no_memory_for) {
  int failures = 2;
  link_pool pool(
      [&](auto) -> made {
        if (failures-- > 0) throw std::bad_alloc();
        return holdfast::failure{holdfast::errc::unavailable, "no server"};
      },
      1);
  for (int i = 0; i < 2; ++i)
    EXPECT_THROW((void)pool.borrow(holdfast::boot_time{}), std::bad_alloc);
  const auto next = pool.borrow(holdfast::boot_time{});
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().what, "no server");
}

}  // namespace
}  // namespace sql_test
