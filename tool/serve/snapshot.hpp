#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tool/listed_name.hpp"

namespace holdfast::tool {

/// How a store answers the scanner.
struct store_health {
  bool reachable = false;
  std::string error{};  ///< the last one; of use while it is not reachable
  std::chrono::system_clock::time_point changed_at{};  ///< reachable, or away, since
  std::chrono::nanoseconds round_trip{};               ///< of the last command
  std::uint64_t commands = 0;
  std::uint64_t errors = 0;
  double allowed_share = 0;          ///< the most of the time that the scanner may spend asking
  double used_share = 0;             ///< what it spent during the last minute
  std::chrono::nanoseconds round{};  ///< so long the last look at every name took; 0: not done
};

/// Everything that is known about one store, at one moment.
struct snapshot {
  std::string store{};  ///< its URL without secrets
  std::chrono::system_clock::time_point taken_at{};
  std::vector<listed_name> names{};  ///< sorted
  store_health health{};
};

}  // namespace holdfast::tool
