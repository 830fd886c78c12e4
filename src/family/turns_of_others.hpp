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

/// A lock may be shared with programs that know nothing of holdfast, and have no queue with it.
/// Whichever asks first after a release gets the lock: without the two classes below the quicker
/// program would keep it. They say for how long a session stays away from a name. Both are
/// thread-safe, cost no round trip, and decide nothing but when a session asks: a mistake costs
/// time, and never lets two in.
using pause = std::chrono::microseconds;

/// The pauses of one session, by name. Those that nobody has used for ten seconds are forgotten.
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

/// Where waiters are told of a release, and the one that releases learns how many were told. A
/// session that had its turn lets as many others have theirs: until it has heard of so many
/// releases it asks later than a program that was woken.
class turns_of_listeners {
 public:
  /// A woken program has so long to come before this session asks.
  static constexpr pause first_pause{10'000};
  static constexpr pause longest_pause{80'000};
  /// After a pause in which nobody came, none is made for so many times its length.
  static constexpr int rest = 20;

  /// This session released, and so many others heard of it. `heard`: how many releases by others
  /// the session has heard of so far; it may start again from zero.
  void released(std::string_view name, std::uint32_t others, std::uint64_t heard, boot_time now);
  /// Zero if it may ask now.
  pause stays_away(std::string_view name, std::uint64_t heard, boot_time now);
  /// It released, and owes nobody a turn, though others listen.
  bool may_go_on(std::string_view name, boot_time now);
  /// It has waited for a round longer than it owed: others are always quicker.
  bool overdue(std::string_view name, std::uint64_t heard, boot_time now);
  /// The store granted it. True if the grant is for one turn, because others listen. One that came
  /// after more releases than it owed is owed the difference, but no more than two rounds.
  bool granted(std::string_view name, std::uint64_t heard, boot_time now);

 private:
  struct standing {
    std::uint32_t others = 0;
    std::uint64_t owed = 0;
    std::uint64_t owes = 0;   ///< releases of others to be heard before it asks at once …
    std::uint64_t heard = 0;  ///< … counted from here
    std::uint64_t last_heard = 0;
    boot_time free_since{};
    pause lasts = first_pause;
    boot_time rests_until{};
  };
  std::mutex mutex_;
  by_lock_name<standing> all_;
};

/// Where nobody is told, programs ask now and then. One that asks five times a second cannot find
/// the lock free in the moment between two turns of a quick one. So a lock for which programs
/// compete is left to others at the end of some seconds of the store's clock: then all sessions of
/// holdfast stay away at the same time. In every fifth second they find out whether others come;
/// if one did, they stay away in each of the next five.
class turns_of_pollers {
 public:
  static constexpr std::int64_t period_us = 1'000'000;
  static constexpr std::int64_t theirs_us = 400'000;  ///< at the end of a period
  /// From so long after its begin, our sessions ask now and then whether there is a holder.
  static constexpr std::int64_t first_look_us = 100'000;
  static constexpr std::int64_t looks_every_us = 60'000;
  static constexpr std::int64_t tries_every = 5;  ///< periods
  /// A holder that was seen is believed to want it again for so long; and a session that takes it
  /// again and again for `takes_all`, each time within `at_once`, is believed to keep others out.
  static constexpr std::chrono::seconds believed{3};
  static constexpr std::chrono::seconds takes_all{1};
  static constexpr std::chrono::milliseconds at_once{20};

  /// Another was in, at that time of the store.
  void seen(std::string_view name, std::int64_t store_us, boot_time now);
  /// This session got it, at that time of the store, or gave it back.
  void granted(std::string_view name, std::int64_t store_us, boot_time now);
  void released(std::string_view name, boot_time now);

  struct advice {
    pause away{0};      ///< zero: it may ask now
    bool look = false;  ///< found_one(), if there is a holder
  };
  advice stays_away(std::string_view name, boot_time now);
  void found_one(std::string_view name, boot_time now);

 private:
  struct standing {
    std::int64_t store_us = 0;  ///< the store's time when ours was `at`
    boot_time at{};
    boot_time seen_at{};
    boot_time takes_since{};
    boot_time released_at{};
    std::int64_t others_until = 0;  ///< a period: others came in the last one that tried
    std::int64_t stays_in = -1;     ///< a period whose end it leaves to others
  };
  static std::int64_t store_time(const standing& s, boot_time now);

  std::mutex mutex_;
  by_lock_name<standing> all_;
};

}  // namespace holdfast::family
