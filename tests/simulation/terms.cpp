#include <algorithm>

#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// Uses of a lock's terms: no renewal, a reason of its own, the number of permits.
namespace simulation {

namespace {

using goes_wrong = fault_plan::kind;

// Processes hand leases on to each other that nobody renews, and that last much longer than a grant
// that waits for its owner.
void hand_on_what_nobody_renews(random_source& r, plan& p) {
  set_up(p, 2 + r.below(3), r.between(2, 6) * second);
  tell_at_once(p);
  p.names.assign(1 + r.below(2), name_plan{some_mutex(r)});
  for (auto& one : p.processes) {
    one.renew = false;
    one.local_time = 0;
    add_threads(r, one, 1 + r.below(2), [&] {
      step s{.think = r.between(0, 50 * millisecond),
             .name = r.below(p.names.size()),
             .hold = r.between(10 * millisecond, one.lease / 2)};
      if (r.one_in(3)) s.how = step::style::callback;
      return s;
    });
    for (auto& t : one.threads) t.steps.resize(3);
  }
}

// Readers and writers of one process wait for the writer of another; later readers are queued
// behind them, some with a lock object of other terms.
void read_behind_an_own_writer(random_source& r, plan& p) {
  set_up(p, 2, r.between(4, 8) * second);
  tell_at_once_by_records(p);
  p.names = {{lock_kind::shared}};
  const nanos first = r.between(1500 * millisecond, 2500 * millisecond);
  give(p.processes[1], {{.hold = first}});
  auto& one = p.processes[0];
  one.begins = 20 * millisecond;
  const bool otherwise = r.one_in(2);
  const auto read = [&](nanos from, nanos until, bool by_other_terms) {
    step s{.think = r.between(from, until), .shared = true};
    s.hold = r.between(400 * millisecond, second);
    s.looks = r.one_in(2);
    s.otherwise = by_other_terms;
    if (r.one_in(3)) s.how = step::style::callback;
    give(one, {s});
  };
  for (auto more = 1 + r.below(2); more > 0; --more) read(0, 50 * millisecond, false);
  if (!otherwise || r.one_in(2)) {
    step writes{.think = r.between(100, 200) * millisecond, .hold = 100 * millisecond};
    if (!r.one_in(3)) writes.how = step::style::callback;
    give(one, {writes});
  }
  for (auto more = 1 + r.below(3); more > 0; --more) {
    read(otherwise ? 50 * millisecond : 600 * millisecond, first - 200 * millisecond, otherwise);
  }
}

// Readers that share a hold which their process loses.
void lose_what_several_share(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(500 * millisecond, 2 * second));
  tell_at_once(p);
  p.names = {{lock_kind::shared}};
  const nanos lease = p.longest_lease();
  for (auto& one : p.processes) {
    for (auto more = 2 + r.below(3); more > 0; --more) {
      step s{.think = r.between(0, lease / 4), .shared = true};
      s.hold = r.between(lease, 4 * lease);
      if (r.one_in(3)) s.how = step::style::callback;
      give(one, {s, s});
    }
  }
  const bool pause = r.one_in(3);
  p.faults = {{.what = pause ? goes_wrong::pause : goes_wrong::cut,
               .at = r.between(lease / 4, lease),
               .length = r.between(lease * 5 / 4, 3 * lease)}};
}

// Leases are shortened while the store is out of reach: some of these calls certainly change
// nothing.
void shorten_while_it_is_away(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(8, 20) * second);
  p.names.assign(2 + r.below(3), name_plan{some_mutex(r)});
  p.command_timeout = p.store == store_kind::mariadb ? second : 300 * millisecond;
  const nanos at = r.between(300 * millisecond, second);
  for (std::size_t i = 0; i < p.names.size(); ++i) {
    auto& one = p.processes[i % p.processes.size()];
    one.local_time = 0;
    one.renew = r.one_in(2);
    step s{.name = i, .hold = r.between(4, 7) * second, .what = step::inside::shorten};
    s.soon = at + r.between(0, second);
    give(one, {s});
  }
  static constexpr goes_wrong kinds[] = {goes_wrong::restart, goes_wrong::cut, goes_wrong::freeze};
  p.faults = {{.what = kinds[r.below(3)], .at = at, .length = r.between(500, 2500) * millisecond}};
}

// Several permits at once, together with other locks, beside threads that acquire only permits.
void take_several_permits_together(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), 3 * second);
  tell_at_once(p);
  if (p.store >= store_kind::contenders) p.store = store_kind::told;
  p.names = {{lock_kind::semaphore, static_cast<std::uint32_t>(2 + r.below(3))},
             {lock_kind::mutex}};
  for (auto& one : p.processes) {
    add_threads(r, one, 1 + r.below(2), [&] {
      step s{.think = r.between(0, 50 * millisecond), .several = r.one_in(2)};
      s.weight = static_cast<std::uint32_t>(1 + r.below(p.names[0].capacity));
      s.hold = r.between(0, 200 * millisecond);
      return s;
    });
  }
}

// A cache forgets a lock that a thread has held for long. The thread's release also requests the
// lock for the next thread of its process.
void hand_over_what_was_forgotten(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(20, 30) * second);
  p.names = {{lock_kind::mutex}};
  const nanos forgets = r.between(3300 * millisecond, 4500 * millisecond);
  p.faults = {{.what = goes_wrong::forget, .at = forgets, .length = millisecond}};
  auto& one = p.processes[0];
  one.local_time = 0;
  give(one, {{.hold = forgets + r.between(50 * millisecond, second)}});
  for (auto more = 1 + r.below(2); more > 0; --more) {
    step s{.think = r.between(50 * millisecond, 3 * second), .hold = r.between(0, second)};
    if (r.one_in(3)) s.how = step::style::callback;
    give(one, {s});
  }
  if (p.processes.size() == 1) return;
  p.processes[1].begins = 20 * millisecond;
  give(p.processes[1], {{.think = r.between(0, 3 * second)}});
}

// Two nodes of three stand still for a moment that a lease bears, now and then during a renewal.
void bear_moments_without_a_majority(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(4, 8) * second);
  make_votes(p);
  const nanos lease = p.longest_lease();
  for (auto& one : p.processes) {
    give(one, {{.think = r.between(0, second), .hold = 6 * lease}});
  }
  nanos at = r.between(second, lease);
  for (auto more = 2 + r.below(3); more > 0; --more) {
    const nanos length = r.between(lease / 6, lease / 4);
    const auto without = r.below(3);
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == without) continue;
      p.faults.push_back({.what = goes_wrong::freeze, .at = at, .length = length, .store = i});
    }
    at += length + r.between(lease, 2 * lease);
  }
}

// Nodes whose clocks differ, asked by processes that do not know that yet; requests come late, and
// nodes are away in turns.
void meet_nodes_whose_clocks_differ(random_source& r, plan& p) {
  set_up(p, 3 + r.below(4), second);
  make_votes(p);
  p.clocks_apart = r.between(2, 10) * second;
  p.network.slow_request = static_cast<unsigned>(200 + r.below(500));
  p.network.slowest_late = r.between(300 * millisecond, second);
  p.command_timeout = r.between(50, 150) * millisecond;
  nanos begins = 0;
  for (auto& one : p.processes) {
    one.begins = begins;
    begins += r.between(100, 1500) * millisecond;
    give(one, std::vector<step>(1 + static_cast<std::size_t>(r.below(2)),
                                {.hold = r.between(0, 200 * millisecond)}));
  }
  for (nanos at = r.between(0, 500 * millisecond); at < begins;) {
    const nanos length = r.between(300, 2500) * millisecond;
    const auto which = r.one_in(3) ? r.below(3) : 2;
    p.faults.push_back({.what = goes_wrong::freeze, .at = at, .length = length, .store = which});
    at += length + r.between(0, second);
  }
}

}  // namespace

bool arrange_terms(plan& p) {
  random_source r(random_source(p.seed + 97'000'000'000).next());
  if (p.processes.empty()) return false;
  if (p.about == theme::stores) {
    if (r.one_in(3)) return bear_moments_without_a_majority(r, p), true;
    if (r.one_in(2)) return meet_nodes_whose_clocks_differ(r, p), true;
    p.others.clear();
    return take_several_permits_together(r, p), true;
  }
  if (!p.has_only_locks() || p.store == store_kind::contenders) return false;
  if (p.about == theme::items) return hand_over_what_was_forgotten(r, p), true;
  if (p.about != theme::locks && p.about != theme::scripts && p.about != theme::rows) return false;
  switch (r.below(4)) {
    case 0:
      return hand_on_what_nobody_renews(r, p), true;
    case 1:
      return read_behind_an_own_writer(r, p), true;
    case 2:
      return lose_what_several_share(r, p), true;
    default:
      return shorten_while_it_is_away(r, p), true;
  }
}

}  // namespace simulation
