#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <chrono>

namespace harness {

/// Checks when the kernel breaks that connection after its peer disappears without a word.
inline void expect_keepalive(int fd, std::chrono::seconds idle, std::chrono::seconds interval,
                             std::chrono::milliseconds unacknowledged) {
  const auto set = [&](int level, int option) {
    int value = 0;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(fd, level, option, &value, &size), 0);
    return value;
  };
  EXPECT_EQ(set(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(set(IPPROTO_TCP, TCP_KEEPIDLE), idle.count());
  EXPECT_EQ(set(IPPROTO_TCP, TCP_KEEPINTVL), interval.count());
  EXPECT_EQ(set(IPPROTO_TCP, TCP_USER_TIMEOUT), unacknowledged.count());
}

}  // namespace harness
