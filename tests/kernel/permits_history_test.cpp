#include <gtest/gtest.h>

#include "harness/history.hpp"
#include "harness/seed.hpp"
#include "kernel/permits_rules.hpp"
#include "kernel/random_permits.hpp"
#include "kernel/seeded_bugs.hpp"

namespace {

using kernel_test::permits_rules;
using kernel_test::random_history;

constexpr int histories = 12'000;
constexpr int steps = 40;

TEST(permits_histories, every_rule_holds_at_every_step_of_random_histories) {
  for (int i = 0; i < harness::histories(histories); ++i) {
    harness::random random(static_cast<std::uint64_t>(i));
    permits_rules rules(kernel_test::real_kernel());
    random_history(random).play(rules, steps);
    ASSERT_TRUE(rules.broken().empty()) << "history " << i << ", seed " << harness::seed() << "\n"
                                        << harness::summary(rules.broken());
  }
}

// The test of the test: each of these kernels is wrong in one way, and the rules must notice it.
class seeded_bug : public testing::TestWithParam<kernel_test::bug> {};

TEST_P(seeded_bug, is_caught_by_the_rules) {
  // The rarest one is missed by one in seventy sets of histories.
  for (int i = 0; i < 3 * histories; ++i) {
    harness::random random(static_cast<std::uint64_t>(i));
    permits_rules rules(GetParam().kernel());
    random_history(random).play(rules, steps);
    if (rules.broken().empty()) continue;
    EXPECT_TRUE(rules.broken().front().starts_with(GetParam().breaks)) << rules.broken().front();
    return;
  }
  FAIL() << "nobody noticed, seed " << harness::seed();
}

INSTANTIATE_TEST_SUITE_P(permits, seeded_bug, testing::ValuesIn(kernel_test::permits_bugs()),
                         [](const auto& p) { return p.param.name; });

}  // namespace
