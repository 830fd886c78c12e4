#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <holdfast/clock.hpp>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace holdfast::family {

/// A lock may be shared with programs that know nothing of holdfast, and share no queue with it.
/// The first client to ask after a release gets the lock, so the fastest program would keep it. The
/// two classes below decide for how long a session stays away from a name. Both are thread-safe,
/// cost no round trip, and only decide when a session asks: a mistake costs time, but never admits
/// two holders.
using pause = std::chrono::microseconds;

/// The state of one session, by name. Names that were not used for ten seconds are forgotten.
template <class State>
class by_lock_name {
 public:
  State& at(std::string_view name, boot_time now) {
    if (all_.size() >= 64 && now >= tidy_at_) {
      std::erase_if(all_, [&](const auto& e) { return e.second.used < now - unused; });
      tidy_at_ = now + unused;
    }
    auto found = all_.find(name);
    if (found == all_.end()) found = all_.emplace(std::string(name), entry{}).first;
    found->second.used = now;
    return found->second.state;
  }
  State* find(std::string_view name, boot_time now) {
    const auto found = all_.find(name);
    if (found == all_.end()) return nullptr;
    found->second.used = now;
    return &found->second.state;
  }

 private:
  static constexpr std::chrono::seconds unused{10};
  struct entry {
    State state{};
    boot_time used{};
  };
  std::map<std::string, entry, std::less<>> all_;
  boot_time tidy_at_{};
};

/// For stores that notify waiters of a release, and tell the releasing session how many were
/// notified. A session that had its turn gives as many others a turn: until it has heard of that
/// many releases, it asks later than a program that was woken.
class turns_of_listeners {
 public:
  /// How long a woken program has for its request before this session asks.
  static constexpr pause first_pause{10'000};
  static constexpr pause longest_pause{80'000};
  /// After a pause in which no program came, there is no pause for this many times its length.
  static constexpr int rest = 20;

  /// This session has released, and `others` waiters were notified. `heard`: the number of releases
  /// by others that the session has heard of so far; it may restart at zero.
  void released(std::string_view name, std::uint32_t others, std::uint64_t heard, boot_time now);
  /// Zero if the session may ask now.
  pause stays_away(std::string_view name, std::uint64_t heard, boot_time now);
  /// True if the session released and owes no turn, though others listen.
  bool may_go_on(std::string_view name, boot_time now);
  /// True if the session has waited for one round longer than it owed: others are always faster.
  bool overdue(std::string_view name, std::uint64_t heard, boot_time now);
  /// The store granted the lock. Returns true if the grant is for one turn only, because others
  /// listen. A session that was granted the lock after more releases than it owed is owed the
  /// difference, but two rounds at most.
  bool granted(std::string_view name, std::uint64_t heard, boot_time now);

 private:
  struct standing {
    std::uint32_t others = 0;
    std::uint64_t owed = 0;
    std::uint64_t owes = 0;   ///< releases of others to hear of before it asks without a pause
    std::uint64_t heard = 0;  ///< the number heard when that count began
    std::uint64_t last_heard = 0;
    boot_time free_since{};
    pause lasts = first_pause;
    boot_time rests_until{};
  };
  std::mutex mutex_;
  by_lock_name<standing> all_;
};

/// For stores without notifications, where programs poll. A program that polls five times a second
/// cannot find the lock free in the moment between two turns of a fast one. So a lock for which
/// programs compete is left to others at the end of some seconds of the store's clock, by all
/// holdfast sessions at the same time. In every fifth second the sessions find out whether other
/// programs come; if one did, they stay away in each of the next five.
class turns_of_pollers {
 public:
  static constexpr std::int64_t period_us = 1'000'000;
  /// The time left to others, at the end of a period.
  static constexpr std::int64_t theirs_us = 400'000;
  /// From this long after the others' time began, the sessions check now and then for a holder.
  static constexpr std::int64_t first_look_us = 100'000;
  static constexpr std::int64_t looks_every_us = 60'000;
  static constexpr std::int64_t tries_every = 5;  ///< periods
  /// A holder that was seen is assumed to want the lock again for the time `believed`. A session
  /// that takes the lock again and again for `takes_all`, each time within `at_once`, is assumed to
  /// keep others out.
  static constexpr std::chrono::seconds believed{3};
  static constexpr std::chrono::seconds takes_all{1};
  static constexpr std::chrono::milliseconds at_once{20};

  /// Another owner held the lock, at that time of the store.
  void seen(std::string_view name, std::int64_t store_us, boot_time now);
  /// This session acquired the lock, at that time of the store, or released it.
  void granted(std::string_view name, std::int64_t store_us, boot_time now);
  void released(std::string_view name, boot_time now);

  struct advice {
    pause away{0};      ///< zero: the session may ask now
    bool look = false;  ///< call found_one() if there is a holder
  };
  advice stays_away(std::string_view name, boot_time now);
  void found_one(std::string_view name, boot_time now);

 private:
  struct standing {
    std::int64_t store_us = 0;  ///< the store's time at `at`
    boot_time at{};
    boot_time seen_at{};
    boot_time takes_since{};
    boot_time released_at{};
    std::int64_t others_until = 0;  ///< the period until which others are assumed to come
    std::int64_t stays_in = -1;     ///< a period whose end this session leaves to others
  };
  static std::int64_t store_time(const standing& s, boot_time now);

  std::mutex mutex_;
  by_lock_name<standing> all_;
};

}  // namespace holdfast::family
