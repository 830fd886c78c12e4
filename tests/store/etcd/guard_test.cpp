#include <holdfast/guard.hpp>
#include <sstream>

#include "harness/process.hpp"
#include "store/etcd/fixture.hpp"

// The program's own transaction, with a comparison that checks that the lock is still held.
namespace etcd_test {
namespace {

using holdfast::lease;
using holdfast::store::standing;

/// Sets the key `stock` if that lease still exists; false if it does not.
bool write(const std::string& value, const standing& at) {
  const auto said =
      calm_cluster().ctl("txn", "create(\"" + at.key + "\") = \"" + std::to_string(at.created) +
                                    "\"\n\nput stock " + value + "\n\n\n");
  return said.starts_with("SUCCESS");
}

std::string stock() { return calm_cluster().ctl("get --print-value-only stock"); }

TEST(etcd_guard, the_transaction_of_a_former_holder_changes_nothing) {
  const std::string url = calm_cluster().url(fresh_base());
  harness::child sleeper("lock-holder", {url + "?session=3s"});
  (void)sleeper.expect_line();
  sleeper.tell("where");
  standing stale;
  std::istringstream(sleeper.expect_line()) >> stale.key >> stale.created;
  EXPECT_TRUE(write("1", stale)) << "it holds it";
  sleeper.stop();
  auto here = holdfast::open(url + "?session=20s");
  const lease mine = holdfast::mutex(here, "job").acquire();
  sleeper.resume();
  EXPECT_FALSE(write("2", stale)) << "although nobody has written since";
  EXPECT_EQ(stock(), "1\n");
  EXPECT_TRUE(write("3", holdfast::guard::standing_of(mine)));
  EXPECT_FALSE(write("4", stale));
  EXPECT_EQ(stock(), "3\n");
}

TEST(etcd_guard, an_upgrade_and_a_downgrade_are_other_keys) {
  auto here = holdfast::open(calm_cluster().url(fresh_base() + "?session=10s"));
  holdfast::shared_mutex lock{here, "a/b"};
  lease held = lock.acquire_shared();
  const auto reader = holdfast::guard::standing_of(held);
  EXPECT_TRUE(write("1", reader));
  ASSERT_TRUE(lock.try_upgrade(held));
  const auto writer = holdfast::guard::standing_of(held);
  EXPECT_NE(writer.key, reader.key);
  EXPECT_TRUE(write("2", writer));
  lock.downgrade(held);
  EXPECT_FALSE(write("3", writer));
  EXPECT_TRUE(write("4", holdfast::guard::standing_of(held)));
}

TEST(etcd_guard, a_lock_that_is_not_held_yields_no_comparison) {
  using holdfast::errc;
  auto here = holdfast::open(calm_cluster().url(fresh_base() + "?session=10s"));
  const auto reason_for = [](const lease& held) {
    return thrown_by([&] { (void)holdfast::guard::standing_of(held); }).reason();
  };
  const lease held = holdfast::mutex(here, "job").acquire();
  const auto before = holdfast::guard::standing_of(held);
  EXPECT_EQ(here.force_release("job"), 1U);
  EXPECT_FALSE(write("1", before)) << "though it has not heard of it";
  EXPECT_EQ(reason_for(lease()), errc::invalid_argument);
  auto memory = holdfast::open("memory:");
  EXPECT_EQ(reason_for(holdfast::mutex(memory, "job").acquire()), errc::unsupported);
}

}  // namespace
}  // namespace etcd_test
