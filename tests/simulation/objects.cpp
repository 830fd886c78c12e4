#include <algorithm>

#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// Objects of one name that differ in their kind or their terms, more users of a name than
// connections, and waits that outlast a silence or the time for which a latch is kept.
namespace simulation {

namespace {

bool any_step(plan& p, bool (*is_so)(const step&)) {
  bool any = false;
  p.for_each_step([&](const step& s, const process_plan&) { any |= is_so(s); });
  return any;
}

// A program that took the name of another one tries it as another kind. On slots, a second permit
// would have a place of its own, where others do not look: so there is one such thread.
void use_as_another_kind(random_source& r, plan& p) {
  const bool slots = p.about == theme::slots || p.about == theme::items;
  const nanos lease = p.longest_lease();
  for (auto more = slots ? 1 : 1 + r.below(2); more > 0; --more) {
    std::vector<step> all;
    for (auto steps = 3 + r.below(6); steps > 0; --steps) {
      step s{.think = r.between(0, lease / 2), .name = r.below(p.names.size()), .wait = 0};
      s.hold = r.between(0, r.one_in(2) ? lease / 2 : 50 * millisecond);
      s.clashes = true;
      all.push_back(s);
    }
    give(p.processes[r.below(p.processes.size())], std::move(all));
  }
}

// Each holder has a limit of its own, also where its process would keep the lock for the next one.
void limit_each_hold(random_source& r, plan& p) {
  for (auto& one : p.processes) {
    one.renew = true;
    one.max_hold = r.between(one.lease / 2, 3 * one.lease);
    if (p.tells() && r.one_in(2)) one.linger = r.between(5, 2000) * millisecond;
  }
  p.for_each_step([&](step& s, const process_plan& does) {
    s.hold = r.between(0, r.one_in(3) ? 2 * does.max_hold : does.max_hold / 2);
    if (r.one_in(2)) s.think = r.between(0, does.max_hold / 8);
  });
}

// Some objects leave the lease to their session, which has a longer one.
void use_other_leases(random_source& r, plan& p) {
  p.for_each_step([&](step& s, const process_plan& does) {
    if (does.session_lease > 0 && r.one_in(3)) s.otherwise = true;
  });
}

void wait_beyond_silences(random_source& r, plan& p) {
  p.for_each_step([&](step& s, const process_plan&) {
    if (s.wait != 0 && s.wait != never && r.one_in(2)) s.wait = r.between(1, 4) * second;
  });
}

// A process has more threads at a shared_mutex than its session has connections, and so more
// requests than the server tells apart.
void want_more_than_connections(random_source& r, plan& p) {
  auto& one = p.processes[r.below(p.processes.size())];
  std::size_t shared = 0;
  while (p.names[shared].kind != lock_kind::shared) ++shared;
  for (auto more = 4 + r.below(4); more > 0; --more) {
    std::vector<step> all;
    for (auto steps = 2 + r.below(4); steps > 0; --steps) {
      step s{.think = r.between(0, 200 * millisecond), .name = shared};
      s.shared = !r.one_in(3);
      s.hold = r.between(0, second);
      if (!r.one_in(3)) s.wait = r.one_in(2) ? 0 : r.between(50, 2000) * millisecond;
      all.push_back(s);
    }
    give(one, std::move(all));
  }
}

}  // namespace

// Threads wait at a latch for much longer than it is kept without use, and all counts are needed.
void wait_longer_than_it_is_kept(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), 3 * second);
  p.names = {{lock_kind::latch, static_cast<std::uint32_t>(2 + r.below(3))}};
  for (auto& one : p.processes) {
    one.keep = r.between(1, 2) * second;
    step waits{.think = r.between(0, 300 * millisecond), .wait = 60 * second};
    waits.deed = static_cast<unsigned>(5 + r.below(3));
    if (r.one_in(2)) waits.how = step::style::callback;
    for (auto more = 1 + r.below(2); more > 0; --more) give(one, {waits});
  }
  for (auto left = p.names[0].capacity; left > 0; --left) {
    step counts{.think = r.between(2, 10) * second, .weight = 1};
    if (left == 1) counts.think = r.between(0, second / 2);
    give(p.processes[r.below(p.processes.size())], {counts});
  }
}

namespace {

// A process takes two locks together, and is cut off from the store of the first one for longer
// than a lease, while it waits for the second one.
void lose_one_while_the_other_is_awaited(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), r.between(500, 2000) * millisecond);
  p.others.resize(1, store_kind::told);
  p.names = {{.store = 0}, {.store = 1}, {lock_kind::both}};
  const nanos lease = p.longest_lease();
  for (auto& one : p.processes) {
    const bool first = &one == p.processes.data();
    for (auto more = 1 + r.below(2); more > 0; --more) {
      step s{.think = r.between(first ? 30 : 0, first ? 300 : 10) * millisecond, .name = 2};
      if (!first) s.name = 1, s.hold = r.between(2 * lease, 5 * lease);
      if (first) s.wait = r.one_in(3) ? never : r.between(4 * lease, 10 * lease);
      if (first) s.hold = r.between(0, lease);
      s.several = first && r.one_in(2);
      if (s.several) s.name = 0, s.form = 2 * static_cast<unsigned>(r.below(3));
      if (!s.several && r.one_in(2)) s.how = step::style::standard;
      if (first && s.how == step::style::lease) s.form += static_cast<unsigned>(r.below(2));
      give(one, std::vector<step>(2, s));
    }
  }
  for (nanos at = r.between(200 * millisecond, lease); p.faults.size() < 2;) {
    const nanos length = r.between(lease * 6 / 5, 2 * lease);
    p.faults.push_back({.what = fault_plan::kind::cut, .at = at, .length = length});
    p.faults.back().store = r.one_in(4) ? 1 : 0;
    at += length + r.between(lease, 3 * lease);
  }
}

}  // namespace

void mix_objects(plan& p) {
  random_source r(random_source(p.seed + 131'000'000'000).next());
  if (p.processes.empty()) return;
  const bool votes = p.names.size() == 1 && p.names[0].kind == lock_kind::redlock;
  const bool of_locks = p.has_only_locks() && p.others.empty();
  const bool of_kinds = of_locks && p.about != theme::worse && p.about != theme::endings &&
                        p.about != theme::deadlocks && p.about != theme::sessions;
  const bool counts = std::any_of(p.names.begin(), p.names.end(),
                                  [](const auto& n) { return n.kind == lock_kind::counting; });
  const bool in_the_way = any_step(p, [](const step& s) { return s.several || s.forces; });
  if (votes && r.one_in(5)) {
    make_calm(p);
    // A lease whose length a call says ends by itself.
    p.for_each_step([](step& s, const process_plan&) { s.otherwise = false; });
    use_as_another_kind(r, p);
  } else if (of_kinds && !counts && !in_the_way && r.one_in(6)) {
    use_as_another_kind(r, p);
  }
  const bool ends_late = p.about == theme::locks || p.about == theme::scripts;
  if (of_locks && ends_late && p.calm() && !in_the_way && r.one_in(4)) limit_each_hold(r, p);
  if (of_locks && p.about != theme::deadlocks) use_other_leases(r, p);
  const bool shares = std::any_of(p.names.begin(), p.names.end(),
                                  [](const auto& n) { return n.kind == lock_kind::shared; });
  if (p.about == theme::sessions && shares && r.one_in(3)) want_more_than_connections(r, p);
  if (p.about == theme::stores && !votes && r.one_in(4)) lose_one_while_the_other_is_awaited(r, p);
  const bool counts_down = p.names.size() == 1 && p.names[0].kind == lock_kind::latch;
  if (counts_down && r.one_in(8)) wait_longer_than_it_is_kept(r, p);
  const bool hangs = std::any_of(p.faults.begin(), p.faults.end(),
                                 [](const auto& f) { return f.what == fault_plan::kind::freeze; });
  if (of_locks && hangs && r.one_in(2)) wait_beyond_silences(r, p);
}

}  // namespace simulation
