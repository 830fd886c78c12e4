#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <holdfast/testing.hpp>
#include <memory>

#include "family/contender_family.hpp"
#include "harness/eventually.hpp"
#include "harness/threads_at_rest.hpp"
#include "kernel/fake_contender_store.hpp"

namespace kernel_test {

/// The family over a queue in memory, on a clock that stands still.
class contender_family : public testing::Test {
 protected:
  using permits_command = holdfast::store::permits_command;
  using permits_reply = holdfast::store::permits_reply;
  using permits_verb = holdfast::store::permits_verb;
  using contender = holdfast::store::contender;

  static constexpr std::int64_t second = 1'000'000;

  permits_command command(permits_verb verb, std::uint64_t owner, bool wait = true) const {
    permits_command c;
    c.verb = verb;
    c.owner = {0, owner};
    c.wait = wait;
    c.lease_us = 30 * second;
    c.queue_lease_us = 4 * second;
    return c;
  }
  /// One arrival of two.
  static holdfast::store::countdown_command arrival(holdfast::store::owner_id owner) {
    holdfast::store::countdown_command c;
    c.verb = holdfast::store::countdown_verb::arrive;
    c.owner = owner;
    c.count = 2;
    c.drop = 1;
    c.keep_us = 60 * second;
    return c;
  }
  /// At a latch of one.
  static holdfast::store::countdown_command wait_of(std::uint64_t owner, std::int64_t keep_s = 60) {
    holdfast::store::countdown_command c;
    c.verb = holdfast::store::countdown_verb::wait;
    c.owner = {0, owner};
    c.count = 1;
    c.keep_us = keep_s * second;
    c.queue_lease_us = 4 * second;
    return c;
  }
  permits_reply acquire(std::uint64_t owner, bool wait = true) {
    return family_->permits("n", command(permits_verb::acquire, owner, wait)).value();
  }
  permits_reply renew(std::uint64_t owner) {
    return family_->permits("n", command(permits_verb::renew, owner)).value();
  }
  permits_reply release(std::uint64_t owner) {
    return family_->permits("n", command(permits_verb::release, owner)).value();
  }
  static contender stranger(std::uint64_t id) {
    contender c;
    c.owner = {9, id};
    return c;
  }
  bool told(std::uint64_t owner) {
    const auto n = family_->inbox().receive(clock_.now());
    return n && n->what == holdfast::store::notification_kind::granted &&
           n->owner == holdfast::store::owner_id{0, owner};
  }
  /// For a store that triggers the alarm at once after each query. The waiter queries at each alarm
  /// (`looks`), and finds what it found before.
  void expect_ever_rarer_calls(std::uint64_t owner, const std::function<bool()>& looks) {
    int calls = 0;
    for (; calls < 100 && told(owner); ++calls) ASSERT_TRUE(looks());
    EXPECT_LE(calls, 4);
    for (int pauses = 0; pauses < 20 && !HasFailure(); ++pauses) {
      clock_.advance(std::chrono::milliseconds(90));
      if (pauses >= 10) {
        harness::until_threads_rest();
        ASSERT_FALSE(told(owner)) << "by now it waits for 100 ms";
      }
      clock_.advance(std::chrono::milliseconds(10));
      harness::eventually("it is called", [&] { return told(owner); });
      ASSERT_TRUE(looks());
      EXPECT_FALSE(told(owner));
    }
  }

  /// Waits until the family's thread has processed its jobs after that: it ends the hold of another
  /// name.
  void go_on_for_600_ms() {
    auto is_soon_over = command(permits_verb::acquire, 2);
    is_soon_over.lease_us = second / 2;
    ASSERT_EQ(family_->permits("other", is_soon_over)->outcome,
              holdfast::store::permits_outcome::granted);
    clock_.advance(std::chrono::milliseconds(600));
    harness::eventually("the thread has gone on", [&] { return port_.size("other") == 0; });
  }

  holdfast::testing::fake_clock clock_;
  fake_contender_store* const made_ = new fake_contender_store(clock_);
  fake_contender_store& port_ = *made_;
  std::unique_ptr<holdfast::store::session_store> family_ =
      holdfast::family::over(std::unique_ptr<holdfast::store::contender_store>(made_), clock_);
};

}  // namespace kernel_test
