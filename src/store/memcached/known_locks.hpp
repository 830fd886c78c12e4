#pragma once

#include <holdfast/store/command.hpp>
#include <map>
#include <mutex>
#include <optional>

#include "store/memcached/link.hpp"

namespace holdfast::store::memcached {

/// What this session knows of the items that it has written. The unique number of an item counts
/// from one again when the server is started anew, and may then be that of somebody else's lock: it
/// is good only over the connection that it came by, which ends with that life of the server.
/// Thread-safe.
class known_locks {
 public:
  struct item {
    std::uint64_t link = 0;
    std::int64_t cas = 0;
    std::uint64_t fence = 0;
    server_life life{};
  };

  std::optional<item> find(const owner_id& owner) const {
    const std::lock_guard guard{mutex_};
    const auto at = items_.find(owner);
    return at == items_.end() ? std::nullopt : std::optional(at->second);
  }
  void put(const owner_id& owner, const item& known) {
    const std::lock_guard guard{mutex_};
    items_[owner] = known;
  }
  void forget(const owner_id& owner) {
    const std::lock_guard guard{mutex_};
    items_.erase(owner);
  }

 private:
  mutable std::mutex mutex_;
  std::map<owner_id, item> items_;
};

}  // namespace holdfast::store::memcached
