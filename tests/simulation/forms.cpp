#include <algorithm>
#include <utility>

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

/// From so many milliseconds to so many.
using range = std::pair<int, int>;

// One of the stores is away, and then one of them again.
void be_away(random_source& r, plan& p, fault_plan::kind what, std::uint64_t times, range between,
             range lengths) {
  nanos at = 0;
  for (; times > 0; --times) {
    at += r.between(between.first, between.second) * millisecond;
    const nanos length = r.between(lengths.first, lengths.second) * millisecond;
    p.faults.push_back({.what = what, .at = at, .length = length});
    p.faults.back().store = r.below(1 + p.others.size());
    at += length;
  }
}

// Waits are limited, and the store hangs at some of their ends.
void hang_at_the_end_of_waits(random_source& r, plan& p) {
  p.command_timeout = r.one_in(2) ? 2 * second : r.between(300, 1000) * millisecond;
  p.for_each_step([&](step& s, const process_plan&) {
    if (s.wait != 0 && r.one_in(2)) s.wait = r.between(20, 900) * millisecond;
    if (r.one_in(2) && s.how == step::style::lease) s.how = step::style::callback;
  });
  be_away(r, p, fault_plan::kind::freeze, 2 + r.below(6), {100, 1500}, {50, 2500});
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

// ---- from resting_seeds on

// A server stops now and then, for longer than a command may take.
void stop_the_servers(random_source& r, plan& p) {
  p.command_timeout = r.between(200, 500) * millisecond;
  be_away(r, p, fault_plan::kind::restart, 2 + r.below(8), {200, 4000}, {100, 1500});
}

// Processes die while the network loses messages.
void die_unheard(random_source& r, plan& p) {
  for (std::size_t i = 1; i < p.processes.size(); ++i) {
    if (r.one_in(3)) continue;
    p.faults.push_back(
        {.what = fault_plan::kind::kill, .at = r.between(100, 10'000) * millisecond, .process = i});
  }
}

// One thing goes wrong, so the rules about the others stay strict.
void have_one_trouble(random_source& r, plan& p) {
  const bool has_freezes = p.about != theme::sessions && p.about != theme::rows;
  make_calm(p);
  const bool dies = p.store == store_kind::sees_death && r.one_in(2);
  // These servers forget all locks when they stop.
  const bool keeps = p.about != theme::items && p.about != theme::sessions;
  if (!dies && keeps && r.one_in(3)) return stop_the_servers(r, p);
  if (!dies && has_freezes && r.one_in(2)) return hang_at_the_end_of_waits(r, p);
  p.network.lose_reply = static_cast<unsigned>(30 + r.below(250));
  p.network.lose_request = r.one_in(2) ? 0 : static_cast<unsigned>(30 + r.below(200));
  p.network.until = r.between(5, 20) * second;
  p.command_timeout = r.between(200, 800) * millisecond;
  if (dies) die_unheard(r, p);
}

// Threads rest between their steps, and leases are long: what is left behind at the store is seen.
void rest(random_source& r, plan& p) {
  const nanos lease = r.between(8, 20) * second;
  for (auto& one : p.processes) {
    if (one.session_lease > 0) one.session_lease = 2 * lease;
    one.lease = lease;
    one.max_hold = never;
    one.linger = 0;
  }
  const nanos shortest = p.about == theme::sessions ? 12 * second : 2 * second;
  const bool several = p.has_only_locks() && waits_for_several(p);
  p.for_each_step([&](step& s, const process_plan&) {
    if (!r.one_in(4)) s.think += r.between(shortest, 2 * shortest);
    if (several && !s.forces && r.one_in(3)) s.several = true;
    if (s.several && r.one_in(2)) s.form = 5;
    if (p.names[s.name].kind >= lock_kind::latch || r.one_in(2)) return;
    s.wait = r.one_in(2) ? 0 : r.between(20, 900) * millisecond;
  });
}

// Few notifications, and answers are lost for a while. Some waiters leave soon, others stay long.
void lose_wakeups(random_source& r, plan& p) {
  make_calm(p);
  p.network.lose_reply = static_cast<unsigned>(50 + r.below(300));
  p.network.until = r.between(2, 10) * second;
  p.command_timeout = r.between(200, 500) * millisecond;
  p.for_each_step([&](step& s, const process_plan&) {
    if (p.names[s.name].kind != lock_kind::condition) return;
    s.deed = static_cast<unsigned>(r.one_in(3) ? r.below(2) : 4 + r.below(4));
    s.wait = r.one_in(2) ? r.between(5, 500) * millisecond : r.between(30, 60) * second;
  });
}

// Answers are late, and waits for tokens last hardly longer than until these are due.
void wait_for_hardly_longer(random_source& r, plan& p) {
  make_calm(p);
  p.network.slow_reply = static_cast<unsigned>(100 + r.below(900));
  p.network.slowest_late = r.between(10, 500) * millisecond;
  for (auto& n : p.names) {
    if (n.kind != lock_kind::limiter) continue;
    n.per = r.between(100, 2000) * millisecond;
    n.grows = n.shrinks = false;
  }
  p.for_each_step([&](step& s, const process_plan&) {
    if (p.names[s.name].kind != lock_kind::limiter || r.one_in(3)) return;
    s.deed = static_cast<unsigned>(5 + r.below(2));
    s.looks = true;
  });
}

// A participant drops out before any other one arrives.
void drop_out_first(random_source& r, plan& p) {
  auto& first = p.processes.front();
  first.how = process_plan::meets::by_calls;
  first.begins = 0;
  auto& begins = first.threads.front().steps.front();
  begins.deed = 7, begins.weight = 1, begins.think = 0;
  for (std::size_t i = 1; i < p.processes.size(); ++i) {
    p.processes[i].begins = r.between(100, 400) * millisecond;
  }
}

// One node is away after the other: the next one soon after the last one has come back.
void leave_in_turns(random_source& r, plan& p) {
  make_punctual(p);
  p.machine.preempt_permille = p.machine.spurious_permille = 0;
  for (auto& one : p.processes) {
    one.lease = r.between(3, 8) * second;
    for (auto& t : one.threads) {
      const auto once = t.steps;
      for (int i = 0; i < 3; ++i) t.steps.insert(t.steps.end(), once.begin(), once.end());
    }
  }
  p.for_each_step([&](step& s, const process_plan&) {
    s.think = r.between(0, 400 * millisecond);
    s.hold = r.between(0, 100 * millisecond);
    s.wait = r.one_in(2) ? 0 : r.between(50, 1000) * millisecond;
    s.otherwise = false;
  });
  nanos at = 0;
  std::size_t node = 0;
  for (auto more = 5 + r.below(10); more > 0; --more) {
    at += r.between(500, 1000) * millisecond;
    const nanos length = r.between(500, 5000) * millisecond;
    const auto what = r.one_in(2) ? fault_plan::kind::freeze : fault_plan::kind::restart;
    p.faults.push_back({.what = what, .at = at, .length = length, .store = node});
    at += length;
    node = (node + 1 + r.below(p.others.size())) % (1 + p.others.size());
  }
}

void mix_rests(plan& p) {
  // Where tokens alone are shared, there is nothing to be left behind, and the order of the steps
  // matters.
  const bool leaves_entries = p.about != theme::rates || has(p, lock_kind::admission);
  random_source r(random_source(p.seed + 127'000'000'000).next());
  const bool keeps = std::any_of(p.processes.begin(), p.processes.end(),
                                 [](const auto& one) { return one.keep > 0; });
  if (p.about == theme::endings || p.about == theme::permits || keeps || p.processes.empty())
    return;
  if (has(p, lock_kind::redlock)) {
    if (r.one_in(3)) return leave_in_turns(r, p);
    if (!r.one_in(2)) return;
    answer_renewals_late(r, p);
    p.network.slow_reply = static_cast<unsigned>(600 + r.below(400));
  } else if (p.about == theme::barriers) {
    const auto& first = p.processes.front().threads;
    const bool has_steps = !first.empty() && !first.front().steps.empty();
    if (has_steps && r.one_in(2)) drop_out_first(r, p);
  } else if (has(p, lock_kind::condition) && r.one_in(3)) {
    lose_wakeups(r, p);
  } else if (has(p, lock_kind::limiter) && r.one_in(3)) {
    wait_for_hardly_longer(r, p);
  } else if (leaves_entries && p.about != theme::worse && p.others.empty() && r.one_in(2)) {
    if (!p.calm()) have_one_trouble(r, p);
    rest(r, p);
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
  if (p.seed >= resting_seeds) mix_rests(p);
}

}  // namespace simulation
