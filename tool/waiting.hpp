#pragma once

#include <atomic>
#include <functional>
#include <holdfast/session.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "tool/fd.hpp"
#include "tool/log.hpp"
#include "tool/signals.hpp"

namespace holdfast::tool {

/// Handles signals while the main thread opens the store and waits for the lock: the first INT,
/// TERM, HUP or QUIT ends the wait in an orderly way, the second one at once. Also draws the
/// progress line. The queue entry is given up; the child was never started.
class waiting {
 public:
  /// `before_leaving` gets the signal before the program ends at once, on the thread of this
  /// object.
  waiting(const signal_inbox& signals, log& to, std::string name,
          std::function<void(int)> before_leaving = {});
  waiting(const waiting&) = delete;
  waiting& operator=(const waiting&) = delete;
  /// Ends the thread: from now on signals are the caller's.
  ~waiting();

  /// The session may have a queue entry from now on. Before this call there is nothing to give up,
  /// and a signal ends the program at once.
  void in_line_at(session s);
  std::stop_token stop() const noexcept { return stop_.get_token(); }
  /// The signal that ended the wait; 0 if none did. A late signal ends nothing: `done` means that
  /// the wait had succeeded, and cannot be undone.
  int stopped_by(bool done = false) const noexcept { return done ? 0 : stopped_by_.load(); }

 private:
  /// The store's last answer about the name. A query may outlive the wait.
  struct view {
    std::mutex mutex;
    std::optional<result<name_info>> found;
    bell come;
  };

  void serve();
  void on_signal(int signal);
  void look();
  void draw();
  std::optional<session> current() const;

  const signal_inbox& signals_;
  log& log_;
  const std::string name_;
  const std::function<void(int)> before_leaving_;
  std::stop_source stop_;
  std::atomic<int> stopped_by_{0};
  bell over_;
  const std::shared_ptr<view> view_ = std::make_shared<view>();
  bool looks_ = false;  ///< used by the thread only
  mutable std::mutex mutex_;
  std::optional<session> session_;
  std::jthread thread_;  // last: it uses everything above
};

}  // namespace holdfast::tool
