#pragma once

#include "local/reader_group.hpp"
#include "wait/acquire.hpp"

namespace holdfast::engine {

/// Changes the weight of a held lease. The request is repeated as long as the store's decision is
/// unknown: a writer that the store has made a reader, without knowing it, would go on writing
/// while others read. A callback for the loss may release the lease, so the hold is kept until the
/// end.
class resizing final : public request {
 public:
  /// Increases the weight only if no reader of `beside` shares the hold.
  resizing(session_impl& session, std::shared_ptr<hold> held, std::uint32_t weight,
           std::shared_ptr<reader_group> beside = nullptr)
      : session_(session), hold_(std::move(held)), weight_(weight), beside_(std::move(beside)) {}

  /// The synchronous form: the calling thread waits for the answer. Returns false if there is no
  /// room.
  result<bool> run() {
    try {
      return end(
          wait_until_settled(session_, session_.new_owner(), *this, {session_.now(), no_limit}));
    } catch (...) {
      give_up();
      throw;
    }
  }

  /// Called without the memory to find out the decision: a hold that may have become weaker is
  /// given up.
  void give_up() noexcept {
    if (unknown_) (void)hold_->give_up_stronger_than(weight_);
  }

  /// Translates the end of the wait into the result. A hold that may have become weaker is given
  /// up.
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

  std::optional<store::named_command> command(bool) override {
    auto c = hold_->to_resize(weight_);
    if (!c) why_not_ = std::move(c.error());
    if (!c || is_shared()) return std::nullopt;
    was_unknown_ = std::exchange(unknown_, true);  // until the answer arrives
    return store::named_command{hold_->name(), *c};
  }
  answer ask(bool) override {
    if (why_not_) return std::move(*why_not_);
    return settled();  // other readers share the hold: there is no room
  }
  answer learn(result<store::permits_reply> reply, boot_time) override {
    unknown_ = was_unknown_;
    if (!reply && !unknown_ && !reply.error().outcome_unknown) {
      refused_ = std::move(reply.error());
      return settled();
    }
    if (!reply) {
      unknown_ = true;
      return std::move(reply.error());
    }
    unknown_ = false;
    auto changed = hold_->resized(weight_, *reply);
    if (!changed) return std::move(changed.error());
    room_ = *changed;
    return settled();
  }

 private:
  bool is_shared() const { return beside_ && !beside_->keep_alone(*hold_); }

  session_impl& session_;
  const std::shared_ptr<hold> hold_;
  const std::uint32_t weight_;
  const std::shared_ptr<reader_group> beside_;
  std::optional<failure> why_not_;
  bool unknown_ = false;
  bool was_unknown_ = false;  ///< the value of `unknown_` before the last request
  bool room_ = false;
  std::optional<failure> refused_;  ///< set if the store refused definitely: nothing was changed
};

}  // namespace holdfast::engine
