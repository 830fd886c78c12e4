#include "store/sql/known_rows.hpp"

#include <gtest/gtest.h>

namespace sql_test {
namespace {

using namespace std::chrono_literals;

// Two clocks of different speeds drift apart until they are compared.
TEST(known_rows, are_guessed_only_as_long_as_the_server_was_heard_of_lately) {
  holdfast::store::sql::known_rows rows;
  rows.learn("n", 0, {true, 1, "text", 0, 0});
  rows.clock_said(1'000'000, holdfast::boot_clock::now() - 11s);
  EXPECT_FALSE(rows.guess("n"));
  rows.clock_said(1'000'000, holdfast::boot_clock::now());
  const auto guessed = rows.guess("n");
  ASSERT_TRUE(guessed);
  EXPECT_EQ(guessed->version, 1);
  EXPECT_GE(guessed->now_at, 1'000'000);
}

// A request for the time, made early enough, costs no statement of its own.
TEST(known_rows, ask_for_the_time_again_before_it_is_too_old_to_guess_by) {
  holdfast::store::sql::known_rows rows;
  rows.learn("n", 0, {true, 1, "text", 0, 0});
  EXPECT_TRUE(rows.clock_ages());
  rows.clock_said(1'000'000, holdfast::boot_clock::now() - 7s);
  EXPECT_TRUE(rows.clock_ages());
  EXPECT_TRUE(rows.guess("n"));
  rows.clock_said(1'000'000, holdfast::boot_clock::now());
  EXPECT_FALSE(rows.clock_ages());
}

}  // namespace
}  // namespace sql_test
