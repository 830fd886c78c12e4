#pragma once

#include <algorithm>
#include <holdfast/store/slot_store.hpp>
#include <limits>
#include <string>
#include <string_view>

#include "store/redis/resp.hpp"

/// Redisson's (Java) names and formats, and the commands to the scripts that use them.
namespace holdfast::store::redis {

/// The longest lease of a reader. A Java reader, which may be unknown to holdfast, sets the end of
/// every reader to its own watchdog time-out when it renews; unless configured otherwise, that is
/// this value.
inline constexpr std::int64_t longest_reader_lease_us = 30'000'000;

/// The channel that announces that a lock (or latch, or permits) may be free.
std::string redisson_channel(kind what, std::string_view key);
/// The channel of one waiter: the lock's channel, or, for the fair lock, the waiter's own.
std::string redisson_channel(const slot& where, std::string_view key, const owner_id& waits);

/// The prefix of a key that belongs to another key.
std::string redisson_beside(std::string_view key);

/// A holdfast owner in Redisson's format: `id:thread`, and `id:thread:write` for a writer.
std::string redisson_owner(const owner_id& id);
/// The id in the format of Redisson's ids of permits and requests: 16 bytes.
std::string redisson_id(const owner_id& id);
/// Returns false if the owner is not holdfast's.
bool parse_redisson_owner(std::string_view text, owner_id& id) noexcept;
bool writes(std::string_view redisson_owner) noexcept;

/// The key of the shared object, and the key where holdfast marks which commands are too late for
/// it: late.lua.
struct marked_key {
  std::string_view key;
  std::string_view mark;
};

/// One step of a lock (`fenced`: a mutex is an RFencedLock), or of a latch.
std::string redisson_call(const marked_key& at, const slot& where, std::string_view verb,
                          const slot_entry& who, std::int64_t lease_us, bool fenced);
std::string redisson_call(const marked_key& at, const countdown_command& c);

/// Converts to microseconds. The server may return any number.
constexpr std::int64_t us_of(std::int64_t ms) noexcept {
  return std::clamp<std::int64_t>(ms, 0, std::numeric_limits<std::int64_t>::max() / 1'000) * 1'000;
}
/// Reads the answer to an inspection of a semaphore: the number of free permits, and the known
/// holders.
slot_entry read_semaphore(const std::vector<resp_value>& answer);

/// Reads the answer of the latch's script.
result<countdown_reply> read_latch(std::string_view key, const resp_value& answer);

}  // namespace holdfast::store::redis
