#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

namespace holdfast::base {

/// Wakes a thread that polls other descriptors, too: a further descriptor, which is readable from
/// set() to clear(). Thread-safe.
class wake_fd {
 public:
  wake_fd() noexcept : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  wake_fd(const wake_fd&) = delete;
  wake_fd& operator=(const wake_fd&) = delete;
  ~wake_fd() {
    if (fd_ >= 0) ::close(fd_);
  }

  int fd() const noexcept { return fd_; }
  void set() const noexcept { (void)::eventfd_write(fd_, 1); }
  /// Returns true if it was set.
  bool clear() const noexcept {
    eventfd_t times = 0;
    return ::eventfd_read(fd_, &times) == 0;
  }

 private:
  const int fd_;
};

}  // namespace holdfast::base
