#pragma once

#include <sys/socket.h>

#include <chrono>

namespace holdfast::store::zookeeper {

/// Whom a connection leads to; of size 0: nobody.
struct peer_address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

/// Shuts down (ADR 160) the TCP connections of this process to that peer over which something was
/// sent, and nothing has come for so long. A thread that reads from one learns at once that it is
/// over. Returns how many. ZooKeeper's client keeps its descriptor to itself, so the kernel is
/// asked for all.
int shut_down_silent(const peer_address& peer, std::chrono::milliseconds silent_for) noexcept;

}  // namespace holdfast::store::zookeeper
