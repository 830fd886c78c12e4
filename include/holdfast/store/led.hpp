#pragma once

#include <holdfast/cpp20.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace holdfast::store {

/// A leader, present or past, for observers of an election.
struct led {
  std::uint64_t fence = 0;
  std::int64_t since_wall_at = 0;
  std::string note;
  bool operator==(const led&) const = default;
};
/// How many of them a record keeps.
inline constexpr std::size_t most_led = 16;

}  // namespace holdfast::store
