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
  /// How long open(), and a call without a deadline, keep trying while the store is away.
  std::chrono::milliseconds store_timeout{10'000};
  /// Receives events. May be null.
  std::shared_ptr<holdfast::observer> observer{};
  /// Null: the machine's own clock.
  std::shared_ptr<holdfast::clock> clock{};
  /// Puts something between the engine and the store (testing.hpp has a faulty one). May be empty.
  std::function<std::unique_ptr<store::session_store>(std::unique_ptr<store::session_store>)>
      decorate{};
  /// For debugging: tells the observer (event_kind::lock_order) of two names that threads of this
  /// process take in both orders, before it goes wrong. lock_order.hpp; off: one branch a lock.
  bool lock_order = false;
  /// Looks for waits that would never end, between all processes that have it on: the last one to
  /// begin such a wait gets errc::deadlock. docs/deadlock.md says what counts. Costs a thread, and
  /// three round trips or more, eight times a second, for each thread that waits for a lock while
  /// it has another. On stores with capabilities::finds_deadlocks, else errc::unsupported at open.
  bool detect_deadlocks = false;
};

/// For one lock. local_time, linger, max_bypass and max_waiters are about the local queue, in which
/// threads of this process wait for a mutex or a recursive_mutex (max_waiters: also the readers of
/// a shared_mutex). Other locks, whose waiters all queue at the store, refuse them
/// (errc::invalid_argument).
struct lock_options {
  /// Zero: the session's.
  std::chrono::milliseconds lease{0};
  /// If false, the lock ends by itself when the lease is over.
  bool renew = true;
  /// The longest time that renewal may keep one hold alive: a stuck job does not lock for ever.
  std::chrono::milliseconds max_hold{std::chrono::milliseconds::max()};
  /// How long threads of this process may pass the lock on without asking the store. After that the
  /// next thread of this process queues behind the other processes. With 10 ms, each process makes
  /// the others wait that long, and a contended lock costs the store at most a hundred commands a
  /// second. Zero: the store decides each time.
  std::chrono::microseconds local_time{10'000};
  /// How long an idle lock may stay with this process: locking it again costs no round trip. (One
  /// that is used again and again may go back after half of that time.) It is released when another
  /// process asks for it, when the last lock object of the name is destroyed, and when the time is
  /// over. Stores without notifications (docs/matrix.md) refuse it: errc::unsupported. A lock with
  /// max_hold, or without renewal, does not linger. A process that dies meanwhile blocks the others
  /// as a holder does: until its death is seen, or for its lease. From zero, which is off, to
  /// max_lease; others are errc::invalid_argument. Starts one thread a session.
  std::chrono::microseconds linger{0};
  /// How often running threads of this process may overtake its first waiter while that one wakes
  /// up. Zero: strictly in order, at the price of a context switch each time.
  unsigned max_bypass = 250;
  /// If this many threads of this process wait already, another fails with errc::overloaded at
  /// once.
  std::size_t max_waiters = std::numeric_limits<std::size_t>::max();
  /// If true, unlock() and the destructor of a lease return when the request is written, on stores
  /// where that is sooner than its answer (Redis): no round trip. This session's later requests for
  /// the name come after the release. A failure is reported to the observer, by the thread that
  /// learns of it, and the release is repeated until the lease would have ended. If the process
  /// dies, or the connection breaks, in that moment, the lock stays held until then; and a try of
  /// this session right after it may still find it held. lease::release() always waits for the
  /// answer.
  bool unconfirmed_release = false;
  /// For people: shown by `holdfast list`. At most 200 bytes, no control characters.
  std::string reason{};
};

}  // namespace holdfast
