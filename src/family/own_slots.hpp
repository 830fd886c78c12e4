#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/store/command.hpp>
#include <holdfast/store/own_holds.hpp>
#include <holdfast/store/slot_store.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::family {

/// What a session knows of its own owners, by name: which slot an owner has, and what it waits for
/// since when. The command that leaves does not contain that. Thread-safe.
class own_slots {
 public:
  explicit own_slots(clock& on) : held_(on), in_doubt_(on) {}

  struct entry {
    std::uint32_t part = 0;
    store::kind kind = store::kind::mutex;
    bool in_order = false;
    std::uint32_t slots = 1;  ///< the number of slots of the name
  };
  static store::slot at(std::string_view name, const entry& e) {
    return {name, e.part, e.kind, e.in_order};
  }
  std::optional<entry> of(std::string_view name, const store::owner_id& owner) const {
    return held_.find(name, owner);
  }
  void hold(std::string_view name, const store::owner_id& owner, entry where,
            std::int64_t lease_us) {
    held_.put(name, owner, where, lease_us);
    in_doubt_.forget(name, owner);
  }
  void forget(std::string_view name, const store::owner_id& owner) {
    held_.forget(name, owner);
    in_doubt_.forget(name, owner);
  }

  /// An answer was lost: the owner may be in any slot of that name, or in its queue.
  void doubt(std::string_view name, const store::owner_id& owner, entry what,
             std::int64_t lease_us) {
    in_doubt_.put(name, owner, what, lease_us);
  }
  std::optional<entry> doubted(std::string_view name, const store::owner_id& owner) const {
    return in_doubt_.find(name, owner);
  }

  /// Notes that the owner waits: since `now`, if it did not wait before. `holder`: the holder that
  /// the store named, empty if it named none. A change of the holder is noted.
  struct wait {
    boot_time since;
    /// When the holder changed, as far as the polls have shown; zero: never.
    boot_time changed_at{};
    bool begins = true;
    entry what{};
    std::string holder{};
  };
  wait waits(std::string_view name, const entry& what, const store::owner_id& owner, boot_time now,
             std::string_view holder) {
    const std::lock_guard guard{mutex_};
    const auto [mine, begins] =
        waiting_.try_emplace(store::owned_name{std::string(name), owner}, wait{now});
    wait& w = mine->second;
    w.begins = begins;
    if (begins) w.what = what;
    if (holder.empty() || holder == w.holder) return w;
    if (!w.holder.empty()) w.changed_at = now;
    w.holder = holder;
    return w;
  }
  /// Returns what the owner has waited for, if it has.
  std::optional<entry> waits_no_more(std::string_view name, const store::owner_id& owner) {
    const std::lock_guard guard{mutex_};
    const auto was = waiting_.extract({std::string(name), owner});
    return was ? std::optional(was.mapped().what) : std::nullopt;
  }

 private:
  store::own_holds<entry> held_;
  store::own_holds<entry> in_doubt_;
  std::mutex mutex_;
  std::map<store::owned_name, wait> waiting_;
};

}  // namespace holdfast::family
