#pragma once

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <holdfast/clock.hpp>
#include <span>

namespace holdfast::base {

/// How long to sleep in poll() so as to be awake in time, where it takes several sleeps. The kernel
/// may end one later than it was asked to: by a thousandth of its length, by a two-hundredth in a
/// process that is nice, and always by 50 us. So of a long sleep some is left for the next one.
inline std::chrono::nanoseconds next_sleep(std::chrono::nanoseconds left) noexcept {
  constexpr std::chrono::nanoseconds is_long = std::chrono::milliseconds(10);
  return left > is_long ? left - left / 128 : left;
}

/// One sleep until one of them is ready, for so long at most, or a little longer: for who has to be
/// in time next_sleep() says how long. What poll() answered.
inline int sleep_until_ready(std::span<pollfd> all, std::chrono::nanoseconds longest) noexcept {
  const auto length = std::max(longest, std::chrono::nanoseconds(0));
  const timespec timeout{length.count() / 1'000'000'000, length.count() % 1'000'000'000};
  return ::ppoll(all.data(), all.size(), &timeout, nullptr);
}

/// Waits until one of them is ready. False: the time is up. A caught signal ends no wait. What is
/// ready when the time is up counts: this process may have stood still.
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
