#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>

#include "tool/finding.hpp"
#include "tool/listed_name.hpp"

namespace holdfast::tool {

/// The facts by which the names of a store are judged.
struct circumstances {
  std::chrono::system_clock::time_point now;
  std::chrono::nanoseconds stuck;                   ///< a wait as long as this is reported
  std::string host;                                 ///< this machine, as it is written into locks
  std::function<bool(std::uint32_t pid)> is_alive;  ///< whether this machine has that process
};

/// Finds stuck waiters, dead holders, and unreadable entries. Pure but for is_alive.
findings judge_names(std::span<const listed_name> names, const circumstances& c);

}  // namespace holdfast::tool
