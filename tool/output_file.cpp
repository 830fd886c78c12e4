#include "tool/output_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tool/fd.hpp"

namespace holdfast::tool {

namespace {

/// Longer than a reader needs that only was busy, shorter than it matters to the lock.
constexpr int patience_ms = 2'000;

bool write_while_read(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    pollfd room{fd, POLLOUT, 0};
    if (n < 0 && errno == EAGAIN && ::poll(&room, 1, patience_ms) > 0) continue;
    return false;
  }
  return true;
}

// With O_NONBLOCK a FIFO that nobody reads is an error; else we would hold the lock and wait.
std::string write_in_place(const std::string& path, std::string_view text) {
  const unique_fd file{::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
  if (!file && errno == ENXIO) return "nobody reads it";
  return file && write_while_read(file.get(), text) ? std::string{} : std::strerror(errno);
}

bool is_special(const std::string& path) {
  struct stat s{};
  return ::stat(path.c_str(), &s) == 0 && !S_ISREG(s.st_mode);
}

}  // namespace

std::string replace_file(const std::string& path, std::string_view text) {
  // /dev/stderr and a FIFO are written to, not replaced.
  if (is_special(path)) return write_in_place(path, text);
  const std::string fresh = path + ".new-" + std::to_string(::getpid());
  // One that was killed before the rename left it; in a container each program has the same number.
  ::unlink(fresh.c_str());
  int wrong = 0;
  {
    const int flags = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC;
    const unique_fd file{::open(fresh.c_str(), flags, 0644)};
    if (!file) return std::strerror(errno);
    if (!write_all(file.get(), text)) wrong = errno;
  }
  if (wrong == 0 && std::rename(fresh.c_str(), path.c_str()) == 0) return {};
  if (wrong == 0) wrong = errno;
  ::unlink(fresh.c_str());
  return std::strerror(wrong);
}

}  // namespace holdfast::tool
