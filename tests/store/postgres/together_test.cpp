#include "fixture.hpp"
#include "harness/several_names.hpp"

// A multi_lock: several rows in one transaction.
namespace postgres_test {
namespace {

TEST_F(postgres_store, several_names_are_taken_in_one_transaction_or_not_at_all) {
  harness::take_all_or_none(
      [&] { return open(); },
      [&] {
        EXPECT_EQ(ask("select count(distinct xmin::text) from " + table("holdfast_records")), "1");
      });
}

TEST_F(postgres_store, names_that_overlap_are_taken_by_one_after_the_other) {
  harness::take_overlapping_names([&] { return open(); });
}

}  // namespace
}  // namespace postgres_test
