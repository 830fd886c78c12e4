#include "store/sqlite/quiet_write.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace holdfast::store::sqlite {
namespace {

// Writing to a pipe whose reader just died raises SIGPIPE, which by default ends this process. This
// class does not change the program's own handling of that signal: it blocks the signal for this
// thread only.
class sigpipe_shield {
 public:
  sigpipe_shield() noexcept {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    if (::sigismember(&before_, SIGPIPE) == 1) already_pending_ = is_pending();
  }
  sigpipe_shield(const sigpipe_shield&) = delete;
  sigpipe_shield& operator=(const sigpipe_shield&) = delete;
  ~sigpipe_shield() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  void take_back() noexcept {
    constexpr timespec at_once{};
    if (!already_pending_) ::sigtimedwait(&pipe_, nullptr, &at_once);
  }

 private:
  static bool is_pending() noexcept {
    sigset_t pending;
    return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGPIPE) == 1;
  }
  sigset_t pipe_{};
  sigset_t before_{};
  bool already_pending_ = false;
};

}  // namespace

int write_quietly(int pipe, std::string_view bytes) noexcept {
  sigpipe_shield shield;
  if (::write(pipe, bytes.data(), bytes.size()) >= 0) return 0;
  const int error = errno;
  if (error == EPIPE) shield.take_back();
  return error;
}

}  // namespace holdfast::store::sqlite
