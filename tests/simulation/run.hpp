#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulation/coverage.hpp"
#include "simulation/judge.hpp"
#include "simulation/plan.hpp"

namespace simulation {

struct outcome {
  std::optional<judge::verdict> found;
  std::uint64_t commands = 0;
  std::uint64_t grants = 0;
  std::uint64_t switches = 0;
  nanos simulated = 0;
  meetings_of_a_run met;
  std::string trace;
};

/// Runs the plan; the same plan gives the same run.
outcome run(const plan& p, bool traced);
/// Runs up to that time, and returns the events so far and the position of each thread. Stops an
/// attached debugger there.
std::string run_until(const plan& p, nanos when);

/// Runs the plan in a process of its own, which may crash or hang.
outcome run_apart(const plan& p, bool traced);

}  // namespace simulation
