#pragma once

#include <sys/signalfd.h>

#include <array>
#include <csignal>
#include <optional>
#include <string_view>

#include "tool/fd.hpp"

namespace holdfast::tool {

/// The signals that run passes on to its child.
inline constexpr std::array<int, 8> forwarded_signals{SIGINT,  SIGTERM, SIGHUP,   SIGQUIT,
                                                      SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};
/// Whether the signal ends a wait for a lock, and a hold.
bool asks_to_stop(int signal) noexcept;

/// "TERM" for SIGTERM.
std::string_view signal_name(int signal) noexcept;

/// Turns signals into something to poll. Create it before any thread, because threads inherit the
/// mask. A signal that was ignored when the program began (nohup, a shell's `&`) stays ignored.
class signal_inbox {
 public:
  signal_inbox();
  signal_inbox(const signal_inbox&) = delete;
  signal_inbox& operator=(const signal_inbox&) = delete;
  /// Restores the former state: signals that were not read arrive then.
  ~signal_inbox() {
    if (!closed_) restore();
  }
  /// From now on no signal arrives until the program ends with its own result.
  void close() noexcept { closed_ = true; }

  int fd() const noexcept { return fd_.get(); }
  /// The next pending signal, without waiting.
  std::optional<signalfd_siginfo> next() const noexcept;
  /// Restores the state at the program's start. For a child between fork and exec: only system
  /// calls.
  void restore() const noexcept;

 private:
  sigset_t mask_before_{};
  struct sigaction chld_before_{};
  struct sigaction pipe_before_{};
  unique_fd fd_;
  bool closed_ = false;
};

}  // namespace holdfast::tool
