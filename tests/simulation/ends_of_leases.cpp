#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// Leases that end by themselves, and leases that an outage does not end.
namespace simulation {

namespace {

using goes_wrong = fault_plan::kind;

// The store is away for almost half of a lease, again and again. A renewal that fails is retried in
// time.
void bear_outages(random_source& r, plan& p) {
  set_up(p, 1 + r.below(3), r.between(4, 10) * second);
  if (p.store > store_kind::scripts) p.store = store_kind::told;
  const nanos lease = p.longest_lease();
  p.command_timeout = lease / 20;
  p.names.assign(p.processes.size(), name_plan{some_mutex(r)});
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    give(p.processes[i], {{.think = r.between(0, lease / 3), .name = i, .hold = 30 * lease}});
  }
  for (nanos at = r.between(lease, 2 * lease); at < 28 * lease;) {
    const nanos length = r.between(lease * 40 / 100, lease * 49 / 100);
    p.faults.push_back({.what = r.one_in(3) ? goes_wrong::freeze : goes_wrong::cut,
                        .at = at,
                        .length = length,
                        .process = r.below(p.processes.size())});
    at += length + lease + r.between(0, lease);
  }
}

// Permits with leases of several lengths that nobody renews or releases. Each lease that ends
// admits the first waiter, whichever holder came first.
void let_permits_end(random_source& r, plan& p) {
  set_up(p, 3 + r.below(2), second);
  p.names = {{lock_kind::semaphore, static_cast<std::uint32_t>(2 + r.below(2))}};
  for (auto& one : p.processes) {
    one.lease = r.between(500, 6000) * millisecond;
    one.renew = false;
    const bool comes_first = one.threads.empty() && &one - p.processes.data() < 3;
    step s{.think = r.between(0, 300 * millisecond), .hold = one.lease * 6 / 5};
    s.clings = r.between(second, 2 * second);
    if (!comes_first) s.think += 400 * millisecond, s.hold = r.between(0, one.lease / 4);
    give(one, {s, s});
  }
}

}  // namespace

bool arrange_endings_of_leases(plan& p) {
  random_source r(random_source(p.seed + 83'000'000'000).next());
  if (r.one_in(2) || p.processes.empty() || !p.has_only_locks()) return false;
  if (p.about != theme::locks && p.about != theme::scripts) return false;
  if (p.store == store_kind::contenders) return false;
  return (r.one_in(2) ? bear_outages(r, p) : let_permits_end(r, p)), true;
}

}  // namespace simulation
