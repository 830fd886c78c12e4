#pragma once

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <holdfast/clock.hpp>
#include <span>

namespace holdfast::base {

/// The length of the next sleep in poll(), so that a wait of `left` in several sleeps ends in time.
/// The kernel may end a sleep late: by a thousandth of its length, by a two-hundredth if the
/// process has a positive nice value, and always by 50 us. So a long sleep leaves a part to the
/// next one.
inline std::chrono::nanoseconds next_sleep(std::chrono::nanoseconds left) noexcept {
  constexpr std::chrono::nanoseconds is_long = std::chrono::milliseconds(10);
  return left > is_long ? left - left / 128 : left;
}

/// Sleeps once until a descriptor is ready, for at most `longest` plus the time by which the kernel
/// is late. A caller that has to be in time takes the length from next_sleep(), and sleeps again.
/// Returns the result of ppoll().
inline int sleep_until_ready(std::span<pollfd> all, std::chrono::nanoseconds longest) noexcept {
  const auto length = std::max(longest, std::chrono::nanoseconds(0));
  const timespec timeout{length.count() / 1'000'000'000, length.count() % 1'000'000'000};
  return ::ppoll(all.data(), all.size(), &timeout, nullptr);
}

/// Waits until a descriptor is ready. Returns false at the deadline. A caught signal does not end
/// the wait. A descriptor that is ready at the deadline counts, because this process may have been
/// suspended until then.
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
