#pragma once

#include <atomic>
#include <chrono>
#include <holdfast/clock.hpp>
#include <holdfast/options.hpp>
#include <memory>

namespace holdfast::tool {

/// Whether a session was notified that its turn has come. Its waiters poll seconds later than
/// others, so that a slow notification comes before the poll.
class notification_watch {
 public:
  /// For session_options::decorate.
  decltype(session_options::decorate) decorator() const;
  /// Whether the last request was told to wait, and that was so long ago. (Some waiters ask once
  /// more when their subscription has begun: only then the store owes them a notification.)
  bool has_waited(std::chrono::nanoseconds time) const noexcept {
    return boot_clock::now() >= saturated_add(state_->waits_since.load(), time);
  }
  /// Called before the release: what came before it is no notification of it.
  void releases() const noexcept { state_->saw_one = false; }
  bool saw_one() const noexcept { return state_->saw_one; }

 private:
  struct state {
    std::atomic<boot_time> waits_since{forever};
    std::atomic<bool> saw_one{false};
  };
  class watched_inbox;
  class watched_store;
  const std::shared_ptr<state> state_ = std::make_shared<state>();
};

}  // namespace holdfast::tool
