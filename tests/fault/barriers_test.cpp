#include <gtest/gtest.h>

#include <thread>

#include "fault/roles.hpp"
#include "harness/eventually.hpp"

// Participants and waiters that are killed and stopped.
namespace {

using namespace fault_test;
using namespace std::chrono_literals;
using harness::child;
using holdfast::barrier;
using holdfast::condition_variable;
using holdfast::errc;

template <class Action>
std::error_code failure_of(Action action) {
  try {
    action();
    return {};
  } catch (const holdfast::error& e) {
    return e.code();
  }
}

// Arguments: URL COUNT LEASE_MS. Arrives once for each line it gets, and reports how that ended.
const harness::role takes_part{"takes_part", [](const std::vector<std::string>& args) {
                                 barrier mine{
                                     holdfast::open(args[0]),
                                     "b",
                                     static_cast<std::uint32_t>(std::stoul(args[1])),
                                     {.lease = std::chrono::milliseconds(std::stoll(args[2]))}};
                                 for (harness::say("ready"); !harness::hear().empty();) {
                                   const auto why = failure_of([&] { mine.arrive_and_wait(); });
                                   harness::say(why == errc::lost ? "broken" : "through");
                                 }
                                 return 0;
                               }};

// Argument: URL. Waits until it is woken.
const harness::role waits_for_news{"waits_for_news", [](const std::vector<std::string>& args) {
                                     const auto session = holdfast::open(args[0]);
                                     holdfast::mutex lock{session, "m"};
                                     condition_variable news{session, "c"};
                                     std::unique_lock locked{lock};
                                     news.wait(locked);
                                     harness::say("woken");
                                     return 0;
                                   }};

TEST(barriers, a_participant_killed_between_two_phases_breaks_the_next) {
  ground g;
  child other("takes_part", {g.url, "2", std::to_string(a_month.count())});
  other.expect_line();
  barrier mine{holdfast::open(g.url), "b", 2};
  other.tell("arrive");
  mine.arrive_and_wait();
  EXPECT_EQ(other.expect_line(), "through");
  other.kill();  // its lease has a month to go
  EXPECT_EQ(failure_of([&] { mine.arrive_and_wait(); }), errc::lost);
}

TEST(barriers, a_participant_killed_while_it_waits_breaks_the_phase) {
  ground g;
  child other("takes_part", {g.url, "3", std::to_string(a_month.count())});
  other.expect_line();
  const auto session = holdfast::open(g.url);
  other.tell("arrive");
  g.await_waiters(session, "b", 1);
  barrier mine{session, "b", 3};
  auto arrival = mine.arrive();
  other.kill();
  EXPECT_EQ(failure_of([&] { mine.wait(std::move(arrival)); }), errc::lost);
}

TEST(barriers, a_participant_stopped_beyond_its_lease_breaks_the_barrier) {
  ground g;
  child other("takes_part", {g.url, "2", "2000"});
  other.expect_line();
  barrier mine{holdfast::open(g.url), "b", 2};
  other.tell("arrive");
  mine.arrive_and_wait();
  EXPECT_EQ(other.expect_line(), "through");
  g.stop(other);
  EXPECT_EQ(failure_of([&] { mine.arrive_and_wait(); }), errc::lost);
  other.resume();
  other.tell("arrive");
  EXPECT_EQ(other.expect_line(), "broken");
}

/// A waiter that is first in the queue, before a thread of this process.
struct line_of_two : ground {
  child first{"waits_for_news", {url}};
  holdfast::session session = holdfast::open(url);
  holdfast::mutex lock{session, "m"};
  condition_variable news{session, "c"};
  std::thread second;

  line_of_two() {
    await_waiters(session, "c", 1);
    second = std::thread([this] {
      std::unique_lock locked{lock};
      news.wait(locked);
    });
    await_waiters(session, "c", 2);
  }
};

TEST(conditions, a_notification_for_a_dead_waiter_goes_to_the_next) {
  line_of_two line;
  line.first.kill();
  line.news.notify_one();
  line.second.join();
}

TEST(conditions, a_notification_for_a_waiter_that_sleeps_goes_to_the_next) {
  line_of_two line;
  line.stop(line.first);
  line.news.notify_one();
  line.second.join();
  line.first.resume();
  EXPECT_EQ(line.first.expect_line(), "woken") << "its place has gone: that may happen";
}

}  // namespace
