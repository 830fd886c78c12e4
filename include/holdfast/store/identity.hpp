#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

/// Which server or file it is, so that one that is named in two ways is not taken for two.
struct identity {
  std::string run_id;  ///< another one after each start, where the server has such a thing
  /// How long it has been up; nothing if what it granted outlives its restart.
  std::optional<std::chrono::microseconds> up_for{};
};

/// One thing that a server says of itself, in its own words: `maxmemory_policy`, `allkeys-lru`.
struct fact {
  std::string server;  ///< which one, where the store has several; else empty
  std::string name;
  std::string value;
};
using facts = std::vector<fact>;

/// What stands for a lease among the store's data, for as long as it is held.
struct standing {
  std::string key;            ///< etcd: the key; ZooKeeper: the path of the node
  std::uint64_t created = 0;  ///< etcd: its create revision; ZooKeeper: its czxid
};

}  // namespace holdfast::store
