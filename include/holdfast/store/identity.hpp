#pragma once

#include <holdfast/cpp20.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

/// Identifies the server or file, so that one store under two URLs is not taken for two stores.
struct identity {
  std::string run_id;  ///< changes with each start, if the server has such an id
  /// How long the server has been up; empty if its grants outlive a restart.
  std::optional<std::chrono::microseconds> up_for{};
  /// Which part of the server, if one server has several parts whose equal names are different
  /// locks.
  std::string part{};
};

/// A setting or state of a server, in the server's own words: `maxmemory_policy`, `allkeys-lru`.
struct fact {
  std::string server;  ///< which one, where the store has several; else empty
  std::string name;
  std::string value;
};
using facts = std::vector<fact>;

/// The key or node that represents a lease in the store's data, for as long as the lease is held.
struct standing {
  std::string key;            ///< etcd: the key; ZooKeeper: the path of the node
  std::uint64_t created = 0;  ///< etcd: its create revision; ZooKeeper: its czxid
};

}  // namespace holdfast::store
