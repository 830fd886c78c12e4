#pragma once

#include <holdfast/result.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "store/memcached/options.hpp"

/// How names become keys. A key of memcached has 250 bytes at most, none of them a space or a
/// control character: those of a name are written as %XX, as is the % itself, so that nothing in a
/// name can end a command and begin another.
namespace holdfast::store::memcached {

inline constexpr std::size_t max_key_bytes = 250;

/// `holdfast:orders`, or with a suffix `holdfast:orders%s3` (a permit's slot), `holdfast:orders%n`
/// (the counter of fences). errc::invalid_name if it gets too long.
result<std::string> lock_key(std::string_view prefix, std::string_view name, std::uint32_t part);
std::string counter_key(const std::string& lock_of_part_0);

/// Back from a lock's key; nothing if it is none under that prefix, or one that no name makes.
std::optional<std::string> name_of_key(std::string_view prefix, std::string_view key);

/// %XX taken out: how a server's list of keys writes them.
std::string unescape(std::string_view text);

/// Which server has a name: the same for all programs that name the same servers, in any order; one
/// server more or less moves only the names that have to move.
std::size_t server_of(std::string_view name, const std::vector<address>& servers);

}  // namespace holdfast::store::memcached
