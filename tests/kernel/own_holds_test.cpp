#include <gtest/gtest.h>

#include <holdfast/store/own_holds.hpp>
#include <holdfast/testing.hpp>

namespace kernel_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t lease = 10'000'000;

TEST(own_holds, know_the_latest_of_each_owner_until_it_is_forgotten) {
  holdfast::testing::fake_clock clock;
  holdfast::store::own_holds<int> known(clock);
  known.put("m", {1, 1}, 5, lease);
  known.put("m", {1, 2}, 6, lease);
  known.put("m", {1, 1}, 7, lease);
  EXPECT_EQ(known.find("m", {1, 1}), 7);
  known.forget("m", {1, 1});
  EXPECT_EQ(known.find("m", {1, 1}), std::nullopt);
  EXPECT_EQ(known.find("m", {1, 2}), 6);
}

TEST(own_holds, of_one_owner_are_known_for_each_name_separately) {
  holdfast::testing::fake_clock clock;
  holdfast::store::own_holds<int> known(clock);
  known.put("a", {1, 1}, 5, lease);
  EXPECT_EQ(known.find("b", {1, 1}), std::nullopt);
  known.put("b", {1, 1}, 6, lease);
  EXPECT_EQ(known.find("a", {1, 1}), 5);
  known.forget("a", {1, 1});
  EXPECT_EQ(known.find("a", {1, 1}), std::nullopt);
  EXPECT_EQ(known.find("b", {1, 1}), 6);
}

TEST(own_holds, that_were_lost_and_never_released_do_not_accumulate) {
  holdfast::testing::fake_clock clock;
  holdfast::store::own_holds<int> known(clock);
  for (std::uint64_t i = 1; i <= 10'000; ++i) {
    known.put("m", {1, i}, 0, lease);
    clock.advance(1s);
    EXPECT_LE(known.size(), 2u * 71 + 64);
  }
}

TEST(own_holds, that_are_renewed_are_kept_however_long) {
  holdfast::testing::fake_clock clock;
  holdfast::store::own_holds<int> known(clock);
  for (std::uint64_t i = 1; i <= 1'000; ++i) {
    known.put("m", {2, 1}, 3, lease);
    known.put("m", {1, i}, 0, lease);
    clock.advance(5s);
  }
  EXPECT_EQ(known.find("m", {2, 1}), 3);
}

}  // namespace
}  // namespace kernel_test
