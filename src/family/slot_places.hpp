#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/store/command.hpp>
#include <holdfast/store/own_holds.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::family {

/// What a session knows of its own: in which slot an owner is, and since when one waits, and for
/// what: who leaves does not say. Thread-safe.
class slot_places {
 public:
  explicit slot_places(clock& on) : held_(on) {}

  struct place {
    std::uint32_t part = 0;
    store::kind kind = store::kind::mutex;
  };
  std::optional<place> of(const store::owner_id& owner) const { return held_.find(owner); }
  void hold(const store::owner_id& owner, place where, std::int64_t lease_us) {
    held_.put(owner, where, lease_us);
  }
  void forget(const store::owner_id& owner) { held_.forget(owner); }

  /// Since when it waits: since `now` if it did not.
  struct wait {
    boot_time since;
    bool begins;
  };
  wait waits(const store::owner_id& owner, store::kind what, boot_time now) {
    const std::lock_guard guard{mutex_};
    const auto [at, begins] = waiting_.emplace(owner, std::pair{now, what});
    return {at->second.first, begins};
  }
  /// For what it did, if it did.
  std::optional<store::kind> waits_no_more(const store::owner_id& owner) {
    const std::lock_guard guard{mutex_};
    const auto was = waiting_.extract(owner);
    return was ? std::optional(was.mapped().second) : std::nullopt;
  }

 private:
  store::own_holds<place> held_;
  std::mutex mutex_;
  std::map<store::owner_id, std::pair<boot_time, store::kind>> waiting_;
};

}  // namespace holdfast::family
