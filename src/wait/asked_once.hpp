#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "wait/pending_wait.hpp"

namespace holdfast::engine {

/// One command to one store, sent by the session's runner: no thread waits for the store, and the
/// command shares a round trip with the session's other commands of the same moment. Commands are
/// sent in the order of their start. A release by the keeper for the same owner is sent when no
/// command of that owner is under way.
class asked_once final : public short_operation {
 public:
  using answered = std::function<void(result<store::permits_reply>, boot_time sent, bool trusted)>;
  /// Whether a store that granted can be trusted. Called on the runner's thread, after the grant,
  /// because the store may have restarted until then. A failure replaces the answer.
  using doubt = std::function<result<bool>()>;

  /// `command` may point into `what`. `then` is called once, on the runner's thread; on the
  /// caller's thread if the runner cannot start its own.
  static void start(std::shared_ptr<session_impl> session, std::shared_ptr<const lock_config> what,
                    const store::permits_command& command, answered then, doubt trusted = {}) {
    const auto self = std::make_shared<asked_once>(std::move(session), std::move(what), command,
                                                   std::move(then), std::move(trusted));
    if (!self->session_->forked())
      self->under_way_.emplace(self->session_->callers(), command.owner);
    if (auto can = self->begin(); !can) self->then_(std::move(can.error()), boot_time{}, true);
  }

  asked_once(std::shared_ptr<session_impl> session, std::shared_ptr<const lock_config> what,
             const store::permits_command& command, answered then, doubt trusted)
      : short_operation(std::move(session)),
        what_(std::move(what)),
        command_(command),
        then_(std::move(then)),
        trusted_(std::move(trusted)) {}

  next step() override { return {.ask = store::named_command{what_->name, command_}}; }
  next answer(result<store::permits_reply> reply, boot_time sent) override {
    if (!trusted_ || !reply || reply->outcome != store::permits_outcome::granted) {
      return tell(std::move(reply), sent, true);
    }
    auto trusted = trusted_();
    if (!trusted) return tell(std::move(trusted.error()), sent, true);
    return tell(std::move(reply), sent, *trusted);
  }

 private:
  void tell_no_memory() noexcept override try {
    if (then_) (void)tell(without_memory(true), boot_time{}, true);
  } catch (...) {
    return;  // the requester waits for an answer only as long as the vote lasts
  }
  next tell(result<store::permits_reply> how, boot_time sent, bool trusted) {
    under_way_.reset();
    std::exchange(then_, {})(std::move(how), sent, trusted);
    return {.over = true};
  }

  const std::shared_ptr<const lock_config> what_;
  const store::permits_command command_;
  answered then_;
  const doubt trusted_;
  /// Makes the keeper's release for this owner wait until the command has ended.
  std::optional<callers::under_way> under_way_;
};

}  // namespace holdfast::engine
