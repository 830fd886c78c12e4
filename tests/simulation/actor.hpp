#pragma once

#include <holdfast/error.hpp>
#include <stop_token>
#include <string>

#include "simulation/scene.hpp"

namespace simulation {

/// One thread at one step: what it wants, and what it is told.
struct actor {
  scene& of;
  process& p;
  const process_plan& does;
  const step& s;
  std::string name;
  nanos asked = 0;

  /// An error that nothing excuses is a finding.
  void judge_error(holdfast::errc code, const std::string& what) const;
  /// Stops when the step says; its thread is the process's.
  std::stop_token stop() const;
  /// For the rule that nobody waits in vain.
  void waits(bool so) const;
  /// After a wait with a limit.
  void judge_wait(bool got, bool stoppable) const;
};

}  // namespace simulation
