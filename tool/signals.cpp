#include "tool/signals.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace holdfast::tool {

namespace {

bool is_ignored(int signal) {
  struct sigaction now{};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

struct sigaction set_action(int signal, void (*action)(int)) {
  struct sigaction fresh{};
  struct sigaction before{};
  fresh.sa_handler = action;
  ::sigaction(signal, &fresh, &before);
  return before;
}

}  // namespace

bool asks_to_stop(int signal) noexcept {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

std::string_view signal_name(int signal) noexcept {
  const char* name = ::sigabbrev_np(signal);
  return name ? name : "?";
}

signal_inbox::signal_inbox()
    // With SIGCHLD ignored the kernel would reap the child itself, and its status with it.
    : chld_before_(set_action(SIGCHLD, SIG_DFL)),
      // The end of stderr's reader must not end the program, and the lock with it.
      pipe_before_(set_action(SIGPIPE, SIG_IGN)) {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  ::sigaddset(&wanted, SIGCHLD);
  for (const int s : forwarded_signals)
    if (!is_ignored(s)) ::sigaddset(&wanted, s);
  ::sigprocmask(SIG_BLOCK, &wanted, &mask_before_);
  fd_ = unique_fd{::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd_) throw std::system_error(errno, std::generic_category(), "signalfd");
}

std::optional<signalfd_siginfo> signal_inbox::next() const noexcept {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return info;
}

void signal_inbox::restore() const noexcept {
  ::sigaction(SIGCHLD, &chld_before_, nullptr);
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

}  // namespace holdfast::tool
