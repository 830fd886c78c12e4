#include <algorithm>
#include <map>

#include "kernel/permits.hpp"
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
      successor_dies(p);
      last_death = here.now();
      here.kill(p);
      rules.died(p);
      if (notes.rings) notes.rings->died(p);
      for (auto& [i, book] : notes.conditions) book.died(p.number);
      std::erase_if(waiting, [&](const auto& w) { return w.second == &p; });
      for (const auto& s : stores) s->process_died(p);
      return;
    case kind::cut:
      return stores[f.store]->cut(p, until);
    case kind::restart:
      return stores[f.store]->stop(until, false);
    case kind::forget:
      data_lost(until);
      stores[f.store]->stop(until, true);
      return remember_old_places(f.store);
    case kind::divide:
      data_lost(until);
      stores[f.store]->divide(until);
      return remember_old_places(f.store);
    case kind::restore:
      data_lost(until);
      stores[f.store]->restore(until);
      return remember_old_places(f.store);
    case kind::freeze:
      return stores[f.store]->freeze(until);
    case kind::suspend:
      return suspend(p, until);
    case kind::full:
    case kind::read_only:
      return stores[f.store]->refuse_writes(until, f.what == kind::full);
    case kind::lose_key:
      data_lost(until);
      return stores[f.store]->lose_a_key(until);
    case kind::step:
      rules.clock_stepped();
      disturbed_at = std::max(disturbed_at, until + f.length);
      return stores[f.store]->step_clock(f.length, until);
    case kind::clock_forward:  // leases end before their holders notice
      rules.forgot(until + 2 * whole.longest_lease(), until + 2 * whole.longest_lease());
      notes.forgot(until + 2 * whole.longest_lease());
      return stores[f.store]->set_clock(f.length);
    case kind::clock_back:
      notes.forgot(until + 2 * whole.longest_lease());
      return stores[f.store]->set_clock(-f.length);
    case kind::refuse_row:
      return stores[f.store]->refuse_row(name_of(f.name), until);
    case kind::evict:
      for (auto& [i, book] : notes.permits) book.forgot(here.now());
      return stores[f.store]->evict(name_of(0));
  }
}

void scene::remember_old_places(std::size_t store) {
  for (std::size_t i = 0; i < whole.names.size(); ++i) {
    if (whole.names[i].store == store) stores[store]->has_old_places(name_of(i));
  }
}

// Until its lease ends, a holder may rely on what was granted before. If its process keeps the lock
// for its next thread, a thread that asks later may rely on it, too.
void scene::data_lost(nanos until) {
  const nanos told_by = until + 2 * whole.longest_lease();
  const bool kept = std::any_of(whole.processes.begin(), whole.processes.end(),
                                [](const auto& p) { return p.linger > 0; });
  rules.forgot(kept ? told_by : until, told_by);
  // The counters may be gone, and the clock that replaces them goes back.
  const bool back = std::any_of(whole.faults.begin(), whole.faults.end(), [](const auto& f) {
    return f.what == fault_plan::kind::clock_back;
  });
  const bool again = std::any_of(whole.faults.begin(), whole.faults.end(),
                                 [](const auto& f) { return f.what == fault_plan::kind::restore; });
  if (back || again || whole.store == store_kind::memcached) rules.forgot_fences(told_by);
  notes.forgot(told_by);
}

// A waiter that dies after its turn has come, and before it knows of that, costs the next waiter
// the claim time, as the guarantees say. The store sees at once only a death before or after that
// moment.
void scene::successor_dies(const process& p) {
  for (std::size_t i = 0; i < whole.names.size(); ++i) {
    const std::string name = name_of(i);
    const bool waits = std::any_of(waiting.begin(), waiting.end(), [&](const auto& one) {
      return one.first == name && one.second == &p;
    });
    if (!waits || has_a_holder(name)) continue;
    if (stores[whole.names[i].store]->counts_until(name, p.number)) {
      unclaimed_until[name] =
          here.now() + holdfast::kernel::claim_where_death_is_seen_us * microsecond;
    }
  }
}

// Suspends the process together with all others on its machine.
void scene::suspend(const process& which, nanos until) {
  for (auto* const p : processes) {
    if (p->number % 2 != which.number % 2 || p->dead) continue;
    log.add("world", "P" + std::to_string(p->number) + " sleeps with its machine until " +
                         std::to_string(until / millisecond) + " ms");
    here.suspend(*p, until);
    const nanos noticed = until + notices_sleep_within;
    here.at(noticed, [this, p, noticed] {
      if (!p->dead && p->steady_since <= noticed) rules.is_awake(*p);
    });
  }
}

nanos scene::store_disturbed(const process& p) const {
  nanos last = -1;
  for (const auto& s : stores) last = std::max(last, s->disturbed_at(p));
  return last;
}

nanos scene::disturbed(const process& p) const {
  return std::max({disturbed_at, store_disturbed(p), p.steady_since, p.paused_until});
}

nanos scene::disturbed_anywhere() const {
  nanos last = disturbed_at;
  for (const auto* const p : processes) last = std::max(last, disturbed(*p));
  return last;
}

bool scene::keeps_all() const noexcept {
  // Locks that end with their connection, where the holder may learn of the loss later.
  if (whole.store == store_kind::advisory) return whole.calm();
  return std::all_of(whole.faults.begin(), whole.faults.end(), [](const auto& f) {
    using kind = fault_plan::kind;
    return f.what < kind::forget || f.what == kind::freeze || f.what == kind::suspend;
  });
}

bool scene::undisturbed(const process& p, nanos since) const {
  const nanos last = disturbed(p);
  return whole.calm() || last < since - 3 * whole.longest_lease() - 5 * second;
}

}  // namespace simulation
