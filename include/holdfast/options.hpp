#pragma once

#include <chrono>
#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/store/store.hpp>
#include <memory>
#include <string>

namespace holdfast {

/// The shortest and the longest lease; others are errc::invalid_argument.
inline constexpr std::chrono::milliseconds min_lease{100};
inline constexpr std::chrono::hours max_lease{24 * 31};

/// For a session, given to open().
struct session_options {
  /// How long a lock outlives a crash of its holder on stores that cannot see the crash. Renewed
  /// every third. 30 s: shorter makes every pause of the process a loss.
  std::chrono::milliseconds lease{30'000};
  /// Put before every name, as written: "shop:" makes "order:1" into "shop:order:1".
  std::string name_prefix{};
  /// How long a call without a deadline keeps trying while the store is away.
  std::chrono::milliseconds store_timeout{10'000};
  /// Whom to tell what happens. May be null.
  std::shared_ptr<holdfast::observer> observer{};
  /// Null: the machine's own clock.
  std::shared_ptr<holdfast::clock> clock{};
  /// Puts something between the engine and the store (testing.hpp has a faulty one). May be empty.
  std::function<std::unique_ptr<store::session_store>(std::unique_ptr<store::session_store>)>
      decorate{};
};

/// For one lock.
struct lock_options {
  /// Zero: the session's.
  std::chrono::milliseconds lease{0};
  /// If false nobody renews: the lock ends by itself when the lease is over.
  bool renew = true;
  /// The longest time that renewal may keep one hold alive: a stuck job does not lock for ever.
  std::chrono::milliseconds max_hold{std::chrono::milliseconds::max()};
  /// For people: shown by `holdfast list`. At most 200 bytes, no control characters.
  std::string reason{};
};

}  // namespace holdfast
