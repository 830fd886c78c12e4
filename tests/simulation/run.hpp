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

/// Does what the plan says; the same plan gives the same run.
outcome run(const plan& p, bool traced);
/// Up to that time: what has happened and where each thread stands. A debugger is stopped there.
std::string run_until(const plan& p, nanos when);

/// In a process of its own, which may crash or hang.
outcome run_apart(const plan& p, bool traced);

}  // namespace simulation
