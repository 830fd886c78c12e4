#pragma once

#include "simulation/meeting_actor.hpp"

namespace simulation {

/// The step at a name that is on several stores: a redlock, or two mutexes as one.
void act_across_stores(const actor& who, belongings& all);

}  // namespace simulation
