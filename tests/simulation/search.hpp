#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "simulation/run.hpp"

namespace simulation {

/// Runs seeds, `at_once` at a time, reports the results, and reduces a failing plan until
/// it is small enough to read.
struct searched {
  std::uint64_t runs = 0;
  std::uint64_t commands = 0;
  std::uint64_t grants = 0;
  std::uint64_t switches = 0;
  double simulated_hours = 0;
  double seconds = 0;
  std::vector<seed_of> failed;
  coverage met;
  std::string text() const;
};

/// The search starts at `first` and ends after this many seconds, runs or failures; `tell` is
/// called for each failure.
struct search_limits {
  double seconds = 1e9;
  std::uint64_t runs = UINT64_MAX;
  std::size_t failures = 1;
  std::size_t at_once = 1;  ///< runs, each in a process
  std::vector<theme> about{std::begin(all_themes), std::end(all_themes)};  ///< in turn
};
searched search(std::uint64_t first, const search_limits& limits,
                const std::function<void(const plan&, const outcome&)>& tell);

/// Returns a smaller plan that breaks the same rule.
plan shrink(plan p, const std::string& rule, double seconds);

/// The verdict, the plan and the trace, optionally reduced, for a person.
std::string report(const plan& p, const outcome& o, bool make_smaller);

}  // namespace simulation
