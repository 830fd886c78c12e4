#include "simulation/encounters.hpp"

#include "simulation/arranging.hpp"

namespace simulation {

namespace {

using goes_wrong = fault_plan::kind;

// ---- locks

// Readers want to write, or writers to read, just after an operator took the lock from them. Their
// next renewal comes much later.
void change_what_was_taken(random_source& r, plan& p) {
  set_up(p, 2, r.between(15, 40) * second);
  p.names.assign(1 + r.below(3), name_plan{lock_kind::shared});
  const nanos then = r.between(second, 3 * second);
  for (std::size_t i = 0; i < p.names.size(); ++i) {
    const bool reads = r.one_in(2);
    step s{.name = i, .shared = reads, .hold = then + r.between(0, 4 * second)};
    s.what = reads ? step::inside::upgrade : step::inside::downgrade;
    s.soon = then;
    if (r.one_in(3)) s.how = step::style::callback;
    give(p.processes[0], {s});
    const nanos before = r.between(-5 * millisecond, 500 * millisecond);
    give(p.processes[1], {{.think = then - before, .name = i, .wait = 0, .forces = true}});
  }
}

// Nobody renews these leases: the holders shorten and extend them, and answers are lost.
void extend_without_an_answer(random_source& r, plan& p) {
  set_up(p, 2, r.between(5, 20) * second);
  p.names.assign(1 + r.below(4), name_plan{some_mutex(r)});
  p.command_timeout = p.store == store_kind::mariadb ? second : 300 * millisecond;
  p.network.lose_reply = static_cast<unsigned>(100 + r.below(400));
  for (auto& one : p.processes) {
    one.renew = false;
    one.local_time = 0;
    for (std::size_t i = 0; i < p.names.size(); ++i) {
      step s{.name = i, .hold = r.between(one.lease / 2, one.lease * 3 / 2)};
      s.what = r.one_in(4) ? step::inside::extend_to : step::inside::shorten;
      s.soon = r.between(0, one.lease / 4);
      give(one, {s, s});
    }
  }
}

// Locks that a process keeps idle until another process asks for them.
void ask_for_what_is_idle(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), r.between(second, 4 * second));
  tell_at_once(p);
  p.names.assign(1 + r.below(2), name_plan{lock_kind::mutex});
  for (auto& one : p.processes) {
    one.linger = r.between(second, 4 * second);
    add_threads(r, one, 1, [&] {
      return step{.think = r.between(0, 2 * second),
                  .name = r.below(p.names.size()),
                  .hold = r.between(0, 20 * millisecond)};
    });
  }
}

// Waiters are queued for much longer than a queue entry lasts without a poll.
void wait_in_turn_for_long(random_source& r, plan& p) {
  set_up(p, 3 + r.below(3), r.between(second, 5 * second));
  if (p.store != store_kind::contenders) tell_at_once(p);
  p.names = {r.one_in(3) ? name_plan{lock_kind::semaphore, 1} : name_plan{lock_kind::fair}};
  give(p.processes[0], {{.hold = r.between(8 * second, 18 * second)}});
  nanos comes = r.between(100 * millisecond, second);
  for (std::size_t i = 1; i < p.processes.size(); ++i) {
    for (auto more = 1 + r.below(2); more > 0; --more) {
      give(p.processes[i],
           {{.think = comes, .hold = r.between(100 * millisecond, 400 * millisecond)}});
      comes += r.between(400 * millisecond, 3 * second);
    }
  }
}

// Threads whose release also requests the lock for the next thread of their process, beside waiters
// of other processes; answers are lost.
void hand_over_without_an_answer(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), r.between(6, 12) * second);
  p.names = {{lock_kind::mutex}};
  p.network.lose_reply = static_cast<unsigned>(30 + r.below(120));
  const nanos moment = r.between(300 * microsecond, 3 * millisecond);
  for (auto& one : p.processes) {
    one.local_time = 0;
    add_threads(r, one, 2 + r.below(2), [&] {
      step s{.think = r.one_in(2) ? 0 : r.between(0, moment), .hold = r.between(0, moment)};
      if (r.one_in(4)) s.how = step::style::callback;
      return s;
    });
  }
}

// A store that is away again and again, each time for a moment only, but in total for much longer
// than a session tolerates.
void be_away_again_and_again(random_source& r, plan& p) {
  set_up(p, 2, r.between(6, 12) * second);
  p.names.assign(1 + r.below(3), name_plan{some_mutex(r)});
  auto& one = p.processes[1];
  one.begins = 50 * millisecond;
  for (std::size_t i = 0; i < p.names.size(); ++i) {
    give(p.processes[0], {{.name = i, .hold = r.between(30, 50) * second}});
    step s{.think = r.between(0, 500 * millisecond), .name = i, .hold = millisecond};
    if (r.one_in(3)) s.how = step::style::callback;
    give(one, {s});
  }
  for (nanos at = r.between(second, 3 * second); at < 28 * second;) {
    const nanos length = r.between(100 * millisecond, 700 * millisecond);
    p.faults.push_back({.what = goes_wrong::cut, .at = at, .length = length, .process = 1});
    at += length + r.between(1100 * millisecond, 1500 * millisecond);
  }
}

// Tries that succeed at the store and are answered as if they had been cancelled, in processes that
// stay for long. Other processes want the same locks.
void try_in_vain_and_stay(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), 6 * second);
  const bool shares = r.one_in(3);
  p.names.assign(1 + r.below(2), name_plan{shares ? lock_kind::shared : lock_kind::mutex});
  p.network.fail_done = static_cast<unsigned>(100 + r.below(400));
  for (auto& one : p.processes) {
    add_threads(r, one, 1 + r.below(2), [&] {
      step s{.think = r.between(0, second),
             .name = r.below(p.names.size()),
             .shared = shares && r.one_in(2),
             .wait = r.one_in(3) ? never : 0,
             .hold = r.between(0, 300 * millisecond)};
      return s;
    });
    remain(one, 60 * second);
  }
}

// ---- several stores

// One of three nodes gives no answer for a while, or refuses at once.
void be_refused_by_one_node(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(second, 4 * second));
  make_votes(r, p);
  const nanos lease = p.longest_lease();
  for (auto& one : p.processes) {
    give(one, std::vector<step>(3, {.think = r.between(0, second), .hold = 5 * lease}));
  }
  static constexpr goes_wrong kinds[] = {goes_wrong::freeze, goes_wrong::cut, goes_wrong::restart};
  const auto away = r.below(3);
  nanos at = r.between(0, second);
  for (auto more = 1 + r.below(3); more > 0; --more) {
    p.faults.push_back({.what = kinds[r.below(3)],
                        .at = at,
                        .length = r.between(lease / 2, 6 * lease),
                        .process = r.below(p.processes.size()),
                        .store = away});
    at += p.faults.back().length + r.between(0, 2 * lease);
  }
}

// The lock is released just when its renewal is due, and nobody asks for it for a while.
void give_back_while_it_is_renewed(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(6, 12) * second);
  make_votes(r, p);
  p.machine.preempt_permille = static_cast<unsigned>(100 + r.below(400));
  p.machine.slow_permille = static_cast<unsigned>(r.below(300));
  for (auto& one : p.processes) {
    add_threads(r, one, 1, [&] {
      step s{.think = r.between(3 * second, 4 * second)};
      s.hold = (1 + static_cast<nanos>(r.below(2))) * one.lease / 3 +
               r.between(-millisecond, 2 * millisecond);
      s.deed = static_cast<unsigned>(r.below(2));
      return s;
    });
    remain(one, 120 * second);
  }
}

// ---- barriers

// More participants than the barrier has room for, and nothing goes wrong. A refused participant
// comes again at a time when its lease would be over unless somebody renewed it.
void find_no_room(random_source& r, plan& p) {
  set_up(p, 3 + r.below(2), r.between(300 * millisecond, second));
  const nanos lease = p.longest_lease();
  p.names = {{.kind = lock_kind::barrier,
              .capacity = static_cast<std::uint32_t>(p.processes.size()) - 1,
              .at_once = r.one_in(4)}};
  for (auto& one : p.processes) {
    using meets = process_plan::meets;
    one.how = r.one_in(2) ? meets::by_calls : meets::with_a_limit;
    add_threads(r, one, 1, [&] {
      return step{.think = r.one_in(2) ? r.between(0, lease / 4) : r.between(0, 3 * lease),
                  .wait = r.between(lease / 2, 4 * lease)};
    });
    one.threads.front().steps.push_back({.think = 120 * second, .wait = millisecond});
  }
}

// ---- latches

// Many threads, in several processes, wait for a latch when it opens.
void open_for_many(random_source& r, plan& p) {
  set_up(p, 3 + r.below(3), r.between(second, 3 * second));
  p.names = {{lock_kind::latch, static_cast<std::uint32_t>(1 + r.below(3))}};
  for (auto& one : p.processes) {
    const bool opens = &one == &p.processes.front();
    for (auto more = opens ? p.names[0].capacity : 1 + r.below(3); more > 0; --more) {
      step s{.think = r.between(0, second), .wait = 60 * second, .deed = opens ? 0U : 6U};
      s.weight = 1;
      if (opens) s.think = r.between(second / 2, 5 * second);
      if (r.one_in(3)) s.how = step::style::callback;
      give(one, {s});
    }
  }
}

bool arrange_locks(random_source& r, plan& p) {
  if (p.store == store_kind::contenders) {
    return (r.one_in(2) ? wait_in_turn_for_long(r, p) : change_what_was_taken(r, p)), true;
  }
  switch (r.below(6)) {
    case 0:
      return change_what_was_taken(r, p), true;
    case 1:
      return extend_without_an_answer(r, p), true;
    case 2:
      return ask_for_what_is_idle(r, p), true;
    case 3:
      return wait_in_turn_for_long(r, p), true;
    case 4:
      return hand_over_without_an_answer(r, p), true;
    default:
      return be_away_again_and_again(r, p), true;
  }
}

}  // namespace

bool arrange_encounters(plan& p) {
  random_source r(random_source(p.seed + 73'000'000'000).next());
  if (r.one_in(2) || p.processes.empty()) return false;
  const bool latch = p.names.back().kind == lock_kind::latch;
  switch (p.about) {
    case theme::locks:
    case theme::scripts:
    case theme::rows:
      if (p.has_only_locks()) return arrange_locks(r, p);
      return latch && (open_for_many(r, p), true);
    case theme::meetings:
    case theme::async:
      return latch && (open_for_many(r, p), true);
    case theme::barriers:
      return find_no_room(r, p), true;
    case theme::sessions:
      return try_in_vain_and_stay(r, p), true;
    case theme::stores:
      return (r.one_in(2) ? be_refused_by_one_node(r, p) : give_back_while_it_is_renewed(r, p)),
             true;
    default:
      return false;
  }
}

}  // namespace simulation
