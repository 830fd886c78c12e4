#pragma once

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <holdfast/clock.hpp>
#include <span>

namespace holdfast::base {

/// Waits until one of them is ready. Returns false if none is at the deadline. A caught signal does
/// not end the wait. A descriptor that is ready at the deadline counts, because this process may
/// have been suspended.
inline bool wait_until_ready(std::span<pollfd> all, boot_time deadline) noexcept {
  constexpr std::chrono::nanoseconds longest = std::chrono::hours(24);
  while (true) {
    const auto now = boot_clock::now();
    const auto left = std::min(std::max(deadline, now) - now, longest);
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    const int n = ::ppoll(all.data(), all.size(), &timeout, nullptr);
    if (n > 0) return true;
    if (n == 0 ? left < longest : errno != EINTR) return false;
  }
}

inline bool wait_until_ready(int fd, short events, boot_time deadline) noexcept {
  pollfd one{fd, events, 0};
  return wait_until_ready({&one, 1}, deadline);
}

}  // namespace holdfast::base
