#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"

// Programs that end in untidy ways: no crash, no hang, and the lock is free when they are gone.
namespace {

using namespace fault_test;
using harness::child;

std::optional<holdfast::session> global_session;
std::optional<holdfast::mutex> global_lock;
holdfast::lease global_lease;

// Arguments: URL HOW. Holds a lock in static objects, and ends in the given way.
const harness::role untidy{
    "untidy", [](const std::vector<std::string>& args) {
      const std::string& how = args[1];
      global_session = holdfast::open(args[0]);
      global_lock.emplace(*global_session, "m", holdfast::lock_options{.lease = a_month});
      if (how == "std form") {
        global_lock->lock();
      } else {
        global_lease = global_lock->acquire();
      }
      harness::say("in");
      if (how == "exit") std::exit(0);
      if (how == "quick_exit") std::quick_exit(0);
      if (how == "abort") std::abort();
      if (how == "exit on another thread") {
        std::thread([] { std::exit(0); }).join();
      }
      if (how == "exit while another waits") {
        holdfast::fair_mutex other{*global_session, "other", {.lease = a_month}};
        const auto held = other.acquire();
        std::thread waits([&] { (void)other.acquire(); });
        harness::eventually("it waits",
                            [&] { return global_session->show("other").waiters.size() == 1; });
        std::exit(0);
      }
      return 0;  // main returns: static objects are destroyed
    }};

struct ending {
  std::string how;
  int code;
};

std::string name_of(const testing::TestParamInfo<ending>& info) {
  std::string name = info.param.how;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

class endings : public testing::TestWithParam<ending> {};

INSTANTIATE_TEST_SUITE_P(of_programs, endings,
                         testing::Values(ending{"return", 0}, ending{"std form", 0},
                                         ending{"exit", 0}, ending{"quick_exit", 0},
                                         ending{"abort", 128 + SIGABRT},
                                         ending{"exit on another thread", 0},
                                         ending{"exit while another waits", 0}),
                         name_of);

TEST_P(endings, leave_the_lock_free) {
  ground g;
  auto session = holdfast::open(g.url);
  child program("untidy", {g.url, GetParam().how});
  EXPECT_EQ(program.expect_line(), "in");
  EXPECT_EQ(program.wait(), GetParam().code);
  EXPECT_TRUE(holdfast::mutex(session, "m").try_acquire());
  EXPECT_TRUE(holdfast::mutex(session, "other").try_acquire());
}

}  // namespace
