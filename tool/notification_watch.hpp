#pragma once

#include <atomic>
#include <holdfast/options.hpp>
#include <memory>

namespace holdfast::tool {

/// Whether a session was notified that its turn has come. Its waiters poll seconds later than
/// others, so that a slow notification comes before the poll.
class notification_watch {
 public:
  /// For session_options::decorate.
  decltype(session_options::decorate) decorator() const;
  /// Whether a request was told to wait. From then on the store owes it a notification.
  bool waits() const noexcept { return state_->waits; }
  /// Called before the release: what came before it is no notification of it.
  void releases() const noexcept { state_->saw_one = false; }
  bool saw_one() const noexcept { return state_->saw_one; }

 private:
  struct state {
    std::atomic<bool> waits{false};
    std::atomic<bool> saw_one{false};
  };
  class watched_inbox;
  class watched_store;
  const std::shared_ptr<state> state_ = std::make_shared<state>();
};

}  // namespace holdfast::tool
