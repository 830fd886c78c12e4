#pragma once

#include <holdfast/holdfast.hpp>
#include <memory>
#include <mutex>
#include <vector>

#include "simulation/lock_actor.hpp"

namespace simulation {

/// What a process has begun without waiting for it. Its callbacks keep it.
struct begun {
  std::mutex mutex{};
  std::vector<holdfast::lease> kept{};
  bool closing = false;  ///< nothing is kept any more
  int asked = 0;
  int told = 0;
};

/// Asks for the lock of the step without waiting; what is done with it when it is had says the
/// deed.
void act_without_waiting(const actor& who, const holdfast::session& s,
                         const std::shared_ptr<begun>& all);
/// All is over: everything that was begun has been told how it ended.
void judge_endings(scene& of, const process& p, const begun& all);

}  // namespace simulation
