#pragma once

#include "wait/acquire.hpp"

namespace holdfast::engine {

/// Asks for another weight of what is held, again and again as long as nobody knows whether the
/// store has changed it: a writer that became a reader there, and does not know, would go on
/// writing while others read. Who is told of a loss may give the lease back: the hold is kept until
/// the end.
class resizing final : public request {
 public:
  resizing(session_impl& session, std::shared_ptr<hold> held, std::uint32_t weight)
      : session_(session), hold_(std::move(held)), weight_(weight) {}

  /// By a thread, which waits for the answer. False if there is no room.
  result<bool> run() {
    if (auto usable = session_.usable(); !usable) return std::move(usable.error());
    const timed_call call(session_.now(), no_limit);
    try {
      return end(wait_until_settled(session_, session_.ids().next(), *this, call));
    } catch (...) {
      give_up();
      throw;
    }
  }

  /// Without memory to find out. What may have become weaker is not to be relied on.
  void give_up() noexcept {
    if (unknown_) (void)hold_->give_up_stronger_than(weight_);
  }

  /// What came of it. What may have become weaker is not to be relied on.
  result<bool> end(status settled) {
    if (refused_) return std::move(*refused_);
    if (settled) return room_;
    failure why = std::move(settled.error());
    if (unknown_ && why.code != errc::lost && hold_->give_up_stronger_than(weight_)) {
      why.code = errc::lost;
      why.what =
          "the store did not say whether it carried out the downgrade, and readers may already "
          "hold the lock, so the lock is given up: " +
          why.what;
    }
    why.outcome_unknown = why.outcome_unknown || unknown_;
    return why;
  }

  result<std::optional<wait_hint>> ask(bool) override {
    const auto c = hold_->to_resize(weight_);
    if (!c) return c.error();
    const bool was_unknown = std::exchange(unknown_, true);  // also if it throws
    auto reply = session_.permits(hold_->name(), *c);
    unknown_ = was_unknown;
    return learn(std::move(reply), {});
  }
  std::optional<store::named_command> command(bool) override {
    const auto c = hold_->to_resize(weight_);
    return c ? std::optional(store::named_command{hold_->name(), *c}) : std::nullopt;
  }
  result<std::optional<wait_hint>> learn(result<store::permits_reply> reply, boot_time) override {
    if (!reply && !unknown_ && !reply.error().outcome_unknown) {
      refused_ = std::move(reply.error());
      return std::optional<wait_hint>{};
    }
    if (!reply) {
      unknown_ = true;
      return std::move(reply.error());
    }
    unknown_ = false;
    auto changed = hold_->resized(weight_, *reply);
    if (!changed) return std::move(changed.error());
    room_ = *changed;
    return std::optional<wait_hint>{};
  }

 private:
  session_impl& session_;
  const std::shared_ptr<hold> hold_;
  const std::uint32_t weight_;
  bool unknown_ = false;
  bool room_ = false;
  std::optional<failure> refused_;  ///< for sure: nothing was changed
};

}  // namespace holdfast::engine
