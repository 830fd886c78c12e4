#include <algorithm>
#include <map>

#include "simulation/scene.hpp"

namespace simulation {

void scene::strike(const fault_plan& f) {
  process& p = *processes[f.process];
  const nanos until = here.now() + f.length;
  using kind = fault_plan::kind;
  disturbed_at = std::max(disturbed_at, until);
  switch (f.what) {
    case kind::pause:
      log.add("world", "P" + std::to_string(p.number) + " stands still for " +
                           std::to_string(f.length / millisecond) + " ms");
      return here.pause(p, until);
    case kind::kill:
      log.add("world", "P" + std::to_string(p.number) + " is killed");
      here.kill(p);
      rules.died(p);
      std::erase_if(waiting, [&](const auto& w) { return w.second == &p; });
      return store().process_died(p);
    case kind::cut:
      return store().cut(p, until);
    case kind::restart:
      return store().stop(until, false);
    case kind::forget:
      // Until then somebody may rely on what was granted before, handed on in a process.
      rules.forgot(until + 2 * whole.longest_lease());
      notes.forgot(until + 2 * whole.longest_lease());
      return store().stop(until, true);
    case kind::freeze:
      return store().freeze(until);
  }
}

nanos scene::disturbed(const process& p) const {
  return std::max({disturbed_at, store().disturbed_at(p), p.steady_since, p.paused_until});
}

bool scene::undisturbed(const process& p, nanos since) const {
  const nanos last = disturbed(p);
  return whole.calm() || last < since - 3 * whole.longest_lease() - 5 * second;
}

}  // namespace simulation
