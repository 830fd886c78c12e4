#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <holdfast/holdfast.hpp>
#include <holdfast/testing.hpp>

#include "harness/eventually.hpp"
#include "harness/failing.hpp"

namespace harness {

/// One name, which a session holds and two others wait for, in this order.
class hand_over_line {
 public:
  hand_over_line(holdfast::session& a, holdfast::session& b, holdfast::session& c)
      : a_(a), b_(b), c_(c) {
    line_up();
  }

  /// The first lease is released, and the second waiter has confirmed that it has the lock. It has
  /// half a second for that: if this process is paused for longer, all line up again.
  holdfast::lease handed_over() {
    for (;;) {
      const auto began = clock::now();
      EXPECT_FALSE(held.release());
      holdfast::lease two = next.get().value();
      const auto late = outcome_of([&] { two.extend(); });
      if (!late.failed) return two;
      const auto took = clock::now() - began;
      if (late.reason != holdfast::errc::lost ||
          took <= std::chrono::microseconds(b_.can().claim_us) * 9 / 10) {
        ADD_FAILURE() << "lost too soon: " << late.text;
        return two;
      }
      EXPECT_TRUE(last.get().value());
      held = first_.acquire();
      line_up();
    }
  }

  /// Each waiter is notified, and sends no command.
  void expect_one_command_each() {
    const auto of_b = b_.store_operations(), of_c = c_.store_operations();
    auto began = clock::now();
    EXPECT_FALSE(held.release());
    holdfast::lease two = next.get().value();
    expect_it_asked_nothing(b_, of_b, began);
    EXPECT_EQ(two.fence(), a_.show("m").holders.at(0).fence);
    began = clock::now();
    EXPECT_FALSE(two.release());
    const holdfast::lease three = last.get().value();
    expect_it_asked_nothing(c_, of_c, began);
    EXPECT_EQ(three.fence(), a_.show("m").holders.at(0).fence);
  }

  /// `forge` sends the third session the notification that the second one got: the third session
  /// asks, and continues to wait.
  void expect_the_third_asks_after(const std::function<void()>& forge) {
    const auto asked = c_.store_operations();
    forge();
    eventually("it asks", [&] { return c_.store_operations() > asked; });
    EXPECT_EQ(last.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    EXPECT_EQ(a_.show("m").waiters.size(), 1U);
  }

 private:
  using clock = std::chrono::steady_clock;

  // A grant must be claimed within half a second: a session that is notified late asks whether it
  // still has the grant.
  static void expect_it_asked_nothing(const holdfast::session& s, std::uint64_t before,
                                      clock::time_point began) {
    const bool late = clock::now() - began > std::chrono::milliseconds(200);
    EXPECT_LE(s.store_operations(), before + (late ? 1 : 0));
  }
  void line_up() {
    next = async_acquire(second_).future();
    await_waiters(1);
    last = async_acquire(third_).future();
    await_waiters(2);
  }
  void await_waiters(std::size_t n) {
    eventually("waiters", [&] { return a_.show("m").waiters.size() == n; });
  }

  holdfast::session &a_, &b_, &c_;
  holdfast::fair_mutex first_{a_, "m"}, second_{b_, "m"}, third_{c_, "m"};

 public:
  holdfast::lease held = first_.acquire();
  std::future<holdfast::result<holdfast::lease>> next, last;
};

/// One name that `at` holds, and for which another session waits without any answer: its requests
/// are carried out, and the answers are lost.
class deaf_waiter {
 public:
  deaf_waiter(holdfast::session& at, const std::string& url)
      : at_(at), deaf_(holdfast::open(url, hears_nothing())) {
    eventually("its place", [&] { return at_.show("m").waiters.size() == 1; });
  }
  const holdfast::session& session() const { return deaf_; }
  /// The waiter gets no lock, whatever was sent to it meanwhile.
  void expect_it_gets_nothing() {
    EXPECT_FALSE(got_.get().ok());
    EXPECT_NO_THROW(held_.check());
    EXPECT_EQ(at_.show("m").holders.at(0).fence, held_.fence());
  }

 private:
  static holdfast::session_options hears_nothing() {
    using holdfast::testing::fault;
    holdfast::testing::fault_plan plan;
    plan.choose = [](auto, auto, auto verb) {
      return verb == holdfast::store::permits_verb::acquire ? fault::drop_reply : fault::none;
    };
    holdfast::session_options o;
    o.decorate = holdfast::testing::faulty(plan);
    return o;
  }

  holdfast::session& at_;
  holdfast::session deaf_;
  holdfast::fair_mutex first_{at_, "m"}, second_{deaf_, "m"};
  const holdfast::lease held_ = first_.acquire();
  std::future<holdfast::result<holdfast::lease>> got_ =
      async_acquire(second_, std::chrono::seconds(2)).future();
};

}  // namespace harness
