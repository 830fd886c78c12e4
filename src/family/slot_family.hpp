#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/store/slot_store.hpp>
#include <holdfast/store/store.hpp>
#include <memory>

namespace holdfast::family {

/// Mutexes, and semaphores whose permits are taken one by one, over slots. The store has no queue:
/// a waiter polls at random moments, less often the longer it waits; or it is notified, if the
/// store can do that. Thread-safe.
std::unique_ptr<store::session_store> over(std::unique_ptr<store::slot_store> port, clock& on);

/// The longest pause between two polls: without notifications, and with them.
inline constexpr std::int64_t longest_pause_us = 250'000;
inline constexpr std::int64_t longest_pause_where_told_us = 1'000'000;
inline constexpr std::int64_t shortest_pause_us = 2'000;
/// For `hot_us` after the holder was seen to change, a waiter polls after one `hot_part`th of the
/// time that it has waited, if programs that are not holdfast's use the store.
inline constexpr std::int64_t hot_us = 2'000'000;
inline constexpr std::int64_t hot_part = 500;

}  // namespace holdfast::family
