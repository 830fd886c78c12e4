#include <algorithm>

#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"
#include "simulation/scene.hpp"

// Servers that answer a request with an error while its connection stays: they are starting, short
// of memory, or have just changed their leader.
namespace simulation {

using holdfast::errc;

namespace {

// Holders ask who else holds the server's own locks, or waits for them.
void look_around(random_source& r, plan& p) {
  if (r.one_in(2)) make_calm(p);
  p.for_each_step([&](step& s, const process_plan&) { s.looks = s.looks || r.one_in(3); });
}

}  // namespace

void mix_refusals(plan& p) {
  random_source r(random_source(p.seed + 173'000'000'000).next());
  if (p.store == store_kind::advisory && r.one_in(3)) return look_around(r, p);
  // A latch that is kept for a moment only is forgotten while its requests are refused.
  const bool forgets = std::any_of(p.processes.begin(), p.processes.end(),
                                   [](const auto& one) { return one.keep > 0; });
  if (p.processes.empty() || forgets || !r.one_in(3)) return;
  const auto some = [&] {
    return static_cast<unsigned>(r.one_in(3) ? 50 + r.below(250) : 3 + r.below(50));
  };
  p.network.refuse = some();
  p.network.leave_open = r.one_in(2) ? 0 : some();
  if (p.network.until == never && r.one_in(2)) p.network.until = r.between(1, 15) * second;
}

bool server::answers_with_an_error(connection& by, exchange& what) {
  if (net_.answers_all() || what.takes_time || is_.keeps >= server_traits::what::postgres_rows)
    return false;
  if (happens(net_.refuse)) {
    disturbed(by);
    if (what.over) return true;
    trace_.add("server", "(refused) " + what.label);
    what.failed = holdfast::failure{errc::unavailable, "simulated: the server refuses"};
    return true;
  }
  if (what.over || !happens(net_.leave_open)) return false;
  disturbed(by);
  trace_.add("server", "(left open) " + what.label);
  what.failed = holdfast::failure{errc::unavailable, "simulated: perhaps carried out", true};
  return world_.random().one_in(2);
}

}  // namespace simulation
