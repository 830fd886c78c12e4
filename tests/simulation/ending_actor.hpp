#pragma once

#include <holdfast/holdfast.hpp>
#include <memory>
#include <mutex>
#include <vector>

#include "simulation/lock_actor.hpp"

namespace simulation {

/// What a process has begun without waiting for it. Its callbacks keep it alive.
struct begun {
  std::mutex mutex{};
  std::vector<holdfast::lease> kept{};
  bool closing = false;  ///< nothing is kept any more
  int asked = 0;
  int told = 0;
};

/// Requests the step's lock asynchronously; the step's deed decides what happens with the lock.
void act_without_waiting(const actor& who, const holdfast::session& s,
                         const std::shared_ptr<begun>& all);
/// At the end of a process: checks that every request that was begun has completed.
void judge_endings(scene& of, const process& p, const begun& all);

}  // namespace simulation
