#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"

// The test of the test: without a lock, or with stale fences, the resource must show it.
namespace {

using namespace fault_test;
using harness::child;
using harness::resource;

// Arguments: PAGE WORKER. Uses the resource without any lock until it is killed.
const harness::role lawless{"lawless", [](const std::vector<std::string>& args) {
                              resource at(args[0]);
                              const auto number = static_cast<std::uint32_t>(std::stoul(args[1]));
                              for (std::uint64_t fence = 1;; ++fence)
                                at.use({.worker = number, .fence = fence});
                              return 0;
                            }};

TEST(resource, shows_that_workers_without_a_lock_meet) {
  ground g;
  resource at(g.page);
  {
    const child one("lawless", {g.page, "0"});
    const child two("lawless", {g.page, "1"});
    harness::eventually("they meet", [&] {
      const auto seen = at.count();
      return seen.overlaps > 0 && seen.fence_errors > 0 && seen.counted < seen.works;
    });
  }
  EXPECT_FALSE(harness::violations(at.history(), {}).empty());
}

TEST(resource, refuses_a_fence_that_is_smaller_than_one_it_has_seen) {
  ground g;
  resource at(g.page);
  EXPECT_TRUE(at.guarded_write(5));
  EXPECT_TRUE(at.guarded_write(5)) << "the same holder may write again";
  EXPECT_FALSE(at.guarded_write(4));
  EXPECT_TRUE(at.guarded_write(6));
  EXPECT_EQ(at.count().refused, 1U);
}

TEST(resource, does_not_count_processes_that_died_inside) {
  ground g;
  resource at(g.page);
  const pid_t pid = ::fork();
  if (pid == 0) {
    at.enter({.worker = 1, .fence = 1});
    ::_exit(0);
  }
  harness::eventually("it is a zombie", [&] { return !harness::can_act(pid); });
  at.use({.worker = 2, .fence = 2});
  EXPECT_EQ(at.count().overlaps, 0U);
  ::waitpid(pid, nullptr, 0);
  EXPECT_FALSE(harness::can_act(pid));
  EXPECT_TRUE(harness::can_act(::getpid()));
}

}  // namespace
