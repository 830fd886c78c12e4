#pragma once

#include <sys/types.h>
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

/// A run of the plan in a process of its own, which may crash or hang. It begins at once; the
/// destructor stops what nobody has waited for.
class run_beside {
 public:
  run_beside(const plan& p, bool traced);
  run_beside(run_beside&& other) noexcept;
  run_beside& operator=(run_beside&& other) noexcept;
  ~run_beside();

  /// Readable when the run tells its result, or has died.
  int descriptor() const { return result_; }
  /// Waits for the end of the run.
  outcome wait();

 private:
  int end();

  pid_t child_ = -1;
  int result_ = -1;
};
inline outcome run_apart(const plan& p, bool traced) { return run_beside(p, traced).wait(); }

}  // namespace simulation
