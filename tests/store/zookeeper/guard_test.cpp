#include <holdfast/guard.hpp>

#include "store/zookeeper/fixture.hpp"

// The program's own multi, with a check that the lock is still held.
namespace zookeeper_test {
namespace {

TEST(zookeeper_guard, the_multi_of_a_former_holder_changes_nothing) {
  const auto base = fresh_base();
  const tree mine(calm_ensemble().hosts());
  auto here = holdfast::open(calm_ensemble().url(base + "?session=10s"));
  mine.make(base + "/%stock");
  const auto held = holdfast::mutex(here, "a/b").acquire();
  const auto stale = holdfast::guard::standing_of(held);
  EXPECT_TRUE(mine.write_if(stale.key, base + "/%stock", "1"));
  EXPECT_EQ(here.force_release("a/b"), 1U);
  EXPECT_FALSE(mine.write_if(stale.key, base + "/%stock", "2")) << "though it has not heard of it";
  const auto next = holdfast::mutex(here, "a/b").acquire();
  const auto now = holdfast::guard::standing_of(next);
  EXPECT_GT(now.created, stale.created);
  EXPECT_TRUE(mine.write_if(now.key, base + "/%stock", "3"));
  EXPECT_FALSE(mine.write_if(stale.key, base + "/%stock", "4"));
  EXPECT_EQ(mine.data(base + "/%stock"), "3");
}

}  // namespace
}  // namespace zookeeper_test
