#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <chrono>

namespace holdfast::base {

/// When the kernel breaks a TCP connection whose peer is gone without a word.
struct keepalive {
  std::chrono::seconds idle{};      ///< after so long a silence it asks whether the peer lives, …
  std::chrono::seconds interval{};  ///< … so long later again, …
  int probes = 3;  ///< … so often; with `unacknowledged` Linux goes by that time instead
  std::chrono::milliseconds unacknowledged{};  ///< so long for what was sent, and for these
};

/// For a socket of this machine it changes nothing.
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
