#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/core.hpp"
#include "engine/runner.hpp"

namespace holdfast::engine {

/// One command to one store, by the session's runner: nobody waits for the store, and what the
/// session asks in the same moment goes with it. In the order in which they are begun.
class asked_once final : public errand {
 public:
  using answered = std::function<void(result<store::permits_reply>, boot_time sent)>;
  /// On the runner's thread, before the question: a failure is then the answer.
  using allowed = std::function<status()>;

  /// `command` may point into `keeps`. `then` is called once, on the thread of the runner; on the
  /// caller's if there is none to be had.
  static void begin(std::shared_ptr<core> session, std::string name, store::permits_command command,
                    std::shared_ptr<const void> keeps, answered then, allowed may = {}) {
    const auto self =
        std::make_shared<asked_once>(std::move(session), std::move(name), command, std::move(keeps),
                                     std::move(then), std::move(may));
    auto can = self->session_->usable();
    if (can) can = self->session_->runner().start();
    if (!can) return self->then_(std::move(can.error()), boot_time{});
    self->wake();
  }

  asked_once(std::shared_ptr<core> session, std::string name, store::permits_command command,
             std::shared_ptr<const void> keeps, answered then, allowed may)
      : errand(session->runner()),
        session_(std::move(session)),
        id_(session_->ids().next()),
        name_(std::move(name)),
        command_(command),
        keeps_(std::move(keeps)),
        then_(std::move(then)),
        may_(std::move(may)) {}

  next step() override {
    if (std::exchange(asked_, true)) return {};
    if (may_) {
      if (auto ok = may_(); !ok) return tell(std::move(ok.error()), boot_time{});
    }
    return {.ask = store::renewal{name_, command_}};
  }
  next answer(result<store::permits_reply> reply, boot_time sent) override {
    return tell(std::move(reply), sent);
  }
  next take(const store::notice&) override { return {}; }
  const store::owner_id& owner() const noexcept override { return id_; }

 private:
  next tell(result<store::permits_reply> how, boot_time sent) {
    std::exchange(then_, {})(std::move(how), sent);
    return {.over = true};
  }

  const std::shared_ptr<core> session_;
  const store::owner_id id_;
  const std::string name_;
  const store::permits_command command_;
  const std::shared_ptr<const void> keeps_;
  answered then_;
  allowed may_;
  bool asked_ = false;
};

}  // namespace holdfast::engine
