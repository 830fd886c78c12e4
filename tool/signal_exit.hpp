#pragma once

#include <optional>
#include <thread>

#include "tool/fd.hpp"
#include "tool/signals.hpp"

namespace holdfast::tool {

/// While it lives, INT, TERM, HUP and QUIT end the program at once, whatever another thread waits
/// for: for commands that only read, and hold nothing.
class exit_on_signal {
 public:
  /// `code`: the exit code; without one 128 + the signal's number.
  exit_on_signal(const signal_inbox& signals, std::optional<int> code);
  exit_on_signal(const exit_on_signal&) = delete;
  exit_on_signal& operator=(const exit_on_signal&) = delete;
  ~exit_on_signal();

 private:
  void serve() const;

  const signal_inbox& signals_;
  const std::optional<int> code_;
  const bell over_;
  std::thread thread_;
};

}  // namespace holdfast::tool
