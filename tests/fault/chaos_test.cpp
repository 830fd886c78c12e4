#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"
#include "harness/seed.hpp"

namespace {

using namespace fault_test;
using harness::child;

constexpr int workers = 8;

/// Of each worker: the kills come during their work, and not long before its end.
constexpr long times = 1'500;

struct outcome {
  int kills = 0;
  harness::resource::totals totals;
  std::vector<std::string> violations;
};

/// Workers of one role, some of which are killed at any moment, and replaced by others that do the
/// whole of their work again, until all have finished.
outcome storm(const std::string& role, std::uint32_t capacity, int kills) {
  ground g;
  harness::resource at(g.page);
  harness::random random;
  const std::uint64_t seed = harness::seed();
  outcome result;
  const auto start = [&](int number, int life) {
    return child(role, {g.url, g.page, std::to_string(number), std::to_string(times),
                        std::to_string(seed + static_cast<std::uint64_t>(life))});
  };
  std::vector<child> crew;
  for (int i = 0; i < workers; ++i) crew.push_back(start(i, 0));
  while (result.kills < kills) {
    // Somewhere in the work of all: the resource's own time shows their progress.
    const auto until = at.count().entries + random.between<std::uint64_t>(50, 500);
    harness::eventually("progress", [&] {
      const bool over = std::all_of(crew.begin(), crew.end(), [](child& c) { return c.ended(); });
      return over || at.count().entries >= until;
    });
    const int victim = random.between(0, workers - 1);
    crew[static_cast<std::size_t>(victim)].kill();
    crew[static_cast<std::size_t>(victim)] = start(victim, ++result.kills);
  }
  for (auto& c : crew) EXPECT_EQ(c.wait(), 0) << "nobody is stuck, and none failed";
  result.totals = at.count();
  result.violations = harness::violations(at.history(), {.capacity = capacity});
  auto session = holdfast::open(g.url);
  EXPECT_TRUE(session.names().empty()) << "nothing stays behind";
  return result;
}

void expect_sound(const outcome& o) {
  std::cout << "killed " << o.kills << ", entered " << o.totals.entries << ", overlaps "
            << o.totals.overlaps << ", fences out of order " << o.totals.fence_errors << '\n';
  EXPECT_EQ(o.totals.overlaps, 0U);
  EXPECT_TRUE(o.violations.empty()) << harness::summary(o.violations);
}

TEST(chaos, eight_processes_with_random_kills_never_overlap_or_get_stuck) {
  const auto o = storm("worker", 1, 40);
  expect_sound(o);
  EXPECT_EQ(o.totals.fence_errors, 0U);
  EXPECT_GE(o.totals.counted, o.totals.works) << "an increment was lost";
  EXPECT_LE(o.totals.counted, o.totals.works + static_cast<std::uint64_t>(o.kills));
  EXPECT_GE(o.totals.entries,
            static_cast<std::uint64_t>(workers) * static_cast<std::uint64_t>(times));
}

TEST(chaos, readers_and_writers_with_random_kills_never_meet) {
  expect_sound(storm("reader_or_writer", 1U << 30, 20));
}

}  // namespace
