#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "simulation/arranging.hpp"
#include "simulation/patience.hpp"

// Long waits, long outages, and what a process does after it was suspended.
namespace simulation {

namespace {

using goes_wrong = fault_plan::kind;

// Waits of minutes tolerate a server that is away for most of a minute; they go on soon after it is
// back.
void wait_through_a_long_outage(random_source& r, plan& p) {
  set_up(p, 2, second);
  p.names = {{some_mutex(r)}};
  p.command_timeout = p.store == store_kind::mariadb || r.one_in(2) ? second : 300 * millisecond;
  const nanos at = r.between(second, 3 * second);
  const nanos length = r.between(25, 55) * second;
  give(p.processes[0], {{.hold = at + r.between(0, length)}});
  remain(p.processes[0], 120 * second);
  auto& one = p.processes[1];
  one.begins = 50 * millisecond;
  for (auto more = 1 + r.below(2); more > 0; --more) {
    step s{.think = r.between(0, 500 * millisecond), .wait = 300 * second, .hold = second};
    if (r.one_in(2)) s.how = step::style::callback;
    give(one, {s});
  }
  p.faults = {{.what = goes_wrong::cut, .at = at, .length = length, .process = 1}};
}

// Several short outages during one long wait, with more time between them than a session tolerates
// without its store.
void wait_through_several_outages(random_source& r, plan& p) {
  set_up(p, 2, r.between(6, 12) * second);
  p.names = {{some_mutex(r)}};
  p.command_timeout = p.store == store_kind::mariadb ? second : 500 * millisecond;
  give(p.processes[0], {{.hold = r.between(40, 60) * second}});
  auto& one = p.processes[1];
  one.begins = 50 * millisecond;
  for (auto more = 1 + r.below(2); more > 0; --more) {
    step s{.think = r.between(0, 500 * millisecond), .hold = millisecond};
    if (r.one_in(2)) s.how = step::style::callback;
    give(one, {s});
  }
  for (nanos at = r.between(second, 5 * second); at < 38 * second;) {
    const nanos length = r.between(500, 2500) * millisecond;
    p.faults.push_back({.what = goes_wrong::cut, .at = at, .length = length, .process = 1});
    at += length + r.between(5, 14) * second;
  }
}

// A process is suspended for longer than its lease, while its lock is idle or on its way from one
// of its threads to the next. When the process continues, its first operations use a lost lock.
void stand_still_with_an_idle_lock(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(300 * millisecond, second));
  if (p.store == store_kind::untold) p.store = store_kind::told;
  if (p.store == store_kind::mariadb) p.store = store_kind::postgres;
  const nanos lease = p.longest_lease();
  p.names = {{lock_kind::mutex}};
  auto& one = p.processes[0];
  one.linger = r.one_in(3) ? 0 : r.between(2, 6) * lease;
  one.local_time = r.one_in(2) ? 10 * second : 10 * millisecond;
  const nanos moment = r.between(millisecond, lease / 4);
  add_threads(r, one, 2 + r.below(4), [&] {
    step s{.think = r.between(0, moment), .hold = r.between(0, moment)};
    if (r.one_in(4)) s.how = step::style::callback;
    return s;
  });
  if (p.processes.size() > 1) {
    p.processes[1].begins = lease;
    give(p.processes[1], std::vector<step>(3, {.think = 2 * lease, .hold = millisecond}));
  }
  nanos at = r.between(0, moment * 3);
  for (auto more = 2 + r.below(4); more > 0; --more) {
    const nanos length = r.between(lease * 9 / 10, 2 * lease);
    p.faults.push_back({.what = goes_wrong::pause, .at = at, .length = length});
    at += length + r.between(0, moment * 6);
  }
}

// A lock that is idle several times, perhaps for longer than the process keeps it.
void leave_it_idle_again(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(second, 10 * second));
  if (p.store == store_kind::untold) p.store = store_kind::told;
  if (p.store == store_kind::mariadb) p.store = store_kind::postgres;
  p.names = {{lock_kind::mutex}};
  auto& one = p.processes[0];
  one.linger = r.between(500 * millisecond, 4 * second);
  std::vector<step> steps;
  for (auto more = 2 + r.below(5); more > 0; --more) {
    steps.push_back({.think = r.between(0, 2 * one.linger), .hold = r.between(0, second)});
  }
  give(one, std::move(steps));
  remain(one, 20 * one.linger + 15 * second);
  if (p.processes.size() > 1) p.processes.back().threads.push_back({{{.think = 60 * second}}});
}

// The lease is extended when little is left of max_hold, and its holder keeps the lost lock.
void extend_near_the_end(random_source& r, plan& p) {
  set_up(p, 2, r.between(8, 20) * second);
  p.names = {{some_mutex(r)}};
  auto& one = p.processes[0];
  one.max_hold = r.between(one.lease * 5 / 4, 2 * one.lease);
  step s{.hold = 2 * one.max_hold, .what = step::inside::extend};
  if (r.one_in(2)) s.what = step::inside::extend_late;
  s.soon = one.max_hold - r.between(100 * millisecond, one.lease / 2);
  s.clings = 3 * one.lease;
  give(one, {s});
  p.processes[1].begins = second;
  give(p.processes[1], {{.hold = millisecond}});
}

// Locks with long leases that are released while nothing can be sent, for one attempt or for
// several.
void give_back_while_cut_off(random_source& r, plan& p) {
  set_up(p, 2, r.between(20, 40) * second);
  const bool several = r.one_in(3);
  p.names.assign(several ? 2 + r.below(2) : 1, name_plan{some_mutex(r)});
  p.command_timeout = p.store == store_kind::mariadb ? second : 300 * millisecond;
  auto& one = p.processes[0];
  one.local_time = 0;
  const nanos hold = r.between(200, 1000) * millisecond;
  step s{.several = several, .hold = hold};
  if (r.one_in(3) && !several) s.how = step::style::callback;
  if (r.one_in(3)) s.back = step::end::destroy;
  give(one, {s});
  remain(one, 90 * second);
  p.processes[1].begins = 100 * millisecond;
  give(p.processes[1], {{.hold = millisecond}});
  p.faults = {{.what = r.one_in(4) ? goes_wrong::freeze : goes_wrong::cut,
               .at = hold - r.between(-millisecond, 10 * millisecond),
               .length = r.between(100 * millisecond, 3 * second)}};
}

// Threads and callbacks whose request was sent by the thread before them give up while another
// process keeps the lock; later threads of their process want it, too.
void give_up_after_being_taken_along(random_source& r, plan& p) {
  set_up(p, 2, 3 * second);
  p.names = {{lock_kind::mutex}};
  auto& one = p.processes[0];
  one.local_time = r.one_in(2) ? 0 : millisecond;
  const nanos first = r.between(50 * millisecond, 300 * millisecond);
  give(one, {{.hold = first}});
  for (auto more = 1 + r.below(4); more > 0; --more) {
    step s{.think = r.between(millisecond, first / 2),
           .wait = second + r.between(first, 1500 * millisecond)};
    if (!r.one_in(3)) s.how = step::style::callback;
    if (r.one_in(3)) s.wait = never, s.stop_after = r.between(first, 2 * second);
    step later{.think = r.between(0, 3 * second)};
    if (r.one_in(2)) later.how = step::style::callback;
    give(one, {s, later});
  }
  // The other process is queued between them at the store.
  auto& other = p.processes[1];
  other.begins = r.between(0, first);
  give(other, std::vector<step>(2, {.hold = r.between(2, 6) * second}));
}

// One of three nodes is away for long: the other two keep the majority's grant.
void do_without_one_node(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(second, 4 * second));
  p.store = store_kind::told;
  p.others = {store_kind::told, store_kind::told};
  p.names = {{lock_kind::redlock}};
  const nanos lease = p.longest_lease();
  for (auto& one : p.processes) {
    give(one, std::vector<step>(3, {.think = r.between(0, second), .hold = 5 * lease}));
  }
  const auto away = r.below(3);
  nanos at = r.between(0, second);
  for (auto more = 1 + r.below(3); more > 0; --more) {
    const nanos length = r.between(lease / 2, 6 * lease);
    p.faults.push_back({.what = goes_wrong::freeze, .at = at, .length = length, .store = away});
    at += length + r.between(0, 2 * lease);
  }
}

// Permits and tokens whose answer comes when the caller has left.
void leave_before_the_answer(random_source& r, plan& p) {
  set_up(p, 1 + r.below(3), second);
  give_permits_and_tokens(r, p);
  p.network.slowest_late = r.between(100 * millisecond, second);
  for (auto& one : p.processes) {
    add_threads(r, one, 1 + r.below(2), [&] {
      step s{.think = r.between(0, 300 * millisecond),
             .name = r.one_in(3) ? std::size_t{1} : std::size_t{2}};
      s.weight = static_cast<std::uint32_t>(1 + r.below(3));
      s.wait = r.between(10, 600) * millisecond;
      s.deed = static_cast<unsigned>(4 + r.below(4));
      if (r.one_in(2)) s.how = step::style::callback;
      return s;
    });
    for (auto& t : one.threads) t.steps.resize(3);
  }
}

void arrange_patient_locks(random_source& r, plan& p) {
  switch (r.below(7)) {
    case 0:
      return wait_through_a_long_outage(r, p);
    case 1:
      return wait_through_several_outages(r, p);
    case 2:
      return stand_still_with_an_idle_lock(r, p);
    case 3:
      return leave_it_idle_again(r, p);
    case 4:
      return extend_near_the_end(r, p);
    case 5:
      return give_back_while_cut_off(r, p);
    default:
      return give_up_after_being_taken_along(r, p);
  }
}

}  // namespace

// A call that is under way when the outage ends takes time, too, and so does each call before the
// client notices.
bool has_only_short_outages(const plan& p) {
  plan rest = p;
  rest.faults.clear();
  if (!rest.calm() || p.machine.slow_permille != 0 || !p.others.empty()) return false;
  nanos next = 0;
  for (const auto& f : p.faults) {
    if (f.what != goes_wrong::cut && f.what != goes_wrong::freeze) return false;
    if (f.length + 2 * p.command_timeout > 5 * second || f.at < next) return false;
    // A connection that was cut for so short a time is used again within a second.
    const bool short_one = f.what == goes_wrong::cut && f.length <= 700 * millisecond;
    next = f.at + f.length + (short_one ? 1100 * millisecond : 4 * second);
  }
  return true;
}

outage longest_outage(const plan& p, std::size_t process) {
  std::vector<fault_plan> away;
  for (const auto& f : p.faults) {
    const bool cut = f.what == goes_wrong::cut;
    if (!cut && f.what != goes_wrong::freeze && f.what != goes_wrong::restart) return {};
    if (!cut || f.process == process) away.push_back(f);
  }
  const auto enough = p.others.size() / 2 + 1;
  const auto is_away = [&](nanos when) {
    std::set<std::size_t> stores;
    for (const auto& f : away) {
      if (f.at <= when && when < f.at + f.length) stores.insert(f.store);
    }
    return stores.size() >= enough;
  };
  std::set<nanos> moments;
  for (const auto& f : away) moments.insert({f.at, f.at + f.length});
  outage longest, now;
  for (const nanos at : moments) {
    if (!is_away(at)) {
      now = {};
      continue;
    }
    if (now.until != at) now.from = at;
    now.until = *std::next(moments.find(at));
    if (now.until - now.from > longest.until - longest.from) longest = now;
  }
  return longest;
}

bool has_one_store_away(const plan& p) {
  plan rest = p;
  rest.faults.clear();
  return rest.calm() && p.machine.slow_permille == 0 && p.others.size() == 2 &&
         std::all_of(p.faults.begin(), p.faults.end(), [&](const auto& f) {
           const bool away = f.what == goes_wrong::freeze || f.what == goes_wrong::cut ||
                             f.what == goes_wrong::restart;
           return away && f.store == p.faults.front().store;
         });
}

bool bears_its_outages(const plan& p) {
  plan rest = p;
  rest.faults.clear();
  if (!rest.calm() || p.machine.slow_permille != 0 || p.clocks_apart != 0) return false;
  if (!p.renews()) return false;
  nanos shortest = never;
  for (const auto& one : p.processes) shortest = std::min(shortest, one.lease);
  nanos next = 0;
  for (const auto& f : p.faults) {
    if (f.what != goes_wrong::freeze || f.length > shortest / 4 || f.at < next) return false;
    // Faults that begin together count as one.
    const bool last = &f == &p.faults.back() || (&f)[1].at != f.at;
    if (last) next = f.at + f.length + shortest;
  }
  return shortest >= 4 * second;
}

bool arrange_patience(plan& p) {
  random_source r(random_source(p.seed + 71'000'000'000).next());
  if (r.one_in(2) || p.processes.empty()) return false;
  switch (p.about) {
    case theme::locks:
    case theme::scripts:
    case theme::rows:
      if (!p.has_only_locks() || p.store == store_kind::contenders) return false;
      return arrange_patient_locks(r, p), true;
    case theme::stores:
      return do_without_one_node(r, p), true;
    case theme::rates:
      return leave_before_the_answer(r, p), true;
    default:
      return false;
  }
}

}  // namespace simulation
