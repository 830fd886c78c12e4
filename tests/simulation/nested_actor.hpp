#pragma once

#include "simulation/lock_actor.hpp"

namespace simulation {

/// Acquires several locks, one inside the other, and sometimes waits in a ring with others.
void act_nested(const actor& who, std::vector<locks>& all);

}  // namespace simulation
