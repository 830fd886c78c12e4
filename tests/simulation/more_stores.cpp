#include <algorithm>

#include "simulation/arranging.hpp"

namespace simulation {

namespace {

// This many processes, without steps yet.
void make_processes(plan& p, std::size_t count, nanos lease) {
  make_calm(p);
  p.machine.slow_permille = 0;
  set_processes(p, count, lease);
}

void add_thread(process_plan& one, std::vector<step> steps) {
  one.threads.push_back({std::move(steps)});
}

// ---- memcached

// A cache that restarts, so that its numbers restart, too. A former holder renews its lock when
// another one has it, and releases it soon afterwards.
void renew_in_another_life(random_source& r, plan& p) {
  make_processes(p, 3 + r.below(2), 3 * second);
  p.names = {{lock_kind::mutex}};
  const nanos at = r.between(300 * millisecond, 850 * millisecond);
  p.faults = {
      {.what = fault_plan::kind::forget, .at = at, .length = r.between(1, 20 * millisecond)}};
  for (auto& one : p.processes) {
    const bool before = &one == &p.processes.front();
    add_thread(one, {{.think = before ? 0 : at + r.between(20 * millisecond, 300 * millisecond),
                      .hold = before ? r.between(900 * millisecond, 1500 * millisecond)
                                     : r.between(second, 3 * second)}});
  }
}

// ---- locks of the server's connections

// Processes that hand a lock over to each other, and are suspended for longer than the server waits
// for a sign of life, perhaps while the answer that grants the lock is on its way.
void stand_still_before_the_answer(random_source& r, plan& p) {
  make_processes(p, 2, 6 * second);
  p.names = {{r.one_in(3) ? lock_kind::shared : lock_kind::mutex}};
  p.network.slow_reply = static_cast<unsigned>(600 + r.below(400));
  p.network.slowest_late = r.between(200 * millisecond, 600 * millisecond);
  for (auto& one : p.processes) {
    std::vector<step> steps;
    for (auto more = 6; more > 0; --more) {
      steps.push_back({.think = r.between(0, 50 * millisecond),
                       .hold = r.between(500 * millisecond, 1000 * millisecond)});
    }
    add_thread(one, std::move(steps));
  }
  p.faults = {{.what = fault_plan::kind::pause,
               .at = r.between(2 * second, 5 * second),
               .length = r.between(6050 * millisecond, 7 * second),
               .process = r.below(p.processes.size())}};
}

// Holders that do not renew, and do not notice the end of their lease, while others wait for the
// lock. Their session has other requests to send, so that the server hears from it.
void sleep_past_the_end(random_source& r, plan& p) {
  make_processes(p, 2 + r.below(2), 6 * second);
  p.names = {{lock_kind::mutex}, {lock_kind::mutex}};
  for (auto& one : p.processes) {
    const bool first = &one == &p.processes.front();
    one.renew = !first;
    one.begins = first ? 0 : r.between(100 * millisecond, second);
    const step other{.think = r.between(500 * millisecond, 3 * second), .name = 1};
    if (first)
      add_thread(one, std::vector<step>(static_cast<std::size_t>(20 + r.below(40)), other));
    add_thread(one,
               {{.hold = first ? r.between(40 * second, 120 * second) : r.between(0, second)}});
  }
}

// ---- stores that see a death

// One process hands a lock over internally while a queued waiter of another process has died.
void pass_on_past_the_dead(random_source& r, plan& p) {
  make_processes(p, 3, 3 * second);
  p.store = store_kind::sees_death;
  p.names = {{lock_kind::mutex}};
  auto& holder = p.processes[0];
  holder.local_time = r.one_in(2) ? 0 : 10 * millisecond;
  const nanos held = r.between(300 * millisecond, 800 * millisecond);
  add_threads(r, holder, 2 + r.below(2), [&] {
    return step{.think = r.between(0, 10 * millisecond), .hold = r.between(held / 2, held)};
  });
  for (std::size_t i = 1; i < 3; ++i) {
    auto& one = p.processes[i];
    one.begins = r.between(20 * millisecond, held);
    for (auto more = 1 + r.below(2); more > 0; --more) add_thread(one, {{}, {}, {}});
    if (i == 2 && r.one_in(2)) continue;
    p.faults.push_back({.what = fault_plan::kind::kill,
                        .at = one.begins + r.between(50 * millisecond, 3 * held),
                        .process = i});
  }
}

// ---- rows

// Answers that are lost with their connection, about rows that others change all the time.
void change_what_others_change(random_source& r, plan& p) {
  make_processes(p, 3 + r.below(3), 6 * second);
  p.names = {{lock_kind::fair}};
  p.network.lose_reply = static_cast<unsigned>(30 + r.below(100));
  const nanos moment = r.between(300 * microsecond, 2 * millisecond);
  for (auto& one : p.processes) {
    add_threads(r, one, 2 + r.below(2), [&] {
      return step{.think = r.one_in(2) ? 0 : r.between(0, moment), .hold = r.between(0, moment)};
    });
  }
}

// More threads than connections.
void share_connections(random_source& r, plan& p) {
  make_processes(p, 1 + r.below(2), 6 * second);
  p.names.assign(8 + r.below(5), name_plan{lock_kind::mutex});
  for (auto& one : p.processes) {
    std::size_t next = 0;
    add_threads(r, one, p.names.size(), [&] {
      step s;
      s.wait = r.one_in(2) ? 0 : never;
      s.hold = r.one_in(2) ? 0 : r.between(0, millisecond);
      return s;
    });
    for (auto& t : one.threads) {
      for (auto& s : t.steps) s.name = next;
      ++next;
    }
  }
}

// Connections for notifications break and take time to come back, while waiters far back come to
// the front.
void miss_what_comes_next(random_source& r, plan& p) {
  make_processes(p, 3, 3 * second);
  p.store = store_kind::postgres;
  p.names = {{lock_kind::fair}};
  p.network.break_listener = static_cast<unsigned>(50 + r.below(400));
  p.network.slowest = r.between(10 * millisecond, 50 * millisecond);
  const nanos moment = r.between(millisecond, 100 * millisecond);
  for (auto& one : p.processes) {
    for (auto more = 3 + r.below(4); more > 0; --more) {
      std::vector<step> steps;
      for (auto left = 1 + r.below(3); left > 0; --left) {
        steps.push_back({.think = r.between(0, moment), .hold = r.between(0, 2 * moment)});
      }
      add_thread(one, std::move(steps));
    }
  }
}

// ---- Redis

// Many waiters are far from the front when the queue is dropped. They have to enter it again long
// before the first of them has its turn.
void lose_the_queue(random_source& r, plan& p) {
  make_processes(p, 2 + r.below(2), r.between(second, 3 * second));
  p.names = {{lock_kind::fair}};
  add_thread(p.processes[0], {{.hold = r.between(8 * second, 12 * second)}});
  for (std::size_t i = 1; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    one.begins = 10 * millisecond;
    for (auto more = 5 + r.below(6); more > 0; --more) {
      add_thread(one, {{.think = r.between(0, 100 * millisecond),
                        .hold = r.between(0, 20 * millisecond)}});
    }
  }
  p.faults = {{.what = fault_plan::kind::lose_key, .at = r.between(200 * millisecond, 2 * second)}};
}

// Tries for several locks, of which another process holds one; leases are longer than the whole
// run.
void try_several(random_source& r, plan& p) {
  make_processes(p, 2 + r.below(2), r.between(15, 40) * second);
  p.names.assign(2 + r.below(2), name_plan{r.one_in(2) ? lock_kind::fair : lock_kind::mutex});
  const nanos moment = r.between(5 * millisecond, 100 * millisecond);
  for (auto& one : p.processes) {
    add_threads(r, one, 1 + r.below(2), [&] {
      step s;
      s.think = r.between(0, moment);
      s.hold = r.between(0, moment);
      s.several = !r.one_in(3);
      s.name = r.below(p.names.size());
      if (s.several) s.wait = r.one_in(4) ? r.between(0, moment) : 0;
      return s;
    });
  }
}

// ---- slots

// A lock that is released just when the next process has found it taken and begins to listen.
void free_it_at_once(random_source& r, plan& p) {
  make_processes(p, 2 + r.below(2), 3 * second);
  p.names = {{lock_kind::mutex}};
  const nanos moment = r.between(100 * microsecond, 3 * millisecond);
  for (auto& one : p.processes) {
    add_threads(r, one, 1, [&] {
      return step{.think = r.between(0, r.one_in(2) ? moment : 20 * moment),
                  .hold = r.between(0, moment)};
    });
  }
}

// ---- contenders

// A caller gives up, and is cut off just then: for longer than a request is repeated for a caller,
// and for less than a session lasts. Its session must leave the queue later, although it has
// nothing else to do.
void leave_in_vain(random_source& r, plan& p) {
  make_processes(p, 3, 3 * second);
  p.names = {{r.one_in(2) ? lock_kind::fair : lock_kind::mutex}};
  p.session_timeout = 15 * second;
  p.network.delivers_late = false;
  const nanos then = 10 * millisecond;
  const nanos wait = r.one_in(2) ? 0 : r.between(0, 300 * millisecond);
  p.faults = {{.what = fault_plan::kind::cut,
               .at = then + wait + r.between(200 * microsecond, 1200 * microsecond),
               .length = r.between(5 * second, 9 * second)}};
  add_thread(p.processes[0], {{.think = then, .wait = wait}});
  add_thread(p.processes[0], {{.think = 60 * second}});
  add_thread(p.processes[1], {{.hold = r.between(2, 5) * second}});
  p.processes[2].begins = second;
  add_thread(p.processes[2], {{.hold = millisecond}});
}

// A writer that becomes a reader, a writer behind it that gives up, and readers behind that one.
void read_beside_a_former_writer(random_source& r, plan& p) {
  make_processes(p, 3, 3 * second);
  p.names = {{lock_kind::shared}};
  const nanos until = r.between(3 * second, 6 * second);
  const nanos gone = until + r.between(second, 3 * second);
  add_thread(p.processes[0], {{.hold = 2 * until + 6 * second, .what = step::inside::downgrade}});
  for (auto more = 1 + r.below(2); more > 0; --more) {
    const nanos asks = r.between(50 * millisecond, second);
    add_thread(p.processes[1], {{.think = asks, .wait = gone - asks}});
  }
  for (auto more = 1 + r.below(2); more > 0; --more) {
    add_thread(p.processes[2],
               {{.think = r.between(second, gone), .shared = true, .hold = r.between(0, second)}});
  }
}

// A latch whose waiters poll while the server is frozen or answers are lost, and that opens soon
// afterwards.
void open_after_a_failed_look(random_source& r, plan& p) {
  make_processes(p, 2 + r.below(2), 3 * second);
  p.names = {{lock_kind::latch, 1}};
  p.command_timeout = r.between(100 * millisecond, 300 * millisecond);
  const nanos at = r.between(0, 10 * millisecond);
  p.faults = {{.what = fault_plan::kind::freeze,
               .at = at,
               .length = r.between(p.command_timeout, 4 * p.command_timeout)}};
  if (r.one_in(2)) p.network.lose_reply = static_cast<unsigned>(100 + r.below(300));
  for (auto& one : p.processes) {
    const bool opens = &one == &p.processes.front();
    for (auto more = opens ? 1 : 1 + r.below(3); more > 0; --more) {
      add_thread(one, {{.think = opens ? at + p.faults[0].length + r.between(0, 2 * second)
                                       : r.between(0, at + 2 * millisecond),
                        .wait = 30 * second,
                        .deed = opens ? 0U : 6U}});
    }
  }
}

bool arrange_rows(random_source& r, plan& p) {
  switch (r.below(3)) {
    case 0:
      return change_what_others_change(r, p), true;
    case 1:
      return share_connections(r, p), true;
    default:
      return miss_what_comes_next(r, p), true;
  }
}

}  // namespace

bool arrange_more_stores(random_source& r, plan& p) {
  if (p.processes.empty()) return false;
  switch (p.about) {
    case theme::items:
      return renew_in_another_life(r, p), true;
    case theme::sessions:
      if (r.one_in(3)) return sleep_past_the_end(r, p), true;
      return stand_still_before_the_answer(r, p), true;
    case theme::rows:
      return arrange_rows(r, p);
    case theme::scripts:
      return (r.one_in(2) ? lose_the_queue(r, p) : try_several(r, p)), true;
    case theme::slots:
      if (p.store == store_kind::told_slots) return free_it_at_once(r, p), true;
      return false;
    case theme::meetings:
      if (p.store != store_kind::contenders) return false;
      return open_after_a_failed_look(r, p), true;
    case theme::locks:
      if (p.store != store_kind::contenders) return pass_on_past_the_dead(r, p), true;
      return (r.one_in(4) ? read_beside_a_former_writer(r, p) : leave_in_vain(r, p)), true;
    default:
      return false;
  }
}

}  // namespace simulation
