#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/store/command.hpp>
#include <holdfast/store/own_holds.hpp>
#include <map>
#include <mutex>
#include <optional>

namespace holdfast::family {

/// What a session knows of its own: in which slot an owner is, and since when one waits.
/// Thread-safe.
class slot_places {
 public:
  explicit slot_places(clock& on) : held_(on) {}

  std::optional<std::uint32_t> part_of(const store::owner_id& owner) const {
    return held_.find(owner);
  }
  void hold(const store::owner_id& owner, std::uint32_t part, std::int64_t lease_us) {
    held_.put(owner, part, lease_us);
  }
  void forget(const store::owner_id& owner) { held_.forget(owner); }

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
  store::own_holds<std::uint32_t> held_;
  std::mutex mutex_;
  std::map<store::owner_id, boot_time> waiting_;
};

}  // namespace holdfast::family
