#include <fstream>
#include <thread>

#include "harness/command_line.hpp"
#include "harness/eventually.hpp"
#include "harness/temp_dir.hpp"
#include "store/zookeeper/fixture.hpp"

// kazoo's locks and the library's on the same path, in both directions.
namespace zookeeper_test {
namespace {

using namespace std::chrono_literals;
using holdfast::lease;

/// A Python program beside us, which acquires a lock with kazoo and releases it on demand.
class kazoo {
 public:
  /// `kind` is Lock, ReadLock or WriteLock.
  kazoo(const std::string& kind, const std::string& path) {
    std::ofstream(dir_.file("program.py"))
        << "import os, sys, time\n"
           "from kazoo.client import KazooClient\n"
           "folder = os.path.dirname(os.path.abspath(__file__))\n"
           "def say(word):\n"
           "    open(os.path.join(folder, word), 'w').close()\n"
           "client = KazooClient(hosts=sys.argv[1], timeout=10)\n"
           "client.start()\n"
           "lock = getattr(client, sys.argv[2])(sys.argv[3], 'from-kazoo')\n"
           "say('asks')\n"
           "lock.acquire()\n"
           "say('has')\n"
           "while not os.path.exists(os.path.join(folder, 'release')):\n"
           "    time.sleep(0.01)\n"
           "lock.release()\n"
           "client.stop()\n";
    const std::string command = "exec /usr/bin/python3 '" + dir_.file("program.py") + "' '" +
                                calm_ensemble().hosts() + "' " + kind + " '" + path + "'";
    thread_ = std::thread([this, command] { result_ = std::system(command.c_str()); });
    until("asks");
  }
  ~kazoo() {
    release();
    thread_.join();
    EXPECT_EQ(result_, 0);
  }
  bool has() const { return std::filesystem::exists(dir_.file("has")); }
  void until_has() const { until("has"); }
  void release() const { std::ofstream(dir_.file("release")); }

 private:
  void until(const std::string& word) const {
    harness::eventually("kazoo " + word, [&] { return std::filesystem::exists(dir_.file(word)); });
  }
  harness::temp_dir dir_;
  std::thread thread_;
  int result_ = -1;
};

class interoperability : public testing::Test {
 protected:
  const std::string base_ = fresh_base();
  holdfast::session session_ = holdfast::open(calm_ensemble().url(base_ + "?session=10s"));
  const tree tree_{calm_ensemble().hosts()};
  std::size_t contenders() const { return tree_.children(base_ + "/shared").size(); }
};

TEST_F(interoperability, kazoo_waits_for_a_lock_held_here) {
  lease held = holdfast::mutex(session_, "shared").acquire();
  kazoo other("Lock", base_ + "/shared");
  harness::eventually("it is in line", [&] { return contenders() == 2; });
  EXPECT_FALSE(other.has());
  held = {};
  other.until_has();
  EXPECT_FALSE(holdfast::mutex(session_, "shared").try_acquire());
}

TEST_F(interoperability, our_waiters_wait_for_a_lock_of_kazoo) {
  kazoo other("Lock", base_ + "/shared");
  other.until_has();
  holdfast::mutex mine{session_, "shared"};
  EXPECT_FALSE(mine.try_acquire());
  const auto holders = session_.show("shared").holders;
  ASSERT_EQ(holders.size(), 1U);
  EXPECT_FALSE(holders[0].expires_in) << "when it ends is not known";
  EXPECT_EQ(holders[0].host + holders[0].program, "");
  EXPECT_EQ(holders[0].reason, "from-kazoo");
  std::thread waiter([&] { EXPECT_TRUE(mine.acquire()); });
  harness::eventually("it is in line", [&] { return contenders() == 2; });
  other.release();
  waiter.join();
}

TEST_F(interoperability, a_force_release_takes_the_lock_away_from_kazoo) {
  kazoo other("Lock", base_ + "/shared");
  other.until_has();
  EXPECT_EQ(session_.force_release("shared"), 1U);
  EXPECT_TRUE(session_.show("shared").holders.empty());
  const lease mine = holdfast::mutex(session_, "shared").acquire();
  other.release();
  EXPECT_NO_THROW(mine.check()) << "what kazoo gives back is not ours";
}

TEST_F(interoperability, readers_of_both_share_and_writers_of_both_exclude_them) {
  holdfast::shared_mutex mine{session_, "shared"};
  lease reader = mine.acquire_shared();
  {
    const kazoo other("ReadLock", base_ + "/shared");
    other.until_has();
    EXPECT_FALSE(mine.try_acquire());
  }
  kazoo writer("WriteLock", base_ + "/shared");
  harness::eventually("it is in line", [&] { return contenders() == 2; });
  EXPECT_FALSE(writer.has());
  reader = {};
  writer.until_has();
  EXPECT_FALSE(mine.try_acquire_shared());
}

#ifdef HOLDFAST_TOOL
TEST_F(interoperability, the_command_line_shows_the_known_facts_of_another_program) {
  const kazoo other("Lock", base_ + "/shared");
  other.until_has();
  // The program opens the store once, and does not wait until the store is back.
  const harness::command_line tool(calm_ensemble().url(base_ + "?session=10s&connect_timeout=60s"));
  harness::expect_nothing_invented(tool, "shared", {"fence", "since", "held_seconds"});
  const auto taken = tool({"force-unlock", "shared", "--yes"});
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_EQ(taken.out, "shared: taken away from 1 holder\n");
  const auto free = tool({"try", "shared"});
  EXPECT_EQ(free.code, 0) << free.err;
}
#endif

}  // namespace
}  // namespace zookeeper_test
