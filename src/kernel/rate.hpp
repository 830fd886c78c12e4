#pragma once

#include <holdfast/store/rate.hpp>

/// May it go through now? Token buckets, several decided on together: all of them give, or none.
/// Pure, like permits.hpp; `rate.lua` is its twin.
///
/// A bucket is what is missing from it, and since when: whole numbers, so that a million takes lose
/// nothing. A bucket that has filled up again is forgotten, which makes an unused key cost nothing.
/// What is not there yet may be taken ahead: the bucket goes into debt, the taker waits, and
/// later takers wait behind it, in the order in which they asked.
///
/// Never more than capacity + rate x time. Let F be the time when a bucket will be full, and C how
/// long it takes to fill. What counts from a time s on, at its due times, is at most rate x (F -
/// s): true of a full bucket, and a take keeps it so, because it moves F by what it takes and is
/// due at F - C at the earliest. So in a span from s to e no more counts than rate x (e + C - s).
///
/// A refund must keep that true of what remains. It takes n away from every span that begins by
/// the refund's own due time d. A span that begins later has only what is due after d, which is at
/// most rate x (F - d) - n, and begins at the last due time L at the latest: so F may go back by n
/// less rate x (L - d). L is the end of the debt, or the last take; where a refund moved that end
/// to before another due time, the bucket says so (`reserved_until`). Tokens that were last in
/// line go back whole. A whole take is given back, or else it counts as taken now. (All this but
/// for what is less than one step of the rule.)
///
/// Each rule counts a take at the time when its own bucket has the tokens. A take goes through when
/// the slowest has them (ADR 140).
///
/// Rules may change while they are in use. The greatest version that a bucket has met is in force
/// until it is full again, for all requests. What was used before stays used, in whole tokens, up
/// to the new capacity: a change gives no second burst.
namespace holdfast::kernel {

/// Applies one command. `record` changes by what was granted or refunded, and by a take that brings
/// a greater version.
store::rate_reply apply(store::rate_record& record, const store::rate_command& command,
                        const store::moment& now);

/// Forgets the buckets that are full by now, and the refunds that nobody repeats any more.
void expire(store::rate_record& record, const store::moment& now);

}  // namespace holdfast::kernel
