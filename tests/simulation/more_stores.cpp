#include "simulation/plan.hpp"

namespace simulation {

bool arrange_more_stores(random_source&, plan&) { return false; }

}  // namespace simulation
