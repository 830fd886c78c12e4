#pragma once

#include "simulation/meeting_actor.hpp"

namespace simulation {

/// What the step does with an expiring_semaphore, in a word.
const char* word_of_permits(const step& s) noexcept;
/// The deed of a step at an expiring_semaphore.
void act_by_permits(const actor& who, belongings& all);

}  // namespace simulation
