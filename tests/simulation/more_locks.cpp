#include <algorithm>

#include "simulation/arranging.hpp"

namespace simulation {

namespace {

// Readers of one process, some of which become writers while others come or read with them.
void write_among_own_readers(random_source& r, plan& p) {
  make_calm(p);
  if (p.store == store_kind::contenders) p.store = store_kind::told;
  tell_at_once(p);
  p.names = {{lock_kind::shared}};
  p.processes.resize(1 + r.below(2), p.processes.front());
  const nanos moment = r.between(10 * millisecond, 100 * millisecond);
  for (auto& one : p.processes) {
    one.threads.clear();
    add_threads(r, one, 2 + r.below(3), [&] {
      step s;
      s.shared = true;
      s.think = r.between(0, r.one_in(2) ? moment : 3 * moment);
      s.hold = r.between(moment / 2, 2 * moment);
      if (r.one_in(2)) s.what = step::inside::upgrade;
      if (r.one_in(2)) s.how = step::style::callback, s.more = 1;
      return s;
    });
  }
}

// Writers, or readers that became writers, downgrade just when the server stops. They do not learn
// whether the downgrade was carried out before, and for a while, or until they give up, they cannot
// repeat it.
void weaken_when_it_stops(random_source& r, plan& p) {
  make_punctual(p);
  const bool were_readers = r.one_in(2);
  const bool for_long = were_readers || r.one_in(4);
  // Contenders lose what the server does not hear of for long.
  if (for_long && p.store == store_kind::contenders) p.store = store_kind::told;
  const nanos change = for_long ? r.between(3, 6) * second : r.between(second, 2 * second);
  const nanos late = r.between(100 * millisecond, 500 * millisecond);
  p.network.slow_reply = static_cast<unsigned>(600 + r.below(300));
  p.network.slowest_late = late;
  const nanos length = for_long ? r.between(10, 13) * second : r.between(100 * millisecond, change);
  p.faults = {{.what = fault_plan::kind::restart,
               .at = change + r.between(late / 4, late) + (were_readers ? late / 2 : 0),
               .length = length}};
  p.names.assign(2 + r.below(3), name_plan{lock_kind::shared});
  set_processes(p, 2, 40 * second);
  for (std::size_t i = 0; i < p.names.size(); ++i) {
    step s{.name = i, .shared = were_readers, .hold = 2 * change};
    s.what = were_readers ? step::inside::upgrade : step::inside::downgrade;
    if (r.one_in(3)) s.how = step::style::callback;
    if (s.how == step::style::callback && !were_readers) s.more = static_cast<unsigned>(r.below(2));
    p.processes.front().threads.push_back({{s}});
    // Readers in another process, which must be gone when a reader becomes a writer.
    step reads{.think = second / 2, .name = i, .shared = true, .hold = second};
    auto& steps = p.processes.back().threads.emplace_back().steps;
    steps.assign(3, reads);
    steps[0].think = were_readers ? change + r.between(0, length) : r.between(0, change);
  }
}

// Threads of one process in step with each other: one releases just when the next one is asked to
// stop. Behind it another thread may wait, perhaps for a lock with other terms, or nobody.
void stop_when_it_is_their_turn(random_source& r, plan& p) {
  make_calm(p);
  const bool has_next = !r.one_in(3);
  const bool otherwise = has_next && !r.one_in(4);
  p.names.assign((otherwise ? 3 : 1) + r.below(3), name_plan{lock_kind::mutex});
  p.machine.slow_permille = static_cast<unsigned>(500 + r.below(500));
  set_processes(p, 1 + r.below(2), second);
  auto& one = p.processes.front();
  one.local_time = second;
  one.max_bypass = 250;
  const nanos turn = r.between(3 * millisecond, 15 * millisecond);
  // A thread that comes later takes what no other thread can use.
  const std::size_t rounds = otherwise ? 1 + r.below(2) : 4 + r.below(6);
  for (std::size_t i = 0; i < p.names.size(); ++i) {
    const step holds{.think = 2 * turn, .name = i, .hold = turn};
    step leaves{.think = 2 * turn + turn / 4, .name = i};
    leaves.stop_after = turn - turn / 4 + r.between(0, 2500 * microsecond);
    if (r.one_in(3)) leaves.how = step::style::callback;
    step next{.think = 2 * turn + turn / 2, .name = i};
    next.otherwise = otherwise;
    one.threads.push_back({std::vector<step>(rounds, holds)});
    one.threads.push_back({std::vector<step>(rounds, leaves)});
    if (has_next) one.threads.push_back({std::vector<step>(rounds, next)});
    if (p.processes.size() == 1) continue;
    const step elsewhere{.think = r.between(turn, 8 * turn), .name = i, .hold = turn / 8};
    p.processes.back().threads.push_back({std::vector<step>(rounds / 2, elsewhere)});
  }
}

// ---- several stores

// Two mutexes, each on a store of its own, and a lock that combines both.
void make_two(plan& p) {
  p.others.resize(1);
  p.names = {{.store = 0}, {.store = 1}, {lock_kind::both}};
}

// Two locks combined into one: each takes time, and together they take too long.
void wait_for_the_one_and_the_other(random_source& r, plan& p) {
  make_calm(p);
  make_two(p);
  set_processes(p, 3 + r.below(2), 3 * second);
  const nanos limit = r.between(300 * millisecond, second);
  for (std::size_t i = 0; i < 2; ++i) {
    const step holds{.name = i, .hold = i == 0 ? limit * 3 / 4 : limit * 7 / 4};
    p.processes[i].threads.push_back({{holds}});
  }
  for (std::size_t i = 2; i < p.processes.size(); ++i) {
    const step waits{.think = r.between(10 * millisecond, 50 * millisecond),
                     .name = 2,
                     .wait = limit,
                     .hold = limit / 8};
    p.processes[i].threads.push_back({{waits, waits}});
  }
}

// Several locks held together for much longer than their leases last without renewal, by processes
// that do nothing else. One of the stores may be out of reach for some processes.
void hold_several_for_long(random_source& r, plan& p) {
  make_calm(p);
  p.machine.slow_permille = 0;
  make_two(p);
  const nanos lease = p.longest_lease();
  set_processes(p, 2 + r.below(2), lease);
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    step s{.think = r.between(0, lease / 4),
           .several = i == 0 || r.one_in(2),
           .hold = r.between(2 * lease, 6 * lease)};
    if (!s.several) s.name = r.below(2);
    if (s.several && r.one_in(3)) s.how = step::style::callback, s.more = 1;
    p.processes[i].threads.push_back({{s, s}});
  }
  if (r.one_in(2)) return;
  p.faults = {{.what = fault_plan::kind::cut,
               .at = r.between(lease / 2, 3 * lease),
               .length = r.between(2 * lease, 3 * lease),
               .store = r.one_in(4) ? 0U : 1U}};
}

// A process is suspended while it has the first of several locks and waits for the next, for longer
// than its lease. Its release then arrives late.
void lose_the_first_of_several(random_source& r, plan& p) {
  make_punctual(p);
  make_two(p);
  p.store = p.others[0] = r.one_in(2) ? store_kind::told : store_kind::untold;
  const nanos lease = r.one_in(2) ? 300 * millisecond : second;
  set_processes(p, 3, lease);
  p.network.slow_request = static_cast<unsigned>(300 + r.below(300));
  p.network.slowest_late = r.between(lease, 4 * lease);
  p.network.delivers_late = true;
  p.command_timeout = r.between(50 * millisecond, 200 * millisecond);
  const step all{.think = lease / 8, .several = true, .hold = r.between(2 * lease, 5 * lease)};
  p.processes[0].threads.push_back({{all, all, all}});
  for (std::size_t i = 0; i < 2; ++i) {
    auto& steps = p.processes[1 + i].threads.emplace_back().steps;
    for (int more = 16; more > 0; --more) {
      steps.push_back({.think = i == 0 ? lease / 4 : r.between(lease / 4, lease / 2), .name = i});
      steps.back().hold =
          i == 1 && r.one_in(2) ? r.between(2 * lease, 4 * lease) : r.between(lease / 8, lease / 2);
    }
    if (i == 1) steps[0].think = 0, steps[0].hold = 4 * lease;
  }
  nanos at = r.between(lease / 4, 2 * lease);
  for (auto more = 2 + r.below(3); more > 0; --more) {
    p.faults.push_back({.at = at, .length = r.between(lease, 2 * lease)});
    at += r.between(3 * lease, 6 * lease);
  }
}

// A node that was away for a moment is left out of the vote, and is back before the other nodes'
// grants are released. After that nobody asks for long.
void be_back_while_it_is_held(random_source& r, plan& p) {
  make_punctual(p);
  make_votes(r, p);
  const nanos lease = r.between(4, 6) * second;
  set_processes(p, 1, lease);
  const nanos back = r.between(second, 2 * second);
  const auto deed = static_cast<unsigned>(r.below(2));
  const step asks{.think = r.between(0, 300 * millisecond), .deed = deed};
  step holds{.think = r.between(0, 300 * millisecond), .hold = r.between(lease / 2, 2 * lease)};
  holds.deed = deed;
  const step is_away{.think = 2 * lease, .deed = deed};
  p.processes[0].threads.push_back({{asks, asks, holds, is_away}});
  p.faults = {{.what = r.one_in(3) ? fault_plan::kind::restart : fault_plan::kind::freeze,
               .at = r.between(0, 100 * millisecond),
               .length = back,
               .store = r.below(3)}};
}

// Processes are suspended until a majority's grant has ended, and release it at once when they
// continue.
void wake_with_what_has_ended(random_source& r, plan& p) {
  make_punctual(p);
  make_votes(r, p);
  const nanos lease = r.one_in(2) ? 300 * millisecond : second;
  set_processes(p, 1 + r.below(2), lease);
  for (auto& one : p.processes) {
    add_threads(r, one, 1, [&] {
      step s{.think = r.between(0, lease / 8), .hold = r.between(lease / 2, 2 * lease)};
      s.deed = static_cast<unsigned>(r.below(2));
      return s;
    });
  }
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    for (nanos at = r.between(0, lease); at < 8 * lease; at += 3 * lease) {
      p.faults.push_back({.at = at, .length = r.between(lease, 2 * lease), .process = i});
    }
  }
}

void arrange_stores(random_source& r, plan& p) {
  switch (r.below(8)) {
    case 0:
      return wait_for_the_one_and_the_other(r, p);
    case 1:
      return hold_several_for_long(r, p);
    case 2:
    case 3:
    case 4:
      return lose_the_first_of_several(r, p);
    case 5:
    case 6:
      return be_back_while_it_is_held(r, p);
    default:
      return wake_with_what_has_ended(r, p);
  }
}

}  // namespace

bool arrange_more_locks(random_source& r, plan& p) {
  switch (p.about) {
    case theme::stores:
      return arrange_stores(r, p), true;
    case theme::async:
      return r.one_in(2) && (write_among_own_readers(r, p), true);
    case theme::locks:
    case theme::scripts:
    case theme::rows:
    case theme::worse:
      break;
    default:
      return false;
  }
  if (!p.has_only_locks()) return false;
  switch (r.below(4)) {
    case 0:
      return write_among_own_readers(r, p), true;
    case 1:
    case 2:
      return weaken_when_it_stops(r, p), true;
    default:
      return stop_when_it_is_their_turn(r, p), true;
  }
}

}  // namespace simulation
