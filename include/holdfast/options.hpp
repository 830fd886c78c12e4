#pragma once

#include <chrono>
#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/store/store.hpp>
#include <limits>
#include <memory>
#include <string>

namespace holdfast {

/// The shortest and the longest lease. A length outside these limits is errc::invalid_argument.
inline constexpr std::chrono::milliseconds min_lease{100};
inline constexpr std::chrono::hours max_lease{24 * 31};

/// For a session, given to open().
struct session_options {
  /// The length of the leases: how long a lock outlives a crash of its holder, on stores that
  /// cannot see the crash. The session renews each lease after every third of this time. A process
  /// that is paused for longer than a lease loses its locks.
  std::chrono::milliseconds lease{30'000};
  /// This text is put before every name: "shop:" makes "order:1" into "shop:order:1".
  std::string name_prefix{};
  /// How long open(), and a call without a deadline, keep trying while the store is away.
  std::chrono::milliseconds store_timeout{10'000};
  /// Receives events. May be null.
  std::shared_ptr<holdfast::observer> observer{};
  /// Null: the machine's own clock.
  std::shared_ptr<holdfast::clock> clock{};
  /// Wraps the store, for example to time its operations or to inject faults (testing.hpp). May be
  /// empty.
  std::function<std::unique_ptr<store::session_store>(std::unique_ptr<store::session_store>)>
      decorate{};
  /// For debugging: reports to the observer (event_kind::lock_order) when threads of this process
  /// take two names in both orders, before they block each other. See lock_order.hpp. While it is
  /// off, it costs one branch for each lock.
  bool lock_order = false;
  /// Looks for rings of waits that would never end, between all processes that have set this
  /// option. Of each ring it ends one wait. If some of the waits have a time limit, the one of
  /// these that began last ends before its limit. Otherwise the wait that began last fails with
  /// errc::deadlock. docs/deadlock.md says more. Costs one thread, and for each thread that waits
  /// for a lock while it holds another one, three round trips or more, eight times a second. Needs
  /// a store with capabilities::finds_deadlocks; else open() fails with errc::unsupported.
  bool detect_deadlocks = false;
};

/// For one lock. local_time, linger, max_bypass and max_waiters control the local queue, in which
/// threads of this process wait for a mutex or a recursive_mutex. (max_waiters also works for the
/// readers of a shared_mutex.) Other locks refuse these options (errc::invalid_argument), because
/// all their waiters queue at the store.
struct lock_options {
  /// Zero: the session's.
  std::chrono::milliseconds lease{0};
  /// If false, the lock ends by itself when the lease is over.
  bool renew = true;
  /// The longest time that one hold lasts, however often it is renewed or extended. So a stuck job
  /// does not hold the lock for ever. Each request asks the store for no more than what is left of
  /// this time, but for the shortest lease of the store at least.
  std::chrono::milliseconds max_hold{std::chrono::milliseconds::max()};
  /// How long threads of this process may pass the lock on without asking the store. After that the
  /// next thread of this process queues behind the other processes. With 10 ms, each process makes
  /// the others wait that long, and a contended lock costs the store at most a hundred commands a
  /// second. Zero: every hand-over goes through the store.
  std::chrono::microseconds local_time{10'000};
  /// How long an idle lock may stay with this process, because locking it again then costs no round
  /// trip. It is released when another process asks for it, when the last lock object of the name
  /// is destroyed, or when the time is over. (A lock that is used again and again may be released
  /// after half of that time.) Stores without notifications (docs/matrix.md) refuse the option:
  /// errc::unsupported. A lock with max_hold, or without renewal, does not linger. If the process
  /// dies while it keeps an idle lock, it blocks the others as a dead holder does. Zero is off. A
  /// negative time, or one longer than max_lease, is errc::invalid_argument. Starts one thread for
  /// each session.
  std::chrono::microseconds linger{0};
  /// How many times running threads of this process may overtake the first waiter while that waiter
  /// wakes up. Zero: strict order, at the cost of a context switch for each hand-over.
  unsigned max_bypass = 250;
  /// How many threads of this process may wait behind another thread of it. One more fails at once
  /// with errc::overloaded. The thread that waits at the store is not counted.
  std::size_t max_waiters = std::numeric_limits<std::size_t>::max();
  /// If true, unlock() and the destructor of a lease return when the request is written, without a
  /// round trip. Only Redis can do this; elsewhere the option has no effect. This session's later
  /// requests for the name come after the release. A failure is reported to the observer, by the
  /// thread that learns of it, and the release is repeated until the lease would have ended. If the
  /// process dies at that moment, the lock stays held until the lease ends. If the connection
  /// breaks, a try of this session may find the lock still held until a repeated release succeeds.
  /// lease::release() always waits for the answer.
  bool unconfirmed_release = false;
  /// For people: shown by `holdfast list`. At most 200 bytes, no control characters.
  std::string reason{};
};

}  // namespace holdfast
