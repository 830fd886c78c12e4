#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// Leases that end by themselves, and leases that an outage does not end.
namespace simulation {

namespace {

using goes_wrong = fault_plan::kind;

// The store is away for almost half of a lease, again and again. A renewal that fails is tried
// again in time.
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

// Permits with leases of several lengths, which nobody renews or gives back: each that ends lets
// the first waiter in, whichever holder came first.
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

// The processes of readers and waiters die one after the other, while many of others watch them.
void die_before_many(random_source& r, plan& p) {
  set_up(p, 4 + r.below(3), r.between(3, 8) * second);
  p.store = store_kind::sees_death;
  p.names.assign(1 + r.below(2), name_plan{some_mutex(r)});
  if (r.one_in(3)) p.names = {{lock_kind::shared}};
  nanos dies = r.between(200 * millisecond, 500 * millisecond);
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    for (auto more = 1 + r.below(3); more > 0; --more) {
      step s{.think = r.between(0, 100 * millisecond),
             .name = r.below(p.names.size()),
             .hold = r.between(0, 2 * second)};
      s.shared = p.names[s.name].kind == lock_kind::shared && r.one_in(2);
      if (r.one_in(2)) s.how = step::style::callback;
      give(p.processes[i], {s, s, s});
    }
    if (i < 3) {
      p.faults.push_back({.what = goes_wrong::kill, .at = dies, .process = i});
      dies += r.between(0, second);
    }
  }
}

}  // namespace

bool arrange_endings_of_leases(plan& p) {
  random_source r(random_source(p.seed + 83'000'000'000).next());
  if (r.one_in(2) || p.processes.empty() || !p.has_only_locks()) return false;
  const bool scripts = p.about == theme::scripts;
  if (p.about != theme::locks && !scripts) return false;
  if (p.store == store_kind::contenders) return false;
  switch (r.below(scripts ? 2 : 3)) {
    case 0:
      return bear_outages(r, p), true;
    case 1:
      return let_permits_end(r, p), true;
    default:
      return die_before_many(r, p), true;
  }
}

}  // namespace simulation
