#include <algorithm>

#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// Several names, nodes or waiters: what happens to the others when one of them fails.
namespace simulation {

namespace {

using goes_wrong = fault_plan::kind;

// Holders of single names, and of all names, die while other processes wait for all names. The
// leases of the dead are long.
void want_all_behind_the_dead(random_source& r, plan& p) {
  set_up(p, 3 + r.below(2), r.between(20, 40) * second);
  p.store = store_kind::sees_death;
  p.names.assign(2 + r.below(2), name_plan{some_mutex(r)});
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    const bool dies = i < 2;
    one.begins = dies ? 0 : r.between(50 * millisecond, 500 * millisecond);
    step s{.name = r.below(p.names.size()), .several = !dies || r.one_in(2)};
    s.hold = dies ? 20 * second : r.between(0, 500 * millisecond);
    give(one, std::vector<step>(dies ? 1 : 1 + r.below(2), s));
    if (dies) {
      p.faults.push_back(
          {.what = goes_wrong::kill, .at = r.between(100 * millisecond, 3 * second), .process = i});
    }
  }
}

// An operator takes one name from a thread that waits for all names, while another process holds
// another name.
void lose_one_of_several(random_source& r, plan& p) {
  set_up(p, 3, r.between(2, 6) * second);
  tell_at_once(p);
  if (p.store == store_kind::contenders) p.store = store_kind::told;
  p.names.assign(2 + r.below(2), name_plan{some_mutex(r)});
  const nanos until = r.between(1500 * millisecond, 4 * second);
  give(p.processes[0], {{.name = r.one_in(3) ? 0 : p.names.size() - 1, .hold = until}});
  for (auto more = 1 + r.below(2); more > 0; --more) {
    step all{.think = r.between(50 * millisecond, 200 * millisecond), .several = true};
    if (!r.one_in(3)) all.how = step::style::callback, all.more = 1;
    all.hold = r.between(0, 200 * millisecond);
    give(p.processes[1], {all});
  }
  step takes{.think = r.between(300 * millisecond, second), .forces = true};
  takes.hold = r.between(100 * millisecond, second);
  give(p.processes[2], {takes});
}

// The store is away for much longer than a session keeps trying, while threads of a process wait
// behind each other.
void give_up_on_a_store(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(second, 2 * second));
  p.command_timeout = second / 2;
  if (p.store >= store_kind::scripts) p.store = store_kind::told;
  p.names = {{lock_kind::mutex}};
  for (auto& one : p.processes) {
    for (auto more = 2 + r.below(3); more > 0; --more) {
      step s{.think = r.between(0, 2 * second), .hold = r.between(0, 3 * second)};
      give(one, std::vector<step>(2, s));
    }
  }
  static constexpr goes_wrong kinds[] = {goes_wrong::restart, goes_wrong::cut, goes_wrong::freeze};
  p.faults = {{.what = kinds[r.below(3)],
               .at = r.between(500 * millisecond, 3 * second),
               .length = r.between(25, 45) * second}};
}

// Readers of a process wait for the first of them, which waits for a writer of another process.
// Some of their waits are stopped.
void stop_readers_that_wait_together(random_source& r, plan& p) {
  set_up(p, 2, r.between(2, 4) * second);
  tell_at_once(p);
  p.names = {{lock_kind::shared}};
  give(p.processes[1], {{.hold = r.between(2, 4) * second}});
  p.processes[0].begins = 50 * millisecond;
  for (auto more = 3 + r.below(2); more > 0; --more) {
    step s{.think = r.between(0, 50 * millisecond), .shared = true};
    if (r.one_in(4)) s.how = step::style::callback;
    if (!r.one_in(3)) s.stop_after = r.between(200 * millisecond, second);
    give(p.processes[0], {s});
  }
}

// Each of several processes always has some readers, and another process has a writer.
void read_on_in_several_processes(random_source& r, plan& p) {
  set_up(p, 3 + r.below(2), r.between(2, 4) * second);
  tell_at_once_by_records(p);
  p.names = {{lock_kind::shared}};
  const nanos moment = r.between(50 * millisecond, 150 * millisecond);
  for (std::size_t i = 0; i + 1 < p.processes.size(); ++i) {
    add_threads(r, p.processes[i], 3, [&] {
      return step{
          .think = r.between(0, moment / 8), .shared = true, .hold = r.between(moment / 2, moment)};
    });
    for (auto& t : p.processes[i].threads) t.steps.resize(20, t.steps.front());
  }
  give(p.processes.back(), {{.think = r.between(200, 600) * millisecond, .hold = moment}});
}

// Threads extend a lock asynchronously, and pass it on at once.
void extend_and_pass_on(random_source& r, plan& p) {
  set_up(p, 1, r.between(second, 3 * second));
  p.names = {{lock_kind::mutex}};
  p.machine.slow_permille = static_cast<unsigned>(100 + r.below(400));
  auto& one = p.processes[0];
  one.local_time = 10 * second;
  add_threads(r, one, 3 + r.below(3), [&] {
    step s{.think = r.between(0, millisecond), .hold = r.between(0, millisecond)};
    if (r.one_in(2)) {
      s.what = step::inside::extend_late_to;
      s.soon = r.one_in(2) ? std::max<nanos>(s.hold, 1) : r.between(1, s.hold + 1);
    } else {
      s.hold = r.between(millisecond, 10 * millisecond);
    }
    return s;
  });
}

// A lock is idle in one process, and several other processes wait for it.
void keep_idle_before_others(random_source& r, plan& p) {
  set_up(p, 4, r.between(3, 6) * second);
  tell_at_once_by_records(p);
  p.names = {{lock_kind::mutex}};
  for (auto& one : p.processes) {
    one.local_time = 0;
    one.linger = r.between(1500 * millisecond, 2 * second);
    step s{.think = r.between(0, 100 * millisecond), .hold = r.between(50, 300) * millisecond};
    give(one, std::vector<step>(4, s));
    remain(one, 10 * second);
  }
}

// Threads of one process wait for different names, one of which is soon free.
void wait_for_different_names(random_source& r, plan& p) {
  set_up(p, 2, r.between(3, 6) * second);
  p.names.assign(2 + r.below(2), name_plan{lock_kind::mutex});
  for (auto& one : p.processes) one.local_time = 0;
  p.processes[1].begins = 50 * millisecond;
  for (std::size_t i = 0; i < p.names.size(); ++i) {
    give(p.processes[0], {{.name = i, .hold = r.between(300 * millisecond, 4 * second)}});
    step waits{.think = r.between(0, 200 * millisecond), .name = i};
    if (r.one_in(3)) waits.how = step::style::callback;
    give(p.processes[1], {waits});
  }
}

// A lock is held for more than a minute, while its session often takes and releases another one.
void hold_while_others_come_and_go(random_source& r, plan& p) {
  set_up(p, 1, 2 * second);
  p.names.assign(2, name_plan{lock_kind::mutex});
  auto& one = p.processes[0];
  one.local_time = 0;
  give(one, {{.hold = r.between(75, 100) * second}});
  std::vector<step> all;
  for (auto more = 90; more > 0; --more) {
    all.push_back({.think = r.between(0, 1600 * millisecond), .name = 1});
  }
  give(one, std::move(all));
}

// Calls that state the length of the lease.
void say_for_how_long(random_source& r, plan& p) {
  set_up(p, 1 + r.below(3), r.between(2, 6) * second);
  make_votes(p);
  for (auto& one : p.processes) {
    one.renew = false;
    for (auto more = 1 + r.below(2); more > 0; --more) {
      step s{.think = r.between(0, 500 * millisecond), .otherwise = !r.one_in(4)};
      s.hold = r.between(0, one.lease);
      if (r.one_in(2)) s.wait = r.between(0, 20 * second);
      give(one, std::vector<step>(3, s));
    }
  }
}

// Two nodes whose clocks are behind forget the held lock, one after the other. Then the node whose
// clock is ahead is away, and processes begin that have never asked that node.
void forget_in_turns(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), second);
  make_votes(p);
  p.clocks_apart = r.between(10, 20) * second;
  give(p.processes[0], {{.hold = 4500 * millisecond}});
  for (std::size_t i = 0; i < 2; ++i) {
    const auto after = static_cast<nanos>(i) * 1300 * millisecond;
    p.faults.push_back({.what = goes_wrong::forget,
                        .at = after + r.between(600, 1000) * millisecond,
                        .length = millisecond,
                        .store = i});
  }
  const nanos away = r.between(3000, 3500) * millisecond;
  p.faults.push_back({.what = goes_wrong::freeze, .at = away, .length = 30 * second, .store = 2});
  for (std::size_t i = 1; i < p.processes.size(); ++i) {
    p.processes[i].begins = away + r.between(100, 800) * millisecond;
    give(p.processes[i], {{.hold = r.between(0, 500 * millisecond)}});
  }
}

// Short sessions sweep the names that they leave free, and the server's clock goes back. Then other
// sessions take several of these names together.
void begin_anew_behind_a_clock(random_source& r, plan& p) {
  set_up(p, 4 + r.below(4), 3 * second);
  p.names.assign(2 + r.below(2), name_plan{some_mutex(r)});
  const nanos back = second + r.between(0, 500 * millisecond);
  p.faults = {{.what = goes_wrong::clock_back, .at = back, .length = r.between(5, 60) * second}};
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    const bool before = 2 * i < p.processes.size();
    one.begins =
        before ? r.between(0, back - 500 * millisecond) : back + 8 * second + r.between(0, second);
    step s{.name = r.below(p.names.size()), .several = before ? r.one_in(2) : !r.one_in(4)};
    s.hold = r.between(0, 50 * millisecond);
    give(one, {s});
  }
}

// A process takes tokens ahead from a bucket that seldom contains that many.
void leave_too_few_to_take_ahead(random_source& r, plan& p) {
  set_up(p, 1, 3 * second);
  p.names = {{.kind = lock_kind::limiter,
              .capacity = 1,
              .burst = static_cast<std::uint32_t>(4 + r.below(4)),
              .per = r.between(10, 100) * second,
              .local = static_cast<std::uint32_t>(3 + r.below(2))}};
  for (auto more = 1 + r.below(2); more > 0; --more) {
    step s{.weight = 1, .deed = 3};
    std::vector<step> all;
    for (auto steps = 6 + r.below(6); steps > 0; --steps) {
      s.weight = static_cast<std::uint32_t>(1 + r.below(2));
      s.think = r.between(0, 2 * second);
      all.push_back(s);
    }
    give(p.processes[0], std::move(all));
  }
}

// Tokens are taken, and more are reserved. Then the rules become stricter, the reservations are
// given up, and a thread asks for tokens.
void make_rules_stricter(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), 3 * second);
  p.names = {{.kind = lock_kind::limiter,
              .capacity = 1,
              .burst = static_cast<std::uint32_t>(6 + 2 * r.below(4)),
              .per = r.between(10, 100) * second,
              .shrinks = true}};
  const auto most = p.names[0].burst / 2;
  const step takes{.weight = most, .deed = 3};
  auto& one = p.processes[0];
  step reserves{.weight = static_cast<std::uint32_t>(1 + r.below(most)), .deed = 4};
  reserves.wait = 10'000 * second;
  reserves.back = step::end::destroy;
  for (auto more = 1 + r.below(2); more > 0; --more) {
    std::vector<step> all{takes, takes};
    if (more > 1) all.clear();
    reserves.think = r.between(100, 300) * millisecond;
    reserves.hold = r.between(1000, 1500) * millisecond;
    all.push_back(reserves);
    give(one, std::move(all));
  }
  std::vector<step> later{{.think = r.between(500, 900) * millisecond, .deed = 7}};
  step asks{.weight = 1, .deed = 3};
  asks.think = r.between(1200, 1500) * millisecond;
  for (auto more = most; more > 0; --more) {
    later.push_back(asks);
    asks.think = r.between(0, 20 * millisecond);
  }
  give(one, std::move(later));
}

// Candidates lead for a while each, and observers see all leaders.
void lead_in_turns(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), r.between(2, 4) * second);
  if (p.store == store_kind::contenders) p.store = store_kind::told;
  p.names = {{lock_kind::election}};
  for (auto& one : p.processes) {
    step leads{.think = r.between(0, 500 * millisecond),
               .hold = r.between(500, 2500) * millisecond};
    give(one, std::vector<step>(3, leads));
    step observes{.wait = r.between(4, 12) * second, .deed = 7};
    if (r.one_in(2)) observes.how = step::style::callback;
    if (r.one_in(2)) give(one, {observes});
  }
  step observes{.wait = 10 * second, .deed = 7};
  give(p.processes[0], {observes});
}

}  // namespace

bool arrange_several(plan& p) {
  random_source r(random_source(p.seed + 101'000'000'000).next());
  const bool meets =
      p.about == theme::rates || p.about == theme::meetings || p.about == theme::async;
  if (p.processes.empty() || (meets && !r.one_in(3))) return false;
  const bool with_rows = p.about == theme::rows;
  switch (p.about) {
    case theme::stores:
      return (r.one_in(2) ? say_for_how_long(r, p) : forget_in_turns(r, p)), true;
    case theme::rates:
      return (r.one_in(2) ? leave_too_few_to_take_ahead(r, p) : make_rules_stricter(r, p)), true;
    case theme::meetings:
    case theme::async:
      return lead_in_turns(r, p), true;
    case theme::slots:
    case theme::items:
      if (!r.one_in(4)) return false;
      return hold_while_others_come_and_go(r, p), true;
    case theme::sessions:
      return wait_for_different_names(r, p), true;
    case theme::locks:
    case theme::scripts:
    case theme::rows:
      break;
    default:
      return false;
  }
  if (!p.has_only_locks() || p.store == store_kind::contenders) return false;
  if (with_rows && r.one_in(2)) return begin_anew_behind_a_clock(r, p), true;
  switch (r.below(p.about == theme::locks ? 7 : 5)) {
    case 0:
      return stop_readers_that_wait_together(r, p), true;
    case 1:
      return read_on_in_several_processes(r, p), true;
    case 2:
      return extend_and_pass_on(r, p), true;
    case 3:
      return keep_idle_before_others(r, p), true;
    case 4:
      return lose_one_of_several(r, p), true;
    case 5:
      return want_all_behind_the_dead(r, p), true;
    default:
      return give_up_on_a_store(r, p), true;
  }
}

}  // namespace simulation
