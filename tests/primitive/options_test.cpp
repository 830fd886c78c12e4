#include <gtest/gtest.h>

#include <functional>
#include <holdfast/holdfast.hpp>
#include <map>
#include <string>

#include "harness/failing.hpp"

// The options of a lock, and unsupported ones, are not secret.
namespace {

using namespace std::chrono_literals;
using holdfast::lock_options;
using holdfast::session;

using maker = std::function<void(const session&, const lock_options&)>;

const std::map<std::string, maker> without_local_queue{
    {"fair_mutex",
     [](const session& s, const lock_options& o) { holdfast::fair_mutex(s, "fair", o); }},
    {"shared_mutex",
     [](const session& s, const lock_options& o) {
       holdfast::shared_mutex(s, "shared", holdfast::shared_mutex_options{o});
     }},
    {"semaphore",
     [](const session& s, const lock_options& o) { holdfast::semaphore(s, "permits", 2, o); }},
    {"counting_semaphore",
     [](const session& s, const lock_options& o) {
       holdfast::counting_semaphore(s, "counted", 2, o);
     }},
    {"expiring_semaphore",
     [](const session& s, const lock_options& o) {
       holdfast::expiring_semaphore(s, "expiring", 2, o);
     }},
};

const std::map<std::string, maker> with_local_queue{
    {"mutex", [](const session& s, const lock_options& o) { holdfast::mutex(s, "m", o); }},
    {"recursive_mutex",
     [](const session& s, const lock_options& o) { holdfast::recursive_mutex(s, "r", o); }},
};

const std::map<std::string, lock_options> about_the_local_queue{
    {"linger", {.linger = 1ms}},
    {"local_time", {.local_time = 0us}},
    {"max_bypass", {.max_bypass = 0}},
    {"max_waiters", {.max_waiters = 5}},
};

TEST(lock_options, of_the_local_queue_are_refused_by_locks_without_one) {
  const session s = holdfast::open("memory:");
  for (const auto& [primitive, make] : without_local_queue) {
    EXPECT_NO_THROW(make(s, {})) << primitive;
    for (const auto& [option, set] : about_the_local_queue) {
      if (primitive == "shared_mutex" && option == "max_waiters") continue;  // its readers have it
      const auto refused = harness::outcome_of([&] { make(s, set); });
      EXPECT_EQ(refused.reason, holdfast::errc::invalid_argument) << primitive << ' ' << option;
      EXPECT_TRUE(harness::contains(refused.text, primitive)) << refused.text;
      EXPECT_TRUE(harness::contains(refused.text, option + " would have no effect"))
          << refused.text;
    }
  }
}

// Each call sets how long its permit lasts, and nobody renews it.
TEST(lock_options, of_a_renewed_hold_are_refused_for_permits_that_expire) {
  const session s = holdfast::open("memory:");
  const auto make = [&](const lock_options& o) { holdfast::expiring_semaphore(s, "e", 2, o); };
  EXPECT_NO_THROW(make({.reason = "shown by holdfast list"}));
  const std::map<std::string, lock_options> about_the_hold{
      {"lease", {.lease = 1s}},
      {"renew", {.renew = false}},
      {"max_hold", {.max_hold = 1h}},
      {"unconfirmed_release", {.unconfirmed_release = true}},
  };
  for (const auto& [option, set] : about_the_hold) {
    const auto refused = harness::outcome_of([&] { make(set); });
    EXPECT_EQ(refused.reason, holdfast::errc::invalid_argument) << option;
    EXPECT_TRUE(harness::contains(refused.text, option + " would have no effect")) << refused.text;
  }
}

TEST(lock_options, of_the_local_queue_are_accepted_by_locks_with_one) {
  const session s = holdfast::open("memory:");
  for (const auto& [primitive, make] : with_local_queue) {
    for (const auto& [option, set] : about_the_local_queue) {
      EXPECT_NO_THROW(make(s, set)) << primitive << ' ' << option;
    }
  }
}

// A reader of the message has many locks, and several stores.
TEST(refused_options, are_reported_with_the_name_and_the_store) {
  const session s = holdfast::open("memory:refused-options");
  holdfast::mutex a(s, "q"), b(s, "r", {.lease = 7s});
  holdfast::multi_lock held_twice{a};
  held_twice.lock();
  const std::map<std::string, std::function<void()>> all{
      {"latch of none", [&] { holdfast::latch(s, "q", 0); }},
      {"latch kept for ever",
       [&] { holdfast::latch(s, "q", 1, {.keep = std::chrono::seconds::max()}); }},
      {"semaphore", [&] { holdfast::semaphore(s, "q", 0); }},
      {"counting_semaphore", [&] { holdfast::counting_semaphore(s, "q", 0); }},
      {"expiring_semaphore", [&] { holdfast::expiring_semaphore(s, "q", 0); }},
      {"barrier", [&] { holdfast::barrier(s, "q", 0); }},
      {"rate_limiter", [&] { holdfast::rate_limiter(s, "q", {}); }},
      {"multi_lock of one twice", [&] { holdfast::multi_lock{a, a}; }},
      {"multi_lock of other terms", [&] { holdfast::multi_lock{b, a}; }},
      {"multi_lock for no time", [&] { (void)holdfast::multi_lock{a}.acquire(0ms); }},
      {"multi_lock held", [&] { held_twice.lock(); }},
      {"redlock", [&] { holdfast::redlock({s}, "q", {.node_timeout = 0ms}); }},
      {"election", [&] { holdfast::election(s, "q", {.lease = 1ms}); }},
  };
  for (const auto& [what, make] : all) {
    const auto refused = harness::outcome_of(make);
    ASSERT_TRUE(refused.failed) << what;
    const auto begins = "holdfast: " + what.substr(0, what.find(' ')) + " '";
    EXPECT_TRUE(refused.text.starts_with(begins)) << what << ": " << refused.text;
    EXPECT_TRUE(harness::contains(refused.text, "' on memory:refused-options: "))
        << what << ": " << refused.text;
  }
  held_twice.unlock();
}

}  // namespace
