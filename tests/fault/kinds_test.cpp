#include <gtest/gtest.h>

#include <thread>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"

// Processes killed while they read, write, wait at a latch, or have handed a permit on.
namespace {

using namespace fault_test;
using namespace std::chrono_literals;
using harness::child;

// Arguments: URL MODE. Holds a shared_mutex for reading or writing until it is killed.
const harness::role sharer{"sharer", [](const std::vector<std::string>& args) {
                             auto session = holdfast::open(args[0]);
                             holdfast::shared_mutex m{session, "rw", {{.lease = a_month}, {}}};
                             const auto held =
                                 args[1] == "reads" ? m.acquire_shared() : m.acquire();
                             harness::say("in");
                             (void)harness::hear();
                             return 0;
                           }};

// Argument: URL. Waits at a latch of two.
const harness::role at_latch{"at_latch", [](const std::vector<std::string>& args) {
                               auto session = holdfast::open(args[0]);
                               holdfast::latch(session, "start", 2).wait();
                               harness::say("through");
                               return 0;
                             }};

// Argument: URL. Acquires a permit for an hour, reports its id, and waits.
const harness::role giver{
    "giver", [](const std::vector<std::string>& args) {
      auto session = holdfast::open(args[0]);
      harness::say(holdfast::expiring_semaphore(session, "p", 2).acquire(1h).id);
      (void)harness::hear();
      return 0;
    }};

struct scene {
  ground g;
  holdfast::session session = holdfast::open(g.url);
};

TEST(kinds, a_killed_reader_lets_the_writer_in) {
  scene s;
  child one("sharer", {s.g.url, "reads"});
  child two("sharer", {s.g.url, "reads"});
  EXPECT_EQ(one.expect_line(), "in");
  EXPECT_EQ(two.expect_line(), "in");
  holdfast::shared_mutex m{s.session, "rw"};
  std::thread writer([&] { EXPECT_TRUE(m.acquire()); });
  s.g.await_waiters(s.session, "rw", 1);
  one.kill();
  EXPECT_FALSE(m.try_acquire()) << "the other one reads";
  two.kill();
  writer.join();
}

TEST(kinds, a_killed_writer_lets_all_readers_in) {
  scene s;
  child writer("sharer", {s.g.url, "writes"});
  EXPECT_EQ(writer.expect_line(), "in");
  std::vector<std::thread> readers;  // a session each: one would ask for all
  for (std::size_t i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      EXPECT_TRUE((holdfast::shared_mutex{holdfast::open(s.g.url), "rw"}.acquire_shared()));
    });
    s.g.await_waiters(s.session, "rw", i + 1);
  }
  writer.kill();
  for (auto& t : readers) t.join();
}

TEST(kinds, a_process_killed_at_a_latch_does_not_block_the_others) {
  scene s;
  child dies("at_latch", {s.g.url});
  child lives("at_latch", {s.g.url});
  s.g.await_waiters(s.session, "start", 2);
  dies.kill();
  holdfast::latch(s.session, "start", 2).count_down(2);
  EXPECT_EQ(lives.expect_line(), "through");
  EXPECT_EQ(lives.wait(), 0);
}

TEST(kinds, a_permit_that_was_handed_on_outlives_the_process_that_got_it) {
  scene s;
  child first("giver", {s.g.url});
  const std::string id = first.expect_line();
  first.kill();
  holdfast::expiring_semaphore permits{s.session, "p", 2};
  const auto other = permits.try_acquire(1h);
  ASSERT_TRUE(other);
  EXPECT_FALSE(permits.try_acquire(1h)) << "its time has not come";
  EXPECT_TRUE(permits.try_extend(id, 2h));
  EXPECT_TRUE(permits.release(id));
  EXPECT_EQ(permits.available(), 1U);
}

TEST(kinds, all_permits_of_many_killed_processes_come_back) {
  scene s;
  std::vector<child> crew;
  for (int i = 0; i < 4; ++i) crew.emplace_back("giver", std::vector<std::string>{s.g.url});
  // Two hold, two wait.
  s.g.await_waiters(s.session, "p", 2);
  for (auto& c : crew) c.kill();
  holdfast::expiring_semaphore permits{s.session, "p", 2};
  EXPECT_FALSE(permits.try_acquire(1h)) << "handed on: only time or their ids end them";
  EXPECT_EQ(s.session.force_release("p"), 2U);
  EXPECT_TRUE(permits.try_acquire(1h)) << "and the dead who waited are not served";
}

}  // namespace
