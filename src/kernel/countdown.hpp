#pragma once

#include <algorithm>
#include <holdfast/store/command.hpp>
#include <span>
#include <string>

#include "kernel/permits.hpp"

/// A count that goes down to zero, and those who wait for that. Pure, like permits.hpp;
/// `countdown.lua` is its twin. An arrival carries an id of its own, which is remembered for as
/// long as it may be repeated, because a reply was lost: it counts once.
namespace holdfast::kernel {

/// How long an arrival, or a refund of tokens, is remembered at least.
inline constexpr std::int64_t remember_us = 60'000'000;

/// When a waiter looks again: its looks keep the latch.
constexpr std::int64_t latch_retry_after_us(std::int64_t keep_us) {
  return std::min(retry_after_us, keep_us / 3);
}

/// Applies one command. `record` is left with count 0 when the latch need not be kept, but its
/// arrivals, if there are any.
store::countdown_reply apply(store::countdown_record& record,
                             const store::countdown_command& command, const store::moment& now);

/// Removes the waiters of these sessions, which are known to be dead. True if there was one.
bool forget(store::countdown_record& record, std::span<const std::string> peers);

}  // namespace holdfast::kernel
