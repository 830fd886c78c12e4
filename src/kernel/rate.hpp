#pragma once

#include <holdfast/store/rate.hpp>

/// May it go through now? Token buckets, several decided on together: all of them give, or none.
/// Pure, like permits.hpp; `rate.lua` is its twin.
///
/// A bucket is what is missing from it, and since when: whole numbers, so that a million takes lose
/// nothing. A bucket that has filled up again is forgotten, which makes an unused key cost nothing.
/// What is not there yet may be taken ahead: the bucket goes into debt, whoever took it waits, and
/// those who come later wait behind it, in the order in which they asked.
///
/// Rules may change while they are in use. The greatest version that a bucket has met is in force
/// until it is full again, whoever asks. What was used before stays used, in whole tokens, up to
/// the new capacity: nobody gets a second burst out of a change.
namespace holdfast::kernel {

/// Applies one command. `record` changes by what was granted or refunded, and by a take that brings
/// a greater version.
store::rate_reply apply(store::rate_record& record, const store::rate_command& command,
                        const store::moment& now);

/// Forgets the buckets that are full by now, and the refunds that nobody repeats any more.
void expire(store::rate_record& record, const store::moment& now);

}  // namespace holdfast::kernel
