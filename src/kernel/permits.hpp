#pragma once

#include <cstdint>
#include <holdfast/store/command.hpp>
#include <span>
#include <string>

/// Who gets it? The one place that decides for every exclusive lock, shared lock and semaphore, on
/// every state store. Pure: no I/O, no clock, no thread. `permits.lua` is its twin on Redis, with
/// the same numbered steps in the same order.
///
/// A name has a capacity. Holders have a weight each, which never sum up to more. Those who find no
/// room wait in a queue and are served from its head; nobody passes a head that does not fit yet,
/// so a large request is not starved by small ones. A command that makes room (release, expiry, a
/// smaller weight) hands it over in the same step, and its reply names the waiters to notify.
///
/// A grant that is made to a waiter lasts only for the claim time: long enough for a live session
/// to claim it by a renewal, short enough that a dead successor costs little. A place in the queue
/// is a short lease too. Both are judged by the store's time, which comes in as an argument.
namespace holdfast::kernel {

using store::moment;
using store::permits_command;
using store::permits_record;
using store::permits_reply;

/// How long a grant lasts that a waiter has not claimed yet. Where a death is seen, only a waiter
/// that sleeps costs the others so much, and one that is merely slow keeps its turn.
inline constexpr std::int64_t claim_us = 500'000;
inline constexpr std::int64_t claim_where_death_is_seen_us = 2'000'000;
inline constexpr std::int64_t claim_where_nobody_is_told_us = 2'500'000;
/// A notification may be lost, so a waiter also polls, and the first in the queue polls more often.
/// (The engine lets one waiter of a session poll for those far behind: shared_queue_lease.)
inline constexpr std::int64_t retry_after_us = 1'000'000;
inline constexpr std::int64_t retry_step_us = 250'000;
/// The first waiter polls when the lease in its way ends, but not sooner than after this time.
inline constexpr std::int64_t retry_after_at_least_us = 100;
/// Without notifications: after the lock's current hold time, which is clamped to these two,
/// times the place in the line; and no longer than that.
inline constexpr std::int64_t untold_step_at_least_us = 5'000;
inline constexpr std::int64_t untold_step_at_most_us = 50'000;
inline constexpr std::int64_t untold_retry_after_us = 1'500'000;
/// A participant that dropped out of a barrier is remembered so long after it last opened.
inline constexpr std::int64_t dropped_lasts_us = 86'400'000'000;
/// At most so many peers are named as being in the way.
inline constexpr std::size_t max_blockers = 8;

/// Applies one command. `record` is changed only if the outcome is not a mismatch; it is left with
/// capacity 0 when nobody holds or waits any more. Names in `tell` are left empty.
permits_reply apply(permits_record& record, const permits_command& command, const moment& now,
                    std::int64_t claim = claim_us);

/// Ends all leases of these sessions, which are known to be dead: the next command finds them run
/// out. True if there was one.
bool forget(permits_record& record, std::span<const std::string> peers);

}  // namespace holdfast::kernel
