#pragma once

#include <atomic>
#include <deque>
#include <limits>

#include "harness/passing_on.hpp"
#include "session/session_impl.hpp"
#include "stage.hpp"

namespace engine_test {

using holdfast::store::notification;
using holdfast::store::notification_kind;
using holdfast::store::permits_command;
using holdfast::store::permits_reply;

/// An inbox into which others put notifications that the store did not send.
class forged_inbox final : public holdfast::store::inbox {
 public:
  explicit forged_inbox(holdfast::store::inbox& true_one) : true_one_(true_one) {}
  const std::string& peer() const noexcept override { return true_one_.peer(); }
  std::optional<notification> receive(holdfast::boot_time until) override {
    {
      const std::lock_guard guard{mutex_};
      if (!forged_.empty()) {
        auto first = std::move(forged_.front());
        forged_.pop_front();
        return first;
      }
    }
    return true_one_.receive(until);
  }
  void interrupt() noexcept override { true_one_.interrupt(); }
  std::optional<std::uint64_t> gaps() const noexcept override { return gaps_; }
  /// As if the connection had been away.
  void miss() { ++gaps_; }
  void put(notification n) {
    {
      const std::lock_guard guard{mutex_};
      forged_.push_back(std::move(n));
    }
    true_one_.interrupt();
  }

 private:
  holdfast::store::inbox& true_one_;
  std::mutex mutex_;
  std::deque<notification> forged_;
  std::atomic<std::uint64_t> gaps_{0};
};

class forgeable final : public harness::passing_on {
 public:
  forgeable(std::unique_ptr<session_store> inner, forged_inbox*& shown, bool proves)
      : passing_on(std::move(inner)), can_(inner_->can()), inbox_(inner_->inbox()) {
    can_.secret_proves = proves;
    shown = &inbox_;
  }
  const holdfast::store::capabilities& can() const noexcept override { return can_; }
  holdfast::store::inbox& inbox() noexcept override { return inbox_; }
  holdfast::result<permits_reply> permits(std::string_view name,
                                          const permits_command& c) override {
    return inner_->permits(name, c);
  }

 private:
  holdfast::store::capabilities can_;
  forged_inbox inbox_;
};

/// A session over memory whose store does as the test wants, and into whose inbox others put
/// notifications. `proves`: as capabilities::secret_proves.
struct forgery {
  explicit forgery(bool proves = false) : session(holdfast::open("memory:", options(proves))) {}
  ~forgery() { script->let_go(); }

  holdfast::session_options options(bool proves) {
    holdfast::session_options o;
    o.clock = clock;
    holdfast::testing::fault_plan plan;
    plan.choose = [s = script](auto, auto, auto v) { return s->choose(v); };
    auto faulty = holdfast::testing::faulty(plan, clock);
    o.decorate = [this, faulty, proves](auto inner) {
      return std::make_unique<forgeable>(faulty(std::move(inner)), inbox, proves);
    };
    return o;
  }
  notification for_the_waiter(const std::string& name, notification_kind what) const {
    notification n;
    n.what = what;
    n.name = name;
    n.owner = session.impl()->permits(name, {})->found.queue.front().owner;
    n.fence = std::uint64_t{1} << 51;
    n.expires_at = std::numeric_limits<std::int64_t>::max() / 2;
    return n;
  }
  void await_waiters(const std::string& name, std::size_t n) const {
    harness::eventually("waiters", [&] { return session.show(name).waiters.size() >= n; });
  }

  std::shared_ptr<holdfast::testing::fake_clock> clock =
      std::make_shared<holdfast::testing::fake_clock>();
  std::shared_ptr<engine_test::script> script = std::make_shared<engine_test::script>();
  forged_inbox* inbox = nullptr;
  holdfast::session session;
};

}  // namespace engine_test
