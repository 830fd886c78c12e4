#pragma once

#include "simulation/meeting_actor.hpp"

namespace simulation {

/// The step's operation on an expiring_semaphore, in a word.
const char* word_of_permits(const step& s) noexcept;
/// Carries out the deed of the step at an expiring_semaphore.
void act_by_permits(const actor& who, belongings& all);

}  // namespace simulation
