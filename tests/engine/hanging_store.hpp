#pragma once

#include <atomic>

#include "harness/passing_on.hpp"
#include "stage.hpp"

namespace engine_test {

using holdfast::store::permits_verb;

/// Whether the store hangs, and the calls that wait in it.
class switchboard {
 public:
  void hang() {
    const std::lock_guard guard{mutex_};
    hangs_ = true;
  }
  /// Commands for permits pass, and everything else hangs.
  void hang_but_for_permits() {
    permits_pass = true;
    hang();
  }
  void let_go() {
    const std::lock_guard guard{mutex_};
    hangs_when_left_ = hangs_ = false;
    changed_.notify_all();
  }
  /// Hangs as soon as a waiter leaves a latch. (The request of a late thread may come when all is
  /// let go: then it passes.)
  void hang_when_left() {
    const std::lock_guard guard{mutex_};
    hangs_when_left_ = true;
  }
  void is_left() {
    const std::lock_guard guard{mutex_};
    hangs_ = hangs_ || hangs_when_left_;
  }
  /// Requests for one owner in place of another pass, and everything else hangs.
  void let_hand_overs_go() {
    const std::lock_guard guard{mutex_};
    hand_overs_pass_ = true;
    changed_.notify_all();
  }
  /// Only requests for one owner in place of another hang.
  std::atomic<bool> only_hand_overs{false};
  /// Refuses acquisitions, at once.
  std::atomic<bool> refuses{false};
  std::atomic<bool> no_memory{false};
  std::atomic<bool> permits_pass{false};
  std::atomic<bool> grants_in_vain_once{false};
  /// The number of takes of tokens and admissions that have come here, and that were carried out.
  std::atomic<int> to_take{0}, taken{0};
  void pass(bool hand_over = false) {
    std::unique_lock lock{mutex_};
    ++waiting_;
    changed_.wait(lock, [&] { return !hangs_ || (hand_over && hand_overs_pass_); });
    --waiting_;
  }
  std::size_t hanging() {
    const std::lock_guard guard{mutex_};
    return hangs_ ? waiting_ : 0;
  }
  void await_hanging(std::size_t n) {
    harness::eventually("calls that hang", [&] { return hanging() >= n; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false, hangs_when_left_ = false;
  std::size_t waiting_ = 0;
  bool hand_overs_pass_ = false;
};

class hanging final : public harness::passing_on {
 public:
  hanging(std::unique_ptr<session_store> inner, std::shared_ptr<switchboard> by)
      : passing_on(std::move(inner)), by_(std::move(by)), can_(inner_->can()) {
    can_.try_takes_ms = 100;
    can_.several_processes = true;  // otherwise the engine knows that nothing can hang
  }
  const holdfast::store::capabilities& can() const noexcept override { return can_; }
  holdfast::result<holdfast::store::permits_reply> permits(
      std::string_view name, const holdfast::store::permits_command& c) override {
    if (c.verb == permits_verb::acquire && by_->refuses) {
      return holdfast::failure{holdfast::errc::unavailable, "not now", true};
    }
    if (c.verb == permits_verb::acquire && by_->grants_in_vain_once.exchange(false)) {
      return granted_in_vain();
    }
    if (c.replaces && by_->no_memory.exchange(false)) throw std::bad_alloc();
    const bool passes = by_->permits_pass || (by_->only_hand_overs && !c.replaces);
    if (!passes) by_->pass(bool(c.replaces));
    return inner_->permits(name, c);
  }
  holdfast::result<holdfast::store::countdown_reply> countdown(
      std::string_view name, const holdfast::store::countdown_command& c) override {
    if (c.verb == holdfast::store::countdown_verb::leave) by_->is_left();
    by_->pass();
    return inner_->countdown(name, c);
  }
  holdfast::result<holdfast::store::rate_reply> rate(
      std::string_view name, const holdfast::store::rate_command& c) override {
    const bool takes = c.verb == holdfast::store::rate_verb::take;
    if (takes) ++by_->to_take;
    by_->pass();
    auto reply = inner_->rate(name, c);
    if (takes) ++by_->taken;
    return reply;
  }
  std::vector<holdfast::result<holdfast::store::permits_reply>> execute_batch(
      std::span<const holdfast::store::named_command> batch) override {
    if (batch.front().command.verb == permits_verb::acquire &&
        by_->grants_in_vain_once.exchange(false)) {
      return {batch.size(), granted_in_vain()};
    }
    if (!by_->permits_pass) by_->pass();
    return inner_->execute_batch(batch);
  }
  holdfast::result<std::vector<holdfast::store::permits_reply>> acquire_together(
      std::span<const holdfast::store::named_command> all) override {
    by_->pass();
    return inner_->acquire_together(all);
  }
  holdfast::result<holdfast::store::admission> admit(
      const holdfast::store::named_command& permits, std::string_view limiter,
      const holdfast::store::rate_command& take) override {
    ++by_->to_take;
    by_->pass();
    auto reply = inner_->admit(permits, limiter, take);
    ++by_->taken;
    return reply;
  }

 private:
  static holdfast::failure granted_in_vain() {
    holdfast::failure f{holdfast::errc::unavailable, "granted in vain"};
    f.ack_missing = true;
    return f;
  }

  const std::shared_ptr<switchboard> by_;
  holdfast::store::capabilities can_;
};

struct hanging_store : testing::Test {
  ~hanging_store() override { store->let_go(); }

  static holdfast::session_options options_of(const std::shared_ptr<switchboard>& by) {
    holdfast::session_options o;
    o.decorate = [by](auto inner) { return std::make_unique<hanging>(std::move(inner), by); };
    return o;
  }
  holdfast::session open() const { return holdfast::open(url, options_of(store)); }
  void await_free(const std::string& name) const {
    store->let_go();
    harness::eventually("nothing stays", [&] {
      const auto info = session.show(name);
      return info.holders.empty() && info.waiters.empty();
    });
  }

  static inline std::atomic<int> number{0};
  const std::string url = "memory:hanging-" + std::to_string(++number);
  const std::shared_ptr<switchboard> store = std::make_shared<switchboard>();
  holdfast::session session = open();
};

}  // namespace engine_test
