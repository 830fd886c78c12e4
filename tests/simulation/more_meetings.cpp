#include "simulation/plan.hpp"

namespace simulation {

bool arrange_more_meetings(random_source&, plan&) { return false; }

}  // namespace simulation
