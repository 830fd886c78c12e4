#include <gtest/gtest.h>

#include <atomic>

#include "harness/passing_on.hpp"
#include "primitive/rate_rules.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

// A request that is repeated because its reply was lost counts once, however long that takes.
namespace {

using namespace engine_test;
using holdfast::boot_time;
using holdfast::errc;
using holdfast::failure;
using holdfast::store::countdown_verb;
using holdfast::store::rate_verb;

/// A clock that advances as far as a waiting thread wants.
class hasty_clock final : public holdfast::clock {
 public:
  void advance(std::chrono::nanoseconds by) { now_ += by.count(); }

  boot_time now() const noexcept override { return boot_time{std::chrono::nanoseconds(now_)}; }
  void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                  boot_time until) override {
    if (until == holdfast::forever) return cv.wait(lock);
    const auto wanted = until.time_since_epoch().count();
    for (auto t = now_.load(); t < wanted && !now_.compare_exchange_weak(t, wanted);) {
    }
  }
  std::chrono::nanoseconds sleep_for(boot_time) const noexcept override { return 0ns; }
  int on_advance(std::function<void()>) override { return 0; }
  void forget(int) noexcept override {}

 private:
  std::atomic<std::int64_t> now_{std::chrono::nanoseconds(1h).count()};
};

/// Carries out the first few requests, slowly, and loses the answers.
class deaf final : public harness::passing_on {
 public:
  deaf(std::unique_ptr<session_store> inner, std::shared_ptr<hasty_clock> on, int times,
       std::chrono::seconds each)
      : passing_on(std::move(inner)), clock_(std::move(on)), times_(times), each_(each) {}

  holdfast::result<holdfast::store::countdown_reply> countdown(
      std::string_view name, const holdfast::store::countdown_command& c) override {
    auto reply = inner_->countdown(name, c);
    if (c.verb != countdown_verb::arrive || times_-- <= 0) return reply;
    return lost();
  }
  holdfast::result<holdfast::store::rate_reply> rate(
      std::string_view name, const holdfast::store::rate_command& c) override {
    auto reply = inner_->rate(name, c);
    if (c.verb != rate_verb::refund || times_-- <= 0) return reply;
    return lost();
  }

 private:
  failure lost() {
    clock_->advance(each_);
    return {errc::unavailable, "the reply was lost", true};
  }

  const std::shared_ptr<hasty_clock> clock_;
  int times_;
  const std::chrono::seconds each_;
};

/// The answer to the first refund is lost so late that there is just time for another, which is on
/// its way for half a minute.
class deaf_and_far final : public harness::passing_on {
 public:
  deaf_and_far(std::unique_ptr<session_store> inner, std::shared_ptr<hasty_clock> on)
      : passing_on(std::move(inner)), clock_(std::move(on)) {}

  holdfast::result<holdfast::store::rate_reply> rate(
      std::string_view name, const holdfast::store::rate_command& c) override {
    if (c.verb != rate_verb::refund) return inner_->rate(name, c);
    if (asked_++ > 0) clock_->advance(29s);
    auto reply = inner_->rate(name, c);
    if (asked_ > 1) return reply;
    clock_->advance(40s);
    return failure{errc::unavailable, "the reply was lost", true};
  }

 private:
  const std::shared_ptr<hasty_clock> clock_;
  int asked_ = 0;
};

/// Carries out the first request, loses the answer, and is away from then on.
class then_away final : public harness::passing_on {
 public:
  using passing_on::passing_on;
  holdfast::result<holdfast::store::countdown_reply> countdown(
      std::string_view name, const holdfast::store::countdown_command& c) override {
    if (c.verb != countdown_verb::arrive) return inner_->countdown(name, c);
    if (std::exchange(away_, true)) return failure{errc::unavailable, "connection refused"};
    EXPECT_TRUE(inner_->countdown(name, c));
    return failure{errc::unavailable, "the reply was lost", true};
  }

 private:
  bool away_ = false;
};

class repeats : public testing::Test {
 protected:
  /// A store whose first replies are lost, each after that time.
  holdfast::session open(std::chrono::milliseconds store_timeout, int lost,
                         std::chrono::seconds each) {
    holdfast::session_options o;
    o.clock = clock_;
    o.store_timeout = store_timeout;
    o.decorate = [=, on = clock_](auto inner) {
      return std::make_unique<deaf>(std::move(inner), on, lost, each);
    };
    return holdfast::open("memory:", std::move(o));
  }
  template <class F>
  static errc reason_of(F call) {
    try {
      call();
    } catch (const holdfast::error& e) {
      EXPECT_TRUE(e.outcome_unknown());
      return e.reason();
    }
    return errc{};
  }

  const std::shared_ptr<hasty_clock> clock_ = std::make_shared<hasty_clock>();
};

TEST_F(repeats, an_arrival_counts_once_however_long_the_session_keeps_trying) {
  for (const std::chrono::milliseconds store_timeout : {10'000ms, 600'000ms}) {
    auto s = open(store_timeout, 2, std::chrono::ceil<std::chrono::seconds>(store_timeout / 3));
    holdfast::latch local_queue{s, "gate", 3};
    EXPECT_EQ(reason_of([&] { local_queue.count_down(); }), errc{});
    EXPECT_EQ(local_queue.remaining(), 2U);
  }
}

TEST_F(repeats, an_arrival_whose_reply_was_lost_is_in_doubt_though_a_later_attempt_was_refused) {
  holdfast::session_options o;
  o.clock = clock_;
  o.store_timeout = 1s;
  o.decorate = [](auto inner) { return std::make_unique<then_away>(std::move(inner)); };
  auto s = holdfast::open("memory:", std::move(o));
  holdfast::latch gate{s, "gate", 3};
  EXPECT_EQ(reason_of([&] { gate.count_down(); }), errc::unavailable) << "and it says so";
  EXPECT_EQ(gate.remaining(), 2U);
}

TEST_F(repeats, an_arrival_is_not_sent_again_when_the_store_may_have_forgotten_it) {
  auto s = open(10s, 1, 3'600s);  // the machine slept
  holdfast::latch local_queue{s, "gate", 3};
  EXPECT_EQ(reason_of([&] { local_queue.count_down(); }), errc::unavailable);
  EXPECT_EQ(local_queue.remaining(), 2U);
}

TEST_F(repeats, a_refund_is_not_sent_again_when_the_store_may_have_forgotten_it) {
  auto s = open(600s, 1, 50s);
  holdfast::rate_limiter tokens{s, "tokens", {{.tokens = 10, .per = 24h * 30}}};
  ASSERT_TRUE(tokens.try_take(10));
  EXPECT_EQ(reason_of([&] { tokens.refund(3); }), errc::unavailable);
  EXPECT_EQ(tokens.peek().rules.at(0).remaining, 3U);
}

// Its last repetition may be on its way for as long as an arrival's.
TEST_F(repeats, a_refund_whose_repetition_is_half_a_minute_under_way_counts_once) {
  holdfast::session_options o;
  o.clock = clock_;
  o.store_timeout = 600s;
  o.decorate = [=, on = clock_](auto inner) {
    return std::make_unique<deaf_and_far>(std::move(inner), on);
  };
  auto s = holdfast::open("memory:", std::move(o));
  holdfast::rate_limiter tokens{s, "tokens", {{.tokens = 10, .per = 24h * 30}}};
  ASSERT_TRUE(tokens.try_take(10));
  EXPECT_EQ(reason_of([&] { tokens.refund(3); }), errc::unavailable);
  EXPECT_EQ(tokens.peek().rules.at(0).remaining, 3U);
}

// As after a take that was called off.
TEST_F(repeats, tokens_refunded_without_an_answer_are_not_refunded_twice) {
  auto s = open(600s, 1, 70s);
  const holdfast::rate_rule rule{.tokens = 10, .per = 24h * 30};
  holdfast::rate_limiter tokens{s, "tokens", {rule}};
  ASSERT_TRUE(tokens.try_take(10));
  const auto rules = *holdfast::primitive::rate_rules::check({rule}, 0);
  const auto buckets = *rules->buckets_of({});
  const auto choices = rules->choices(buckets);
  auto& session = *s.impl();
  const auto owner = session.new_owner();
  session.refund("tokens", {rate_verb::take, owner, 3, 0, 0, choices});
  harness::eventually("it is over", [&] { return !session.callers().call_for(owner); });
  EXPECT_EQ(tokens.peek().rules.at(0).remaining, 3U);
}

TEST_F(repeats, a_count_down_without_a_store_timeout_works_as_any_other) {
  auto s = open(std::chrono::milliseconds::max(), 1, 100s);
  holdfast::latch local_queue{s, "gate", 3};
  EXPECT_EQ(reason_of([&] { local_queue.count_down(); }), errc{});
  EXPECT_EQ(local_queue.remaining(), 2U);
}

}  // namespace
