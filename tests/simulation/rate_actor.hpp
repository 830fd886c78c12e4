#pragma once

#include <holdfast/rate_limiter.hpp>
#include <memory>
#include <string>

#include "simulation/meeting_actor.hpp"

namespace simulation {

/// The rule of the bucket of one key, beside the common one.
name_plan rule_of_a_key(const name_plan& all);

std::unique_ptr<holdfast::rate_limiter> make_limiter(const holdfast::session& s, std::string name,
                                                     const name_plan& of);
/// The step's operation on a limiter, in a word.
const char* word_of_rates(const plan& p, const step& s);
/// At the end of all processes: checks that tokens that no caller received are free.
void judge_what_is_left_of_tokens(scene& of);
/// Carries out the deed of the step at a limiter or an admission.
void act_by_rates(const actor& who, belongings& all);

}  // namespace simulation
