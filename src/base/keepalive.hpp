#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <chrono>

namespace holdfast::base {

/// When the kernel breaks a TCP connection whose peer vanished without closing it.
struct keepalive {
  std::chrono::seconds idle{};      ///< idle time before the first probe
  std::chrono::seconds interval{};  ///< time between probes
  int probes = 3;                   ///< their number; Linux uses `unacknowledged` instead, if set
  /// Time limit for sent data and for probes to be acknowledged.
  std::chrono::milliseconds unacknowledged{};
};

/// Has no effect on a Unix socket.
inline void set_keepalive(int fd, const keepalive& k) noexcept {
  const auto set = [&](int level, int option, std::chrono::milliseconds::rep value) {
    const int as_int = static_cast<int>(value);
    ::setsockopt(fd, level, option, &as_int, sizeof as_int);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, k.idle.count());
  set(IPPROTO_TCP, TCP_KEEPINTVL, k.interval.count());
  set(IPPROTO_TCP, TCP_KEEPCNT, k.probes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, k.unacknowledged.count());
}

}  // namespace holdfast::base
