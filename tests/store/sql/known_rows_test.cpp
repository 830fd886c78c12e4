#include "store/sql/known_rows.hpp"

#include <gtest/gtest.h>

namespace sql_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t here = 4, elsewhere = 7;

// Two clocks of different speeds drift apart until they are compared.
TEST(known_rows, are_guessed_only_as_long_as_the_server_was_heard_of_lately) {
  holdfast::store::sql::known_rows rows;
  rows.forget(here);
  rows.learn("n", 0, {true, 1, "text", 0, 0}, here);
  rows.clock_said(1'000'000, holdfast::boot_clock::now() - 11s, here);
  EXPECT_FALSE(rows.guess("n", here));
  rows.clock_said(1'000'000, holdfast::boot_clock::now(), here);
  const auto guessed = rows.guess("n", here);
  ASSERT_TRUE(guessed);
  EXPECT_EQ(guessed->version, 1);
  EXPECT_GE(guessed->now_at, 1'000'000);
}

// A request for the time, made early enough, costs no statement of its own.
TEST(known_rows, ask_for_the_time_again_before_it_is_too_old_to_guess_by) {
  holdfast::store::sql::known_rows rows;
  rows.forget(here);
  rows.learn("n", 0, {true, 1, "text", 0, 0}, here);
  EXPECT_TRUE(rows.clock_ages());
  rows.clock_said(1'000'000, holdfast::boot_clock::now() - 7s, here);
  EXPECT_TRUE(rows.clock_ages());
  EXPECT_TRUE(rows.guess("n", here));
  rows.clock_said(1'000'000, holdfast::boot_clock::now(), here);
  EXPECT_FALSE(rows.clock_ages());
}

// A standby that was promoted counts the versions on from those of the former primary, whose
// connections may still be in use.
TEST(known_rows, are_those_of_the_server_of_the_newest_connection_only) {
  holdfast::store::sql::known_rows rows;
  rows.forget(elsewhere);
  rows.forget(here);
  rows.clock_said(1'000'000, holdfast::boot_clock::now(), here);
  rows.learn("n", 0, {true, 1, "text", 0, 0}, elsewhere);
  EXPECT_FALSE(rows.guess("n", here));
  EXPECT_FALSE(rows.guess("n", elsewhere));
  rows.learn("n", 0, {true, 1, "text", 0, 0}, here);
  rows.clock_said(9'000'000, holdfast::boot_clock::now(), elsewhere);
  EXPECT_FALSE(rows.guess("n", elsewhere));
  const auto guessed = rows.guess("n", here);
  ASSERT_TRUE(guessed);
  EXPECT_LT(guessed->now_at, 9'000'000);
}

}  // namespace
}  // namespace sql_test
