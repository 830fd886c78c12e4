#pragma once

#include <sys/signalfd.h>

#include <array>
#include <csignal>
#include <optional>
#include <string_view>

#include "tool/fd.hpp"

namespace holdfast::tool {

/// What run passes on to its child.
inline constexpr std::array<int, 8> forwarded_signals{SIGINT,  SIGTERM, SIGHUP,   SIGQUIT,
                                                      SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};
/// What ends a wait for a lock, and a hold.
bool asks_to_stop(int signal) noexcept;

/// "TERM" for SIGTERM.
std::string_view signal_name(int signal) noexcept;

/// Turns signals into something to poll. Make it before any thread: they inherit the mask.
/// A signal that was ignored when the program began (nohup, a shell's `&`) stays ignored.
class signal_inbox {
 public:
  signal_inbox();
  signal_inbox(const signal_inbox&) = delete;
  signal_inbox& operator=(const signal_inbox&) = delete;
  /// Puts everything back as it was: what has come and was not read arrives then.
  ~signal_inbox() {
    if (!closed_) restore();
  }
  /// Until the program ends nothing arrives any more: it ends with what came of it.
  void close() noexcept { closed_ = true; }

  int fd() const noexcept { return fd_.get(); }
  /// The next one that has come, without waiting.
  std::optional<signalfd_siginfo> next() const noexcept;
  /// As the program found it. For a child between fork and exec: only system calls.
  void restore() const noexcept;

 private:
  sigset_t mask_before_{};
  struct sigaction chld_before_{};
  struct sigaction pipe_before_{};
  unique_fd fd_;
  bool closed_ = false;
};

}  // namespace holdfast::tool
