#pragma once

#include "simulation/plan.hpp"

namespace simulation {

/// Seeds from here on, half of those of some themes, arrange long waits and long outages.
inline constexpr std::uint64_t patient_seeds = std::uint64_t{1} << 41;
/// False if it has nothing of the kind for this plan.
bool arrange_patience(plan& p);

/// The store is away for moments only, for much less than a session bears.
bool has_only_short_outages(const plan& p);
/// Of several stores one is away now and then, and nothing else goes wrong.
bool has_one_store_away(const plan& p);
/// All that goes wrong are moments in which stores stand still, far apart and short beside the
/// leases.
bool bears_its_outages(const plan& p);

}  // namespace simulation
