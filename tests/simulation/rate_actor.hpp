#pragma once

#include <holdfast/rate_limiter.hpp>
#include <memory>
#include <string>

#include "simulation/meeting_actor.hpp"

namespace simulation {

std::unique_ptr<holdfast::rate_limiter> make_limiter(const holdfast::session& s, std::string name,
                                                     const name_plan& of);
/// The deed of a step at a limiter or an admission.
void act_by_rates(const actor& who, belongings& all);

}  // namespace simulation
