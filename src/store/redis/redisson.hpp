#pragma once

#include <algorithm>
#include <holdfast/store/slot_store.hpp>
#include <limits>
#include <string>
#include <string_view>

#include "store/redis/resp.hpp"

/// How Redisson (Java) spells what it shares, and the commands to the scripts that speak it.
namespace holdfast::store::redis {

/// The longest lease of a reader: the renewal of a Java reader, of whom we may know nothing, sets
/// the end of every reader to its own watchdog time-out, which is this unless it was configured.
inline constexpr std::int64_t longest_reader_lease_us = 30'000'000;

/// The channel on which it is said that a lock (or latch, or permits) may be had.
std::string redisson_channel(kind what, std::string_view key);
/// Where one waiter is told: that one, or in order one of its own.
std::string redisson_channel(const slot& where, std::string_view key, const owner_id& waits);

/// What a key begins with that belongs to another key.
std::string redisson_beside(std::string_view key);

/// How an owner of ours is written: `id:thread`, and `id:thread:write` of who writes.
std::string redisson_owner(const owner_id& id);
/// As Redisson keeps the ids of permits and requests: 16 bytes.
std::string redisson_id(const owner_id& id);
/// False of one that is not ours.
bool parse_redisson_owner(std::string_view text, owner_id& id) noexcept;
bool writes(std::string_view redisson_owner) noexcept;

/// The key of what is shared, and where our programs mark what is too late for it: late.lua.
struct marked_key {
  std::string_view key;
  std::string_view mark;
};

/// One step of a lock (fenced: of an RFencedLock, where it is a mutex), or of a latch.
std::string redisson_call(const marked_key& at, const slot& where, std::string_view verb,
                          const slot_entry& who, std::int64_t lease_us, bool fenced);
std::string redisson_call(const marked_key& at, const countdown_command& c);

/// As microseconds. What a server says may be anything.
constexpr std::int64_t us_of(std::int64_t ms) noexcept {
  return std::clamp<std::int64_t>(ms, 0, std::numeric_limits<std::int64_t>::max() / 1'000) * 1'000;
}
/// A semaphore, looked at: how many permits are free, and beside that the holders that are known.
slot_entry read_semaphore(const std::vector<resp_value>& answer);

/// What the latch's script answered.
result<countdown_reply> read_latch(std::string_view key, const resp_value& answer);

}  // namespace holdfast::store::redis
