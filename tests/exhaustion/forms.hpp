#pragma once

#include <atomic>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "engine/stage.hpp"
#include "exhaustion/failing_memory.hpp"

/// All functions of a session, each as one form that is tried with too little memory.
namespace exhaustion {

using namespace std::chrono_literals;

/// One session with one of each primitive.
struct world {
  explicit world(const std::string& url) : s(url) {}

  engine_test::stage s;
  holdfast::session& session = s.session;
  holdfast::mutex plain{session, "plain"}, other{session, "other"};
  holdfast::fair_mutex fair{session, "fair"};
  holdfast::recursive_mutex again{session, "again"};
  holdfast::shared_mutex shared{session, "shared"};
  holdfast::semaphore permits{session, "permits", 3};
  holdfast::expiring_semaphore expiring{session, "expiring", 3};
  holdfast::election leads{session, "leads"};
  holdfast::condition_variable condition{session, "condition"};
  holdfast::rate_limiter limiter{session, "limiter", {{1'000'000, 1s}}};
  holdfast::admission door{limiter, holdfast::permits(permits, 1)};
  holdfast::multi_lock all{plain, fair, holdfast::permits(permits, 2)};
  holdfast::both<holdfast::mutex, holdfast::mutex> pair{plain, other};
  // The store takes real time to answer, and the test's clock runs faster: a shorter limit would be
  // over before.
  holdfast::redlock most{{session}, "most", {.node_timeout = 1h}};

  /// Waits for the result, with as much memory as this thread wants and the clock advancing; throws
  /// the error.
  template <class T>
  T result_of(holdfast::pending<T> begun);
  /// The same, after `meanwhile`.
  template <class T, class Meanwhile>
  T result_of(holdfast::pending<T> begun, Meanwhile meanwhile);
  /// Advances the clock, but never by so much that a lease without renewal could end.
  void go_on();
  /// Nothing is held and nobody waits, or soon so; then everything can be acquired.
  void expect_all_free();

 private:
  std::atomic<int> gone_on_{0};
};

struct form {
  const char* name;
  void (*run)(world&);
  bool is_remembered = false;  ///< by the store, when it is over
};
void PrintTo(const form& f, std::ostream* to);

const std::vector<form>& blocking_forms();
const std::vector<form>& forms_without_thread();

// ----

template <class T>
T world::result_of(holdfast::pending<T> begun) {
  return result_of(std::move(begun), [] {});
}

template <class T, class Meanwhile>
T world::result_of(holdfast::pending<T> begun, Meanwhile meanwhile) {
  auto result = std::move(begun).future();
  const enough_memory here;
  meanwhile();
  harness::eventually("a result", [&] {
    go_on();
    return result.wait_for(0s) == std::future_status::ready;
  });
  return result.get().value();
}

}  // namespace exhaustion
