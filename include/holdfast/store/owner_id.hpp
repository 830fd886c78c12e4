#pragma once

#include <holdfast/cpp20.hpp>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::store {

/// 128 random bits that identify one acquisition, of one name or of several together: whether the
/// owner holds one of these names says nothing about the others. A program that knows the id can
/// release the lock, so the id is never shown whole.
struct owner_id {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const owner_id&) const = default;
  explicit operator bool() const noexcept { return high != 0 || low != 0; }
};

std::string to_string(const owner_id& id);  ///< 32 hexadecimal digits
bool parse_owner_id(std::string_view text, owner_id& id) noexcept;

/// The key under which a client remembers a hold or a wait.
struct owned_name {
  std::string name;
  owner_id owner{};
  auto operator<=>(const owned_name&) const = default;
};

}  // namespace holdfast::store
