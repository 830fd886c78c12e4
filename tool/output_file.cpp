#include "tool/output_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "tool/fd.hpp"

namespace holdfast::tool {

namespace {

/// Longer than a busy reader needs, and too short to matter to the lock.
constexpr int patience_ms = 2'000;
constexpr int most_links = 40;  // as many as the kernel follows

/// Writes no more than a pipe takes at once: poll() comes before each write to a blocking
/// descriptor, so that it does not block.
bool write_while_read(int fd, std::string_view text) {
  pollfd first{fd, POLLOUT, 0};
  (void)::poll(&first, 1, patience_ms);
  if ((first.revents & (POLLERR | POLLNVAL)) != 0) return errno = EPIPE, false;
  if (first.revents == 0) return errno = EAGAIN, false;
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    pollfd room{fd, POLLOUT, 0};
    if (n < 0 && errno == EAGAIN && ::poll(&room, 1, patience_ms) > 0) continue;
    return false;
  }
  return true;
}

// With O_NONBLOCK a FIFO without a reader is an error; otherwise we would hold the lock and wait. A
// file that is already open is written at its present position: otherwise later output, of ours or
// of the command, would overwrite the text.
std::string write_in_place(const output_place& at, std::string_view text) {
  const unique_fd file{at.open_as >= 0 ? ::fcntl(at.open_as, F_DUPFD_CLOEXEC, 0)
                                       : ::open(at.path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK |
                                                                     O_NOCTTY | O_CLOEXEC)};
  if (!file && errno == ENXIO) return "nobody reads it";
  return file && write_while_read(file.get(), text) ? std::string{} : std::strerror(errno);
}

/// Links of another user, as there may be in /tmp, are not followed: they are replaced.
bool is_link_of_ours(const std::filesystem::path& path) {
  struct stat s{};
  return ::lstat(path.c_str(), &s) == 0 && S_ISLNK(s.st_mode) &&
         (s.st_uid == 0 || s.st_uid == ::geteuid());
}

/// A link there stands for an open file, as that of /dev/stdout does: the name is not the file's.
bool is_in_proc(const std::filesystem::path& path) {
  std::error_code wrong;
  const auto folder = weakly_canonical(path.parent_path(), wrong).string();
  return folder == "/proc" || folder.starts_with("/proc/");
}

/// This program's descriptor that the link there stands for, otherwise -1.
int descriptor_at(const std::filesystem::path& path) {
  std::error_code wrong;
  const auto folder = weakly_canonical(path.parent_path(), wrong).string();
  if (folder != "/proc/" + std::to_string(::getpid()) + "/fd") return -1;
  const std::string name = path.filename().string();
  int number = -1;
  const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
  return bad == std::errc{} && end == name.data() + name.size() ? number : -1;
}

bool is_special(const std::string& path) {
  struct stat s{};
  return ::stat(path.c_str(), &s) == 0 && !S_ISREG(s.st_mode);
}

std::string replace(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new-" + std::to_string(::getpid());
  // A program that was killed before the rename left the file; in a container each program has the
  // same number.
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

}  // namespace

output_place place_of_output(const std::string& path) {
  std::error_code wrong;
  std::filesystem::path at = std::filesystem::absolute(path, wrong);
  bool in_place = is_in_proc(at), linked = false;
  for (int links = 0; !in_place && links < most_links && is_link_of_ours(at); ++links) {
    at = at.parent_path() / read_symlink(at, wrong);
    in_place = is_in_proc(at);
    linked = true;
  }
  in_place = in_place || is_special(path);
  if (in_place) return {path, true, descriptor_at(at)};
  return {linked ? at.string() : path, false};
}

void remove_output(const std::string& path) {
  const output_place at = place_of_output(path);
  if (!at.in_place) ::unlink(at.path.c_str());
}

std::string replace_file(const std::string& path, std::string_view text) {
  const output_place at = place_of_output(path);
  return at.in_place ? write_in_place(at, text) : replace(at.path, text);
}

}  // namespace holdfast::tool
