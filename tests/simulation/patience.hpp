#pragma once

#include "simulation/plan.hpp"

namespace simulation {

/// From this seed on, half of the seeds of some themes arrange long waits and long outages.
inline constexpr std::uint64_t patient_seeds = std::uint64_t{1} << 41;
/// False if it has nothing of its kind for this plan.
bool arrange_patience(plan& p);

/// Whether the store is away for moments only, much shorter than a session tolerates.
bool has_only_short_outages(const plan& p);
/// A time in which a process reaches no store, or too few for a majority.
struct outage {
  nanos from = 0;
  nanos until = 0;
};
/// The longest one; none if anything else may go wrong.
outage longest_outage(const plan& p, std::size_t process);
/// Whether one of several stores is away now and then, and nothing else goes wrong.
bool has_one_store_away(const plan& p);
/// Whether the only faults are moments in which stores are frozen, far apart and short beside the
/// leases.
bool bears_its_outages(const plan& p);

}  // namespace simulation
