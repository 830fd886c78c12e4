#include "tool/fd.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

namespace holdfast::tool {

namespace {

int checked(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  return fd;
}

struct range {
  unsigned from, to;
};
std::vector<range> others;  // than the inherited files

}  // namespace

unique_fd& unique_fd::operator=(unique_fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void unique_fd::reset() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

pipe_ends make_pipe() {
  std::array<int, 2> ends{};
  checked(::pipe2(ends.data(), O_CLOEXEC), "pipe");
  return {unique_fd{ends[0]}, unique_fd{ends[1]}};
}

void fill_standard_files() noexcept {
  for (int fd = 0; fd <= 2; ++fd)
    // open() returns the lowest free number, which is the missing one.
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void note_inherited_files() {
  std::vector<unsigned> inherited;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none)) {
    const int fd = std::atoi(entry.path().filename().c_str());
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) inherited.push_back(static_cast<unsigned>(fd));
  }
  std::sort(inherited.begin(), inherited.end());
  others.clear();
  unsigned from = 0;
  for (const unsigned fd : inherited) {
    if (from < fd) others.push_back({from, fd - 1});
    from = fd + 1;
  }
  if (!none) others.push_back({from, ~0U});
}

void close_others_on_exec() noexcept {
  for (const auto& [from, to] : others) (void)::close_range(from, to, CLOSE_RANGE_CLOEXEC);
}

bool write_all(int fd, std::string_view text) noexcept {
  return write_out(fd, text) == text.size();
}

std::size_t write_out(int fd, std::string_view text) noexcept {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(fd, text.data() + written, text.size() - written);
    if (n >= 0) written += static_cast<std::size_t>(n);
    if (n >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) break;
    pollfd one{fd, POLLOUT, 0};
    (void)::poll(&one, 1, -1);
  }
  return written;
}

bell::bell() : fd_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {}

void bell::ring() const noexcept {
  const std::uint64_t one = 1;
  // The write can only fail when the bell is ringing already.
  (void)!::write(fd_.get(), &one, sizeof one);
}

void bell::silence() const noexcept {
  std::uint64_t count = 0;
  (void)!::read(fd_.get(), &count, sizeof count);
}

alarm_clock::alarm_clock()
    : fd_(checked(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd")) {}

void alarm_clock::set(boot_time at) const noexcept {
  itimerspec when{};
  if (at != forever) {
    // Zero would disarm the timer.
    const std::int64_t ns = std::max<std::int64_t>(at.time_since_epoch().count(), 1);
    when.it_value.tv_sec = ns / 1'000'000'000;
    when.it_value.tv_nsec = ns % 1'000'000'000;
  }
  ::timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace holdfast::tool
