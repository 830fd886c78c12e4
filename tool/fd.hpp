#pragma once

#include <cstddef>
#include <holdfast/clock.hpp>
#include <string_view>
#include <utility>

namespace holdfast::tool {

/// A file descriptor that is closed at the end of its scope. -1 is none.
class unique_fd {
 public:
  unique_fd() noexcept = default;
  explicit unique_fd(int fd) noexcept : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  unique_fd& operator=(unique_fd&& other) noexcept;
  ~unique_fd() { reset(); }
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset() noexcept;

 private:
  int fd_ = -1;
};

struct pipe_ends {
  unique_fd read;
  unique_fd write;
};
/// Both ends close on exec. Throws std::system_error.
pipe_ends make_pipe();

/// Opens /dev/null in place of a closed stdin, stdout or stderr, until exec. Otherwise a database
/// or a pipe would get that number, and messages with it. It is open for reading only: a program
/// that writes to a closed stdout must get an error.
void fill_standard_files() noexcept;

/// Records the descriptors that are open and not closed on exec: we were started with them. Call it
/// before anything is opened.
void note_inherited_files();
/// All others are closed on exec, also those of libraries (Linux 5.11; on older kernels they stay
/// as their opener left them). Between fork and exec: system calls only.
void close_others_on_exec() noexcept;

/// False if not everything could be written; errno has the reason.
bool write_all(int fd, std::string_view text) noexcept;

/// Returns how much of it could be written. Waits for the reader, even if the descriptor is
/// non-blocking.
std::size_t write_out(int fd, std::string_view text) noexcept;

/// Becomes readable when it is rung; stays so until it is silenced. Thread-safe.
class bell {
 public:
  bell();
  int fd() const noexcept { return fd_.get(); }
  void ring() const noexcept;
  void silence() const noexcept;

 private:
  unique_fd fd_;
};

/// Becomes readable at a point of CLOCK_BOOTTIME, which continues while the machine is suspended.
class alarm_clock {
 public:
  alarm_clock();
  int fd() const noexcept { return fd_.get(); }
  /// forever: never. A time that has passed: at once.
  void set(boot_time at) const noexcept;

 private:
  unique_fd fd_;
};

}  // namespace holdfast::tool
