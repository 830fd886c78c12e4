#include <algorithm>

#include "simulation/plan.hpp"

namespace simulation {

namespace {

// The plan fixes the number of participants.
bool counts_participants(const plan& p) {
  return std::any_of(p.names.begin(), p.names.end(), [](const auto& n) {
    return n.kind == lock_kind::latch || n.kind == lock_kind::barrier;
  });
}

std::vector<step> all_steps(plan& p) {
  std::vector<step> all;
  p.for_each_step([&](const step& s, const process_plan&) { all.push_back(s); });
  return all;
}

// Many threads of one process want the same lock, most of them for a moment; some wait only
// briefly.
void crowd(random_source& r, plan& p) {
  const auto all = all_steps(p);
  if (all.empty()) return;
  auto& one = p.processes[r.below(p.processes.size())];
  const auto name = r.below(p.names.size());
  const nanos moment = r.one_in(2) ? 2 * millisecond : 30 * millisecond;
  for (auto more = 3 + r.below(4); more > 0; --more) {
    thread_plan work;
    for (auto left = 3 + r.below(5); left > 0; --left) {
      step s = all[r.below(all.size())];
      if (s.name != name && r.one_in(2)) continue;
      s.think = r.one_in(2) ? 0 : r.between(0, moment);
      s.hold = r.one_in(3) ? 0 : r.between(0, moment);
      s.stop_after = r.one_in(3) ? r.between(0, moment) : never;
      if (r.one_in(3)) s.wait = r.between(0, 2 * moment);
      work.steps.push_back(s);
    }
    one.threads.push_back(std::move(work));
  }
}

// Each hold has a time limit, and nothing else ends it.
void hold_at_most(random_source& r, plan& p) {
  for (auto& one : p.processes) {
    if (r.one_in(3)) continue;
    one.max_hold = r.between(one.lease / 2, 2 * one.lease);
    one.linger = 0;
    one.renew = true;
  }
  if (!p.calm()) return;
  p.machine.slow_permille = p.machine.preempt_permille = 0;
}

}  // namespace

void vary(plan& p) {
  random_source r(random_source(p.seed + 41'000'000'000).next());
  if (r.one_in(2)) return;
  const bool singly = p.about != theme::deadlocks && p.about != theme::endings;
  const bool locks = p.has_only_locks() && singly;
  if (singly && !counts_participants(p) && r.one_in(3)) crowd(r, p);
  if (locks && r.one_in(8)) hold_at_most(r, p);
  if (locks && r.one_in(5)) {
    p.for_each_step([&](step& s, const process_plan&) {
      if (r.one_in(4)) s.hold = r.between(4 * second, 20 * second);
    });
  }
  if (!p.calm() && r.one_in(3)) {
    const bool whole_seconds = p.store == store_kind::mariadb;
    p.command_timeout = whole_seconds ? second : r.between(200 * millisecond, second);
  }
  if (p.store == store_kind::contenders && r.one_in(2)) p.network.unordered = true;
}

}  // namespace simulation
