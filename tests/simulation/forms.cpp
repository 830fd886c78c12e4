#include <algorithm>

#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// Further forms of the calls that a plan makes, and further options.
namespace simulation {

namespace {

bool has(const plan& p, lock_kind kind) {
  return std::any_of(p.names.begin(), p.names.end(), [&](const auto& n) { return n.kind == kind; });
}

bool waits_for_several(plan& p) {
  bool any = false;
  p.for_each_step([&](const step& s, const process_plan&) { any |= s.several; });
  return any;
}

// A lock says how long its lease is, and its session says something else.
void give_sessions_other_leases(random_source& r, plan& p) {
  for (auto& one : p.processes) {
    if (r.one_in(2)) one.session_lease = (2 + r.between(0, 1)) * one.lease;
  }
}

// Waits are limited, and the store hangs at some of their ends.
void hang_at_the_end_of_waits(random_source& r, plan& p) {
  p.command_timeout = r.one_in(2) ? 2 * second : r.between(300, 1000) * millisecond;
  p.for_each_step([&](step& s, const process_plan&) {
    if (s.wait != 0 && r.one_in(2)) s.wait = r.between(20, 900) * millisecond;
    if (r.one_in(2) && s.how == step::style::lease) s.how = step::style::callback;
  });
  nanos at = 0;
  for (auto more = 2 + r.below(6); more > 0; --more) {
    at += r.between(100, 1500) * millisecond;
    const nanos length = r.between(50, 2500) * millisecond;
    p.faults.push_back({.what = fault_plan::kind::freeze, .at = at, .length = length});
    p.faults.back().store = r.below(1 + p.others.size());
    at += length;
  }
}

// The network becomes well early. What it has left behind must not keep those who wait for long.
void recover(random_source& r, plan& p) {
  p.network.until = r.between(500, 5000) * millisecond;
  if (r.one_in(2)) {
    p.network.lose_reply = static_cast<unsigned>(20 + r.below(200));
    p.network.lose_request = r.one_in(2) ? 0 : static_cast<unsigned>(20 + r.below(100));
    p.command_timeout = r.between(200, 800) * millisecond;
  }
  p.for_each_step([&](step& s, const process_plan&) {
    if (s.wait == never || s.wait == 0 || p.about == theme::barriers) return;
    if (r.one_in(3))
      s.wait = r.between(20, 60) * second;
    else if (r.one_in(3))
      s.wait = r.between(5, 200) * millisecond;
  });
}

// The nodes of a redlock answer late, but so soon that each renewal is in time.
void answer_renewals_late(random_source& r, plan& p) {
  make_punctual(p);
  p.machine.preempt_permille = p.machine.spurious_permille = 0;
  const nanos lease = r.between(2, 4) * second;
  p.network.slow_reply = static_cast<unsigned>(200 + r.below(800));
  p.network.slowest_late = lease / 8;
  for (auto& one : p.processes) one.lease = lease;
  p.for_each_step([&](step& s, const process_plan&) {
    s.otherwise = false;
    if (r.one_in(2)) s.hold = r.between(1, 8) * lease;
  });
}

// So many participants drop out that others find none, and begin anew.
void drop_out(random_source& r, plan& p) {
  for (auto& one : p.processes) {
    one.how = process_plan::meets::by_calls;
    for (auto& t : one.threads) {
      const auto most = std::min<std::size_t>(t.steps.size(), 1 + r.below(3));
      for (std::size_t i = 0; i < most; ++i) t.steps[i].deed = 7, t.steps[i].weight = 1;
    }
  }
}

}  // namespace

void mix_forms(plan& p) {
  random_source r(random_source(p.seed + 113'000'000'000).next());
  // Sessions of these themes have no locks with options of their own, or a server that knows no
  // leases.
  const bool of_leases = p.about != theme::endings && p.about != theme::permits &&
                         p.about != theme::sessions && p.about != theme::stores;
  if (of_leases && r.one_in(3)) give_sessions_other_leases(r, p);
  const bool asks_itself = p.about != theme::endings && p.about != theme::deadlocks;
  if (p.has_only_locks() && asks_itself && r.one_in(4) && !waits_for_several(p)) {
    for (auto& one : p.processes) one.max_waiters = 1 + r.below(3);
  }
  // A latch that is kept for a short time ends if nobody uses it in that time.
  const bool keeps = std::any_of(p.processes.begin(), p.processes.end(),
                                 [](const auto& one) { return one.keep > 0; });
  const bool may_hang =
      p.about != theme::sessions && p.about != theme::rows && p.about != theme::barriers;
  const bool hangs = may_hang && r.one_in(4);
  if (hangs && !keeps) hang_at_the_end_of_waits(r, p);
  if (!hangs && !keeps && !p.calm() && r.one_in(4)) recover(r, p);
  if (p.about == theme::barriers && r.one_in(8)) drop_out(r, p);
  if (has(p, lock_kind::redlock) && r.one_in(8)) answer_renewals_late(r, p);
  const bool removes = has(p, lock_kind::latch) && r.one_in(6);
  p.for_each_step([&](step& s, const process_plan&) {
    if (r.one_in(2)) return;
    s.form = static_cast<unsigned>(1 + r.below(6));
    const auto kind = p.names[s.name].kind;
    if (kind == lock_kind::latch && !removes) s.form = 2;
    if (kind == lock_kind::limiter && r.one_in(3)) s.stop_after = r.between(0, 500 * millisecond);
    const bool lists = p.store != store_kind::memcached && p.store < store_kind::redisson;
    if (kind < lock_kind::latch && lists && r.one_in(4)) s.looks = true;
  });
}

}  // namespace simulation
