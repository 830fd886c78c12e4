#pragma once

#include <holdfast/result.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "store/memcached/options.hpp"

/// How names become keys. A memcached key has at most 250 bytes, without spaces and control
/// characters: in a name they are written as %XX, and so is the % itself, so that no name can end a
/// command and begin another.
namespace holdfast::store::memcached {

inline constexpr std::size_t max_key_bytes = 250;

/// `holdfast:orders`, or with a suffix `holdfast:orders%s3` (the slot of a permit),
/// `holdfast:orders%n` (the counter of fences). Fails with errc::invalid_name if the key gets too
/// long.
result<std::string> lock_key(std::string_view prefix, std::string_view name, std::uint32_t part);
std::string counter_key(const std::string& lock_of_part_0);

/// The name in a lock's key; nothing if the key is not a lock's under that prefix, or not one that
/// a name can produce.
std::optional<std::string> name_of_key(std::string_view prefix, std::string_view key);

/// Decodes %XX, which a server's list of keys contains.
std::string unescape(std::string_view text);

/// The index of the server that has a name: the same for all programs that list the same servers,
/// in any order. Adding or removing a server moves only the names that have to move.
std::size_t server_of(std::string_view name, const std::vector<address>& servers);

}  // namespace holdfast::store::memcached
