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

/// While the main thread opens the store and waits for the lock: turns INT, TERM, HUP and QUIT into
/// a polite end of the wait (the second one ends it rudely), and draws the progress line.
/// The place in the queue is given up; the child was never started.
class waiting {
 public:
  /// `before_leaving` gets the signal before the program ends rudely, on the thread of this object.
  waiting(const signal_inbox& signals, log& to, std::string name,
          std::function<void(int)> before_leaving = {});
  waiting(const waiting&) = delete;
  waiting& operator=(const waiting&) = delete;
  /// Ends the thread: from now on signals are the caller's.
  ~waiting();

  /// Until then there is nothing to give up, and a signal ends the program at once.
  void in_line_at(session s);
  std::stop_token stop() const noexcept { return stop_.get_token(); }
  /// The signal that ended the wait; 0 if none did. One that comes too late ends nothing: `done`
  /// says that what was waited for came, and cannot be taken back.
  int stopped_by(bool done = false) const noexcept { return done ? 0 : stopped_by_.load(); }

 private:
  /// What the store said last of the name. A question may outlive the wait.
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
  bool looks_ = false;  ///< the thread's
  mutable std::mutex mutex_;
  std::optional<session> session_;
  std::jthread thread_;  // last: it uses everything above
};

}  // namespace holdfast::tool
