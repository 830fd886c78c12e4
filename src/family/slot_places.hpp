#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/store/command.hpp>
#include <map>
#include <mutex>
#include <optional>

namespace holdfast::family {

/// What a session knows of its own: in which slot an owner is, and since when one waits.
/// Thread-safe.
class slot_places {
 public:
  std::optional<std::uint32_t> part_of(const store::owner_id& owner) const {
    const std::lock_guard guard{mutex_};
    const auto at = held_.find(owner);
    return at == held_.end() ? std::nullopt : std::optional(at->second);
  }
  void hold(const store::owner_id& owner, std::uint32_t part) {
    const std::lock_guard guard{mutex_};
    held_[owner] = part;
  }
  void forget(const store::owner_id& owner) {
    const std::lock_guard guard{mutex_};
    held_.erase(owner);
  }

  /// Since when it waits: since `now` if it did not.
  struct wait {
    boot_time since;
    bool begins;
  };
  wait waits(const store::owner_id& owner, boot_time now) {
    const std::lock_guard guard{mutex_};
    const auto [at, begins] = waiting_.emplace(owner, now);
    return {at->second, begins};
  }
  /// True if it did.
  bool waits_no_more(const store::owner_id& owner) {
    const std::lock_guard guard{mutex_};
    return waiting_.erase(owner) > 0;
  }

 private:
  mutable std::mutex mutex_;
  std::map<store::owner_id, std::uint32_t> held_;
  std::map<store::owner_id, boot_time> waiting_;
};

}  // namespace holdfast::family
