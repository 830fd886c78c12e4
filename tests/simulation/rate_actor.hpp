#pragma once

#include <holdfast/rate_limiter.hpp>
#include <memory>
#include <string>

#include "simulation/meeting_actor.hpp"

namespace simulation {

/// Of the bucket of one key beside the one for all.
name_plan rule_of_a_key(const name_plan& all);

std::unique_ptr<holdfast::rate_limiter> make_limiter(const holdfast::session& s, std::string name,
                                                     const name_plan& of);
/// What the step does with a limiter, in a word.
const char* word_of_rates(const plan& p, const step& s);
/// When all have ended: tokens that no caller received are free.
void judge_what_is_left_of_tokens(scene& of);
/// The deed of a step at a limiter or an admission.
void act_by_rates(const actor& who, belongings& all);

}  // namespace simulation
