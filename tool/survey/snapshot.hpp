#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tool/listed_name.hpp"

namespace holdfast::tool {

/// How a store answers its viewers.
struct store_health {
  bool reachable = false;
  std::string error{};  ///< the last one; relevant while it is not reachable
  std::string note{};   ///< why it lists no names; empty if it does
  std::chrono::system_clock::time_point changed_at{};   ///< since when it is reachable, or away
  std::chrono::system_clock::time_point answered_at{};  ///< the last time; the epoch: never
  std::chrono::nanoseconds round_trip{};                ///< of the last command; 0: unknown
  std::uint64_t commands = 0;
  std::uint64_t errors = 0;
  double allowed_share = 0;                ///< the most of the time that queries may take
  double used_share = 0;                   ///< the scanner's share during the last minute
  std::chrono::nanoseconds round{};        ///< the last round over every name; 0: not done
  std::chrono::nanoseconds round_asked{};  ///< the part of it that queries took, without pauses

  /// Why nothing newer is known; empty while the store answers.
  std::string trouble() const { return reachable ? std::string{} : error; }
};

/// Everything that is known about one store, at one moment.
struct snapshot {
  std::string store{};  ///< its URL without secrets; for metrics, session::url()
  std::chrono::system_clock::time_point taken_at{};
  /// The time of the oldest query in `names`, or of the list of the names if that is older.
  std::chrono::system_clock::time_point as_of{};
  std::vector<listed_name> names{};  ///< sorted by name
  store_health health{};
};

}  // namespace holdfast::tool
