#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <chrono>
#include <span>
#include <vector>

namespace holdfast::store::zookeeper {

/// Whom a connection leads to; of size 0: nobody.
struct peer_address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

/// The numbers of the sockets that this process has now, in order. They are not those of a client
/// that is made later: in a child of fork() they are those of its parent.
std::vector<ino_t> sockets_of_others() noexcept;

/// Shuts down (ADR 160) the TCP connections of this process to that peer over which something was
/// sent, and nothing has come for so long, except those of `others`. A thread that reads from one
/// learns at once that it is over. Returns how many. ZooKeeper's client keeps its descriptor to
/// itself, so the kernel is asked for all.
int shut_down_silent(const peer_address& peer, std::chrono::milliseconds silent_for,
                     std::span<const ino_t> others) noexcept;

}  // namespace holdfast::store::zookeeper
