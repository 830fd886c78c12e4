#include "base/files.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <holdfast/clock.hpp>

#include "base/readiness.hpp"

namespace holdfast::base {

namespace {

constexpr std::size_t longest = std::size_t{64} * 1024;
constexpr std::chrono::milliseconds patience{5'000};

failure malformed(std::string what) { return {errc::invalid_argument, std::move(what)}; }

failure explain(int error_number) {
  const bool refused = error_number == EACCES || error_number == EPERM;
  return {refused ? errc::not_permitted : errc::invalid_argument, std::strerror(error_number)};
}

class opened {
 public:
  // Without O_NONBLOCK, opening a FIFO waits for a writer.
  explicit opened(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {}
  opened(const opened&) = delete;
  opened& operator=(const opened&) = delete;
  ~opened() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const noexcept { return fd_; }

 private:
  const int fd_;
};

/// Returns false when the time has passed.
bool wait_for_more(int fd, boot_time until) {
  return boot_clock::now() < until && wait_until_ready(fd, POLLIN, until);
}

}  // namespace

result<std::string> first_line(const std::string& path) {
  const opened file(path);
  if (file.fd() < 0) return explain(errno);
  const boot_time until = boot_clock::now() + patience;
  std::string text;
  std::array<char, 4096> part{};
  while (text.find_first_of("\r\n") == text.npos) {
    const auto n = ::read(file.fd(), part.data(), part.size());
    if (n == 0) break;
    if (n > 0) {
      text.append(part.data(), static_cast<std::size_t>(n));
      if (text.size() > longest) return malformed("its first line is longer than 64 KiB");
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return explain(errno);
    errno = 0;
    if (!wait_for_more(file.fd(), until)) return malformed("it is a pipe into which nobody writes");
  }
  return text.substr(0, text.find_first_of("\r\n"));
}

status check_no_tilde(std::string_view path) {
  if (!path.starts_with("~/")) return done{};
  return malformed(
      "the ~ in a URL is not your home folder, because only a shell replaces it, at the beginning "
      "of a word: write the whole path, in a shell $HOME/" +
      std::string(path.substr(2)) + "; a folder of that name is ./~");
}

status check_no_fifo(std::string_view option, const std::string& path) {
  // A shell's <(COMMAND) is a pipe that is open already.
  if (path.starts_with("/dev/fd/") || path.starts_with("/proc/")) return done{};
  struct stat s{};
  if (::stat(path.c_str(), &s) != 0 || !S_ISFIFO(s.st_mode)) return done{};
  return malformed(std::string(option) + "=" + path + " is a FIFO; name a file");
}

}  // namespace holdfast::base
