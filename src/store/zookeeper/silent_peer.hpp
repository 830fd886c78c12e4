#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <chrono>
#include <span>
#include <vector>

namespace holdfast::store::zookeeper {

/// The peer of a connection; size 0: none.
struct peer_address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

/// The inode numbers of the sockets that this process has now, sorted. They do not belong to a
/// client that is created later: in a child of fork() they are its parent's.
std::vector<ino_t> sockets_of_others() noexcept;

/// Shuts down (ADR 160) the TCP connections of this process to that peer over which something was
/// sent and nothing has arrived for `silent_for`, except those in `others`. A thread that reads
/// from such a connection notices the end at once. Returns their number. ZooKeeper's client does
/// not reveal its descriptor, so the kernel is asked for all descriptors.
int shut_down_silent(const peer_address& peer, std::chrono::milliseconds silent_for,
                     std::span<const ino_t> others) noexcept;

}  // namespace holdfast::store::zookeeper
