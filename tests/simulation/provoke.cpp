#include <algorithm>

#include "simulation/plan.hpp"

namespace simulation {

namespace {

// Nothing goes wrong, and no thread is late.
void make_punctual(plan& p) {
  const bool unordered = p.network.unordered;
  p.faults.clear();
  p.network = {};
  p.network.unordered = unordered;
  p.machine.slow_permille = p.machine.stall_per_100k = 0;
  p.drift_per_mille = 0;
  p.command_timeout = 2 * second;
}

// Holders that use what they have to its end, and others who wait for just that; answers come late.
// Whoever counts from an answer, or trusts what is too old, holds it for longer than the store.
void hold_to_the_end(random_source& r, plan& p) {
  make_punctual(p);
  p.machine.preempt_permille = p.machine.spurious_permille = 0;
  const nanos lease = p.longest_lease();
  p.network.slow_reply = static_cast<unsigned>(200 + r.below(500));
  p.network.slowest_late = r.between(lease / 4, lease * 9 / 10);
  if (p.processes.size() < 2) p.processes.push_back(p.processes.front());
  for (auto& one : p.processes) {
    one.linger = 0;
    one.max_hold = never;
    one.renew = p.about == theme::stores || r.one_in(3);
    one.threads.resize(std::min<std::size_t>(one.threads.size(), 2));
  }
  p.for_each_step([&](step& s, const process_plan& one) {
    s.think = r.between(0, one.lease / 4);
    // What was renewed, or extended, has to be used to its end, too.
    s.hold = r.between(one.lease / 2, one.lease * (one.renew ? 11 : 7) / 4);
    s.wait = s.stop_after = never;
    s.forces = false;
    s.more = 0;
    if (!r.one_in(3) && p.names[s.name].kind != lock_kind::recursive)
      s.what = step::inside::nothing;
  });
  const auto renews = std::find_if(p.processes.begin(), p.processes.end(),
                                   [](const auto& one) { return one.renew; });
  if (renews == p.processes.end() && r.one_in(2)) return;
  const auto at_random = r.below(p.processes.size());
  fault_plan f{.what = fault_plan::kind::cut,
               .at = r.between(lease / 3, 4 * lease),
               .length = r.between(lease, 2 * lease),
               .process = renews == p.processes.end()
                              ? at_random
                              : static_cast<std::size_t>(renews - p.processes.begin())};
  for (f.store = 0; f.store <= p.others.size(); ++f.store) p.faults.push_back(f);
}

// Whoever holds something is shown.
void look_at_them(random_source& r, plan& p) {
  make_punctual(p);
  p.for_each_step([&](step& s, const process_plan&) {
    s.looks = r.one_in(2);
    s.forces = false;
  });
}

// Writers before readers, or readers before writers; candidates with priorities.
void prefer(random_source& r, plan& p) {
  make_punctual(p);
  for (auto& n : p.names) {
    if (n.kind == lock_kind::shared || n.kind == lock_kind::election) {
      n.prefers = static_cast<unsigned>(1 + r.below(2));
    }
  }
  for (auto& one : p.processes) {
    one.priority = static_cast<int>(r.below(3));
    one.max_hold = never;
    one.renew = true;
  }
  p.for_each_step([&](step& s, const process_plan& one) {
    s.forces = false;
    s.think = r.between(0, 50 * millisecond);
    s.hold = r.between(50 * millisecond, one.lease / 2);
    if (r.one_in(2)) s.wait = s.stop_after = never;
    if (p.names[s.name].kind == lock_kind::election && s.deed == 7) s.deed = 0;
  });
}

bool has(const plan& p, lock_kind kind) {
  return std::any_of(p.names.begin(), p.names.end(), [&](const auto& n) { return n.kind == kind; });
}

}  // namespace

void provoke(plan& p) {
  random_source r(random_source(p.seed + 53'000'000'000).next());
  if (r.one_in(2) || p.processes.empty()) return;
  if (p.about == theme::stores) {
    if (r.one_in(2)) p.clocks_apart = r.between(millisecond, 10 * second);
    return r.one_in(2) ? hold_to_the_end(r, p) : make_punctual(p);
  }
  const bool locks = p.about == theme::locks || p.about == theme::scripts ||
                     p.about == theme::rows || p.about == theme::slots || p.about == theme::items;
  const bool known = p.store != store_kind::contenders;
  if (known && has(p, lock_kind::election)) return prefer(r, p);
  if (!locks || !p.has_only_locks()) return;
  if (known && has(p, lock_kind::shared) && r.one_in(2)) return prefer(r, p);
  // The server of items knows no list of its keys.
  const bool looks = r.one_in(3) && p.about != theme::items;
  return looks ? look_at_them(r, p) : hold_to_the_end(r, p);
}

}  // namespace simulation
