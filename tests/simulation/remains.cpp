#include <algorithm>

#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// What remains: of a process that died as a waiter, of an attempt that arrives late or whose answer
// is lost, of a transaction that the server refuses, of a try that is the last one of a wait.
namespace simulation {

namespace {

using goes_wrong = fault_plan::kind;

// ---- locks

// The first attempt of a request arrives when the lock has long been held, and has been extended.
void arrive_after_an_extension(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(2, 5) * second);
  tell_at_once_by_records(p);
  p.names.assign(1 + r.below(3), name_plan{some_mutex(r)});
  p.network.slow_request = static_cast<unsigned>(300 + r.below(400));
  p.network.slowest_late = r.between(500, 2500) * millisecond;
  p.command_timeout = r.between(50, 200) * millisecond;
  for (auto& one : p.processes) {
    one.renew = false;
    one.local_time = 0;
    for (std::size_t i = 0; i < p.names.size(); ++i) {
      step s{.think = r.between(0, 300) * millisecond, .name = i, .hold = one.lease};
      s.what = step::inside::extend_to;
      s.soon = r.between(0, 500) * millisecond;
      give(one, std::vector<step>(2, s));
    }
  }
}

// Answers to requests for locks are lost, and then the server is away for longer than
// store_timeout. The leases are so long that what was granted is still held.
void lose_an_answer_before_an_outage(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(30, 60) * second);
  p.names.assign(1 + r.below(3), name_plan{some_mutex(r)});
  p.network.lose_reply = static_cast<unsigned>(300 + r.below(400));
  p.command_timeout = r.between(300, 1500) * millisecond;
  const bool together = r.one_in(2);
  for (auto& one : p.processes) {
    step s{.think = r.between(0, 300) * millisecond, .several = together};
    s.wait = r.one_in(3) ? r.between(1, 8) * second : never;
    s.hold = r.between(0, 50) * millisecond;
    for (std::size_t i = 0; i < (together ? 1 : p.names.size()); ++i) {
      s.name = i;
      give(one, std::vector<step>(3, s));
    }
  }
  p.faults = {{.what = r.one_in(2) ? goes_wrong::cut : goes_wrong::restart,
               .at = r.between(100, 2000) * millisecond,
               .length = r.between(14, 20) * second,
               .process = r.below(p.processes.size())}};
  p.network.until = p.faults[0].at + p.faults[0].length;
}

// Another process asks for a lock while it is in use. Its process would keep it for long.
void ask_for_what_is_in_use(random_source& r, plan& p) {
  set_up(p, 2, r.between(4, 8) * second);
  tell_at_once(p);
  p.names = {{lock_kind::mutex}};
  for (auto& one : p.processes) {
    one.linger = r.between(1000, 3000) * millisecond;
    add_threads(r, one, 1, [&] {
      return step{.think = r.between(0, 500) * millisecond,
                  .hold = r.between(50, 500) * millisecond};
    });
  }
}

// ---- several names

// Processes lock the rows of several names together, and many answers are late: a row stays locked
// for longer than others wait for it. Threads of one process use one name each, and their process
// changes several rows together when its connections are busy.
void wait_for_locked_rows(random_source& r, plan& p) {
  set_up(p, 3 + r.below(3), r.between(6, 30) * second);
  if (!r.one_in(4)) p.store = store_kind::mariadb;
  p.names.assign(2 + r.below(4), name_plan{some_mutex(r)});
  p.network.slow_reply = static_cast<unsigned>(200 + r.below(500));
  p.network.slowest_late = r.between(500, 2500) * millisecond;
  p.network.until = r.between(5, 20) * second;
  p.command_timeout = r.between(2, 5) * second;
  for (auto& one : p.processes) {
    const bool first = &one == p.processes.data();
    for (std::size_t i = 0; first && i < 2 * p.names.size(); ++i) {
      step s{.think = r.between(0, 200) * millisecond, .name = i / 2};
      s.hold = r.between(0, r.one_in(4) ? 5000 : 400) * millisecond;
      give(one, std::vector<step>(6, s));
    }
    if (first) continue;
    step s{.think = r.between(0, 300) * millisecond, .several = true};
    s.wait = r.one_in(2) ? 0 : r.between(50, 1500) * millisecond;
    s.hold = r.between(0, 100) * millisecond;
    give(one, std::vector<step>(8, s));
    remain(one, 60 * second);
  }
}

// A wait for names of two stores has those of the first store. They are taken from it just before
// its time ends, so that its last try is refused there.
void lose_a_name_before_the_last_try(random_source& r, plan& p) {
  set_up(p, 3, r.between(12, 30) * second);
  p.store = store_kind::told;
  p.others = {store_kind::told};
  p.names.clear();
  for (std::size_t i = 0; i < 4; ++i) p.names.push_back({.kind = some_mutex(r), .store = i / 2});
  give(p.processes[0], {{.name = 3, .hold = 6 * second}});
  step all{.think = 100 * millisecond, .several = true};
  all.wait = r.between(1000, 3000) * millisecond;
  if (r.one_in(3)) all.form = 5, all.how = step::style::callback, all.more = 1;
  give(p.processes[1], {all});
  remain(p.processes[1], 40 * second);
  step takes{.name = r.below(2), .hold = 4 * second, .forces = true};
  takes.think = all.think + all.wait - r.between(5, 400) * millisecond;
  give(p.processes[2], {takes});
}

// ---- conditions

// Threads wait for a condition in front of others, and die with their process. Then several are
// notified, one after the other.
void notify_behind_the_dead(random_source& r, plan& p) {
  set_up(p, 3, r.between(1, 3) * second);
  if (p.store == store_kind::contenders) p.store = store_kind::told;
  p.names = {{lock_kind::mutex}, {lock_kind::condition}};
  const auto many = 2 + r.below(3);
  step waits{.name = 1, .wait = 60 * second, .deed = 4};
  for (auto more = many; more > 0; --more) {
    waits.think = r.between(0, 100) * millisecond;
    give(p.processes[0], {waits});
    waits.think = r.between(300, 600) * millisecond;
    if (r.one_in(3)) waits.how = step::style::callback;
    give(p.processes[1], {waits});
  }
  const nanos dies = r.between(800, 1500) * millisecond;
  p.faults = {{.what = goes_wrong::kill, .at = dies}};
  const nanos then = dies + r.between(1, 2000) * millisecond;
  for (auto more = many; more > 0; --more) {
    step puts{.name = 1, .deed = static_cast<unsigned>(r.below(2))};
    puts.think = then + r.between(0, r.one_in(2) ? 5 : 300) * millisecond;
    give(p.processes[2], {puts});
  }
}

}  // namespace

void mix_remains(plan& p) {
  random_source r(random_source(p.seed + 149'000'000'000).next());
  if (p.processes.empty() || p.store == store_kind::redisson) return;
  const bool of_locks = p.has_only_locks() && p.others.empty();
  const bool records = p.store < store_kind::contenders;
  const bool rows = p.about == theme::rows;
  switch (p.about) {
    case theme::locks:
    case theme::scripts:
    case theme::rows:
      if (of_locks && rows && r.one_in(5)) return wait_for_locked_rows(r, p);
      if (of_locks && records && r.one_in(6)) return arrive_after_an_extension(r, p);
      if (of_locks && records && r.one_in(6)) return lose_an_answer_before_an_outage(r, p);
      if (of_locks && r.one_in(8)) return ask_for_what_is_in_use(r, p);
      break;
    case theme::stores:
      if (p.names.size() > 1 && r.one_in(6)) return lose_a_name_before_the_last_try(r, p);
      return;
    default:
      break;
  }
  const bool meets = p.about == theme::meetings || p.about == theme::async || rows;
  if (!meets && p.about != theme::scripts) return;
  if (p.names.back().kind == lock_kind::condition && r.one_in(3))
    return notify_behind_the_dead(r, p);
  if (p.names.back().kind != lock_kind::latch || !r.one_in(4)) return;
  // Where nobody notifies the waiters, they poll often.
  if (!rows && p.about != theme::scripts) p.store = store_kind::untold;
  wait_longer_than_it_is_kept(r, p);
}

}  // namespace simulation
