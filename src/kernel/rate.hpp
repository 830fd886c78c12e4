#pragma once

#include <holdfast/store/rate.hpp>

/// Decides whether a request may go through now. Token buckets, several of which may be decided on
/// together: all of them give, or none. Pure, like permits.hpp; `rate.lua` is its twin.
///
/// A bucket is stored as the amount that is missing from it, and since when: whole numbers, so that
/// a million takes lose nothing. A bucket that has filled up again is forgotten, so an unused key
/// costs nothing. Tokens that have not come yet may be taken ahead: the bucket goes into debt, the
/// taker waits, and later takers wait behind it, in the order of their requests.
///
/// A bucket never gives more than capacity + rate x time. Let F be the time when a bucket will be
/// full, and C the time in which an empty one fills. The takes that count at or after a time s, at
/// their due times, amount to rate x (F - s) at most. That is true of a full bucket, and a take
/// keeps it true, because it moves F by what it takes and is due at F - C at the earliest. So in a
/// span from s to e no more than rate x (e + C - s) counts.
///
/// A refund must keep that true of what remains. It takes n away from every span that begins at the
/// refund's own due time d or earlier. A span that begins later has only what is due after d, which
/// is at most rate x (F - d) - n, and begins at the last due time L at the latest. So F may go back
/// by n less rate x (L - d). L is the end of the debt, or the last take. If a refund moved that end
/// to before another due time, the bucket stores L (`reserved_until`). So the tokens that were due
/// last come back in full. A refund with a due time is of a whole take; a refund without one counts
/// as taken now. (All this is exact to less than one step of the rule.)
///
/// Each rule counts a take at the time when its own bucket has the tokens. A take goes through when
/// the slowest bucket has them (ADR 140).
///
/// Rules may change while they are in use. The greatest version that a bucket has met is in force
/// until the bucket is full again, for all requests. What was used before stays used, in whole
/// tokens, up to the new capacity: a change gives no second burst.
namespace holdfast::kernel {

/// Applies one command. `record` changes if tokens were granted or refunded, or if a take brings a
/// greater version.
store::rate_reply apply(store::rate_record& record, const store::rate_command& command,
                        const store::moment& now);

/// Forgets the buckets that are full by now, and the refunds that are not repeated any more.
void expire(store::rate_record& record, const store::moment& now);

}  // namespace holdfast::kernel
