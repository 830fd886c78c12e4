#pragma once

#include <atomic>
#include <holdfast/testing.hpp>
#include <memory>
#include <vector>

#include "harness/passing_on.hpp"

namespace engine_test {

/// How late the answers to commands of one verb come.
struct delay {
  std::atomic<holdfast::store::permits_verb> verb{holdfast::store::permits_verb::acquire};
  std::atomic<std::chrono::nanoseconds> each{};
  std::atomic<int> times{1'000'000};  ///< and then no more

  void pass(holdfast::store::permits_verb of, holdfast::testing::fake_clock& clock) {
    const std::chrono::nanoseconds late = each;
    if (of != verb || late <= late.zero() || times.fetch_sub(1) <= 0) return;
    clock.advance(late);
  }
};

/// A store that carries out a command at once, and delays its answer.
class slow_to_answer final : public harness::passing_on {
 public:
  slow_to_answer(std::unique_ptr<session_store> inner, std::shared_ptr<delay> d,
                 std::shared_ptr<holdfast::testing::fake_clock> clock)
      : passing_on(std::move(inner)), delay_(std::move(d)), clock_(std::move(clock)) {}

  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    return arrived(c.verb, inner_->permits(name, c));
  }
  std::vector<holdfast::result<holdfast::store::permits_reply>> execute_batch(
      std::span<const holdfast::store::named_command> batch) override {
    return arrived(batch.front().command.verb, inner_->execute_batch(batch));
  }
  holdfast::result<std::vector<holdfast::store::permits_reply>> acquire_together(
      std::span<const holdfast::store::named_command> all) override {
    return arrived(holdfast::store::permits_verb::acquire, inner_->acquire_together(all));
  }
  holdfast::result<holdfast::store::rate_reply> rate(
      std::string_view name, const holdfast::store::rate_command& c) override {
    return inner_->rate(name, c);
  }
  holdfast::result<holdfast::store::identity> identify() override { return inner_->identify(); }
  holdfast::result<holdfast::store::admission> admit(
      const holdfast::store::named_command& asks, std::string_view limiter,
      const holdfast::store::rate_command& take) override {
    return arrived(holdfast::store::permits_verb::acquire, inner_->admit(asks, limiter, take));
  }

 private:
  template <class Reply>
  Reply arrived(holdfast::store::permits_verb verb, Reply reply) {
    delay_->pass(verb, *clock_);
    return reply;
  }

  const std::shared_ptr<delay> delay_;
  const std::shared_ptr<holdfast::testing::fake_clock> clock_;
};

}  // namespace engine_test
