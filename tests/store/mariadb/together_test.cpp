#include "fixture.hpp"
#include "harness/several_names.hpp"

// A multi_lock: several rows in one transaction.
namespace mariadb_test {
namespace {

TEST_F(mariadb_store, several_names_are_taken_in_one_transaction_or_none_is) {
  auto a = open(), b = open();
  holdfast::mutex x{a, "x"}, y{a, "y"}, other_y{b, "y"}, z{b, "z"};
  holdfast::multi_lock both{y, x}, behind{other_y, z};
  auto held = both.acquire();
  EXPECT_FALSE(behind.try_acquire());
  EXPECT_TRUE(a.show("z").holders.empty());
  const auto fences = held.fences();
  EXPECT_FALSE(held.release());
  EXPECT_TRUE(behind.try_acquire());
  EXPECT_GT(both.acquire().fences().front(), fences.front());
}

TEST_F(mariadb_store, names_that_overlap_are_taken_by_one_after_the_other) {
  harness::take_overlapping_names([&] { return open(); });
}

}  // namespace
}  // namespace mariadb_test
