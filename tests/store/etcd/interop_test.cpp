#include <signal.h>

#include <thread>

#include "harness/command_line.hpp"
#include "harness/eventually.hpp"
#include "harness/program.hpp"
#include "store/etcd/fixture.hpp"

// `etcdctl lock` and the library on the same key, in both directions.
namespace etcd_test {
namespace {

using holdfast::lease;

/// Prints its key when it has the lock, and keeps the lock until it is interrupted.
class etcdctl_lock {
 public:
  explicit etcdctl_lock(const std::string& path)
      : path_(path),
        program_({"env", "ETCDCTL_API=3", "etcdctl", "--endpoints=" + calm_cluster().hosts(),
                  "lock", path},
                 {}) {}
  void until_has() { EXPECT_TRUE(program_.out.line().starts_with(path_ + "/")); }
  void release() {
    program_.signal(SIGINT);
    EXPECT_EQ(program_.wait(), 0);
  }

 private:
  std::string path_;
  harness::program program_;
};

class etcd_interoperability : public testing::Test {
 protected:
  const std::string base_ = fresh_base();
  holdfast::session session_ = holdfast::open(calm_cluster().url(base_ + "?session=10s"));
  void until_in_line(long n) const {
    harness::eventually("it is in line", [&] { return count_below(base_ + "/shared") == n; });
  }
};

TEST_F(etcd_interoperability, etcdctl_waits_for_a_lock_held_here) {
  lease held = holdfast::mutex(session_, "shared").acquire();
  etcdctl_lock other(base_ + "/shared");
  until_in_line(2);
  EXPECT_NO_THROW(held.check());
  held = {};
  other.until_has();
  EXPECT_FALSE(holdfast::mutex(session_, "shared").try_acquire());
  other.release();
}

TEST_F(etcd_interoperability, our_waiters_wait_for_a_lock_of_etcdctl) {
  etcdctl_lock other(base_ + "/shared");
  other.until_has();
  holdfast::mutex mine{session_, "shared"};
  EXPECT_FALSE(mine.try_acquire());
  ASSERT_EQ(session_.show("shared").holders.size(), 1U);
  EXPECT_FALSE(session_.show("shared").holders[0].expires_in) << "when it ends is not known";
  std::thread waiter([&] { EXPECT_TRUE(mine.acquire()); });
  until_in_line(2);
  other.release();
  waiter.join();
}

TEST_F(etcd_interoperability, a_force_release_takes_the_lock_away_from_etcdctl) {
  etcdctl_lock other(base_ + "/shared");
  other.until_has();
  EXPECT_EQ(session_.force_release("shared"), 1U);
  EXPECT_TRUE(session_.show("shared").holders.empty());
  const lease mine = holdfast::mutex(session_, "shared").acquire();
  other.release();
  EXPECT_NO_THROW(mine.check()) << "what etcdctl gives back is not ours";
}

TEST_F(etcd_interoperability, both_programs_share_one_queue_in_order_of_arrival) {
  lease first = holdfast::mutex(session_, "shared").acquire();
  etcdctl_lock second(base_ + "/shared");
  until_in_line(2);
  holdfast::fair_mutex third{session_, "shared"};
  std::thread waiter([&] { EXPECT_TRUE(third.acquire()); });
  until_in_line(3);
  first = {};
  second.until_has();
  EXPECT_EQ(session_.show("shared").waiters.size(), 1U);
  second.release();
  waiter.join();
}

#ifdef HOLDFAST_TOOL
TEST_F(etcd_interoperability, the_command_line_shows_the_known_facts_of_another_program) {
  etcdctl_lock other(base_ + "/shared");
  other.until_has();
  // The program opens the store once, and does not wait until the store is back.
  const harness::command_line tool(calm_cluster().url(base_ + "?session=10s&connect_timeout=60s"));
  harness::expect_nothing_invented(tool, "shared", {"fence"});
  const auto taken = tool({"force-unlock", "shared", "--yes"});
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_EQ(taken.out, "shared: taken away from 1 holder\n");
  const auto free = tool({"try", "shared"});
  EXPECT_EQ(free.code, 0) << free.err;
  other.release();
}
#endif

}  // namespace
}  // namespace etcd_test
