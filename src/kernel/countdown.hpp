#pragma once

#include <algorithm>
#include <holdfast/store/command.hpp>
#include <span>
#include <string>

#include "kernel/permits.hpp"

/// A count that goes down to zero, and the waiters for that. Pure, like permits.hpp;
/// `countdown.lua` is its twin. An arrival carries an id of its own. The id is remembered for as
/// long as the arrival may be repeated because a reply was lost, so an arrival counts once.
namespace holdfast::kernel {

/// The least time for which an arrival, or a refund of tokens, is remembered.
inline constexpr std::int64_t remember_us = 60'000'000;

/// When a waiter polls again: its polls keep the latch.
constexpr std::int64_t latch_retry_after_us(std::int64_t keep_us) {
  return std::min(retry_after_us, keep_us / 3);
}

/// Applies one command. If the latch need not be kept, `record` is left with count 0, and contains
/// only its arrivals, if there are any. `tells`: the store notifies.
store::countdown_reply apply(store::countdown_record& record,
                             const store::countdown_command& command, const store::moment& now,
                             bool tells = true);

/// Removes the waiters of these sessions, which are known to be dead. Returns true if there was
/// one.
bool forget(store::countdown_record& record, std::span<const std::string> peers);

}  // namespace holdfast::kernel
