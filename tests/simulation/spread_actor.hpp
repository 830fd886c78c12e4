#pragma once

#include "simulation/meeting_actor.hpp"

namespace simulation {

/// Carries out the step at a name on several stores: a redlock, or two combined mutexes.
void act_across_stores(const actor& who, belongings& all);

}  // namespace simulation
