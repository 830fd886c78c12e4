#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/store/slot_store.hpp>
#include <holdfast/store/store.hpp>
#include <memory>

namespace holdfast::family {

/// Mutexes, and semaphores whose permits are taken one by one, over slots. There is no queue at the
/// store: a waiter polls, less often the longer it waits, at random moments; or it is notified,
/// where the store can notify. Thread-safe.
std::unique_ptr<store::session_store> over(std::unique_ptr<store::slot_store> port, clock& on);

/// The longest pause between two polls: without notifications, and with them.
inline constexpr std::int64_t longest_pause_us = 250'000;
inline constexpr std::int64_t longest_pause_where_told_us = 1'000'000;
inline constexpr std::int64_t shortest_pause_us = 2'000;
/// For so long after the holder was seen to change, a look after such a part of the time that it
/// has waited, beside programs that are not holdfast's.
inline constexpr std::int64_t hot_us = 2'000'000;
inline constexpr std::int64_t hot_part = 500;

}  // namespace holdfast::family
