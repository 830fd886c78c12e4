#pragma once

#include <algorithm>
#include <cstdint>
#include <holdfast/store/command.hpp>
#include <span>
#include <string>

/// Decides who gets the lock. The only place that decides for every exclusive lock, shared lock and
/// semaphore, on every state store. Pure: no I/O, no clock, no thread. `permits.lua` is its twin on
/// Redis, with the same numbered steps in the same order.
///
/// A name has a capacity. Each holder has a weight, and the weights never add up to more than the
/// capacity. Requests that do not fit wait in a queue, which is served from its head. None passes a
/// head that does not fit yet, so a large request is not starved by small ones. A command that
/// makes room (release, expiry, a smaller weight) hands over the room in the same step, and its
/// reply names the waiters to notify.
///
/// A grant that is made to a waiter lasts only for the claim time: long enough for a live session
/// to claim it by a renewal, short enough that a dead successor costs little. A queue entry is a
/// short lease too. Both are judged by the store's time, which is an argument.
namespace holdfast::kernel {

using store::moment;
using store::permits_command;
using store::permits_record;
using store::permits_reply;

/// How long a grant lasts that a waiter has not claimed yet. If the store detects dead sessions,
/// only a waiter that is suspended costs the others that much, and a slow waiter keeps its turn.
inline constexpr std::int64_t claim_us = 500'000;
inline constexpr std::int64_t claim_where_death_is_seen_us = 2'000'000;
inline constexpr std::int64_t claim_where_nobody_is_told_us = 2'500'000;
/// A notification may be lost, so a waiter also polls, and the first in the queue polls more often.
/// (The engine lets one waiter of a session poll for those far behind: shared_queue_lease.)
inline constexpr std::int64_t retry_after_us = 1'000'000;
inline constexpr std::int64_t retry_step_us = 250'000;
/// The first few waiters poll when the leases in their way end, but not sooner than after this
/// time.
inline constexpr std::int64_t retry_after_at_least_us = 100;
/// Without notifications, a waiter polls after the lock's current hold time, clamped to these two,
/// times its position in the queue; but after the third at the latest.
inline constexpr std::int64_t untold_step_at_least_us = 5'000;
inline constexpr std::int64_t untold_step_at_most_us = 50'000;
inline constexpr std::int64_t untold_retry_after_us = 1'500'000;
/// Waiters that may all go on at once (of a latch, a barrier, a condition) poll after as long as
/// they have waited, clamped to the same two. From 8 to 240 waiters the longest pause is this time
/// for each of them. So when their pauses have grown to it, all together poll some 200 times a
/// second (pauses are jittered). Before that, and if there are more than 240 of them, they poll
/// more often. A negative time (of a clock that was set back) says nothing: then the pause is the
/// longest.
inline constexpr std::int64_t untold_for_each_us = 6'250;
constexpr std::int64_t untold_pause_us(std::int64_t waited_us, std::size_t waiters) {
  const auto all = static_cast<std::int64_t>(waiters) * untold_for_each_us;
  const auto longest = std::clamp(all, untold_step_at_most_us, untold_retry_after_us);
  return waited_us < 0 ? longest : std::clamp(waited_us, untold_step_at_least_us, longest);
}
/// Whether a poll need not extend the waiter's entry: half of its lease will be left at the next
/// poll. More than a lease is left after the clock was set back: the entry of a waiter that dies
/// must not stay that long.
inline bool lasts_until_the_poll_after_next(std::int64_t left, std::int64_t lease,
                                            std::int64_t pause) {
  return left <= lease && left - pause >= lease / 2;
}
/// How long a participant that has dropped out of a barrier is remembered after the last time it
/// opened.
inline constexpr std::int64_t dropped_lasts_us = 86'400'000'000;
/// What a waiter can rely on at its store.
struct promises {
  std::int64_t claim = claim_us;
  bool tells = true;  ///< it is notified
  /// Its family writes a record as a whole, if it has changed: a poll that comes early extends no
  /// entry.
  bool whole_records = false;
};
/// The greatest number of peers that a reply names as being in the way.
inline constexpr std::size_t max_blockers = 8;

/// The holder or waiter of that id in a list of a record.
template <class List>
auto find(List& list, const store::owner_id& owner) {
  return std::find_if(list.begin(), list.end(), [&](const auto& x) { return x.owner == owner; });
}
/// Returns false if it is not there.
template <class List>
bool drop(List& list, const store::owner_id& owner) {
  const auto at = find(list, owner);
  if (at == list.end()) return false;
  list.erase(at);
  return true;
}

/// Applies one command. `record` is changed only if the outcome is not a mismatch. It is left with
/// capacity 0 when the name is not in use any more. Names in `tell` are left empty.
permits_reply apply(permits_record& record, const permits_command& command, const moment& now,
                    const promises& of = {});

/// Ends all leases of these sessions, which are known to be dead: the next command finds them
/// expired. Returns true if there was one.
bool forget(permits_record& record, std::span<const std::string> peers);

}  // namespace holdfast::kernel
