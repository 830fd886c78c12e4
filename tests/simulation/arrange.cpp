#include <algorithm>

#include "simulation/arranging.hpp"

namespace simulation {

// Removes all faults, so that order and durations can be judged exactly.
void make_calm(plan& p) {
  p.faults.clear();
  const bool unordered = p.network.unordered;
  p.network = {};
  p.network.unordered = unordered;
  p.machine.stall_per_100k = 0;
  p.drift_per_mille = 0;
  p.command_timeout = 2 * second;
  for (auto& one : p.processes) {
    one.renew = true;
    one.max_hold = never;
    for (auto& t : one.threads) {
      for (auto& s : t.steps) s.forces = false;
    }
  }
}

void make_plain(process_plan& one, nanos lease) {
  one.begins = one.linger = 0;
  one.lease = lease;
  one.max_hold = never;
  one.renew = true;
  one.threads.clear();
}

void set_processes(plan& p, std::size_t many, nanos lease) {
  p.processes.resize(many, p.processes.front());
  for (auto& one : p.processes) {
    make_plain(one, lease);
    one.unconfirmed = false;
  }
}

void set_up(plan& p, std::size_t processes, nanos lease) {
  make_punctual(p);
  p.machine.preempt_permille = p.machine.spurious_permille = 0;
  set_processes(p, processes, lease);
}

void give(process_plan& one, std::vector<step> steps) { one.threads.push_back({std::move(steps)}); }
void remain(process_plan& one, nanos length) { give(one, {{.think = length}}); }

lock_kind some_mutex(random_source& r) { return r.one_in(2) ? lock_kind::fair : lock_kind::mutex; }

void tell_at_once(plan& p) {
  if (p.store == store_kind::untold) p.store = store_kind::told;
  if (p.store == store_kind::mariadb) p.store = store_kind::postgres;
}

void tell_at_once_by_records(plan& p) {
  tell_at_once(p);
  if (p.store > store_kind::scripts) p.store = store_kind::told;
}

void make_votes(plan& p) {
  p.store = store_kind::told;
  p.others = {store_kind::told, store_kind::told};
  p.names = {{lock_kind::redlock}};
}

void make_votes(random_source& r, plan& p) {
  static constexpr store_kind kinds[] = {store_kind::told, store_kind::untold};
  p.store = kinds[r.below(2)];
  p.others = {kinds[r.below(2)], kinds[r.below(2)]};
  p.names = {{lock_kind::redlock}};
}

void give_permits_and_tokens(random_source& r, plan& p) {
  p.names = {{lock_kind::semaphore, static_cast<std::uint32_t>(1 + r.below(3))},
             {.kind = lock_kind::limiter,
              .capacity = 1,
              .burst = static_cast<std::uint32_t>(40 + r.below(40)),
              .per = 1000 * second},
             {lock_kind::admission}};
  p.network.slow_reply = static_cast<unsigned>(100 + r.below(400));
}

namespace {

// Threads of one process pass a mutex on to each other for moments: some take it again and again,
// some wait, and some give up just when it is their turn.
void pass_around(random_source& r, plan& p) {
  make_calm(p);
  p.names = {{r.one_in(4) ? lock_kind::recursive : lock_kind::mutex}};
  p.machine.slow_permille = static_cast<unsigned>(100 + r.below(400));
  p.machine.preempt_permille = r.one_in(2) ? 0 : static_cast<unsigned>(r.below(100));
  for (auto& one : p.processes) one.threads.resize(1);
  for (auto& one : p.processes) {
    for (auto& s : one.threads.front().steps) {
      s = {.think = s.think, .how = step::style::standard, .hold = s.hold / 8};
    }
  }
  auto& one = p.processes[r.below(p.processes.size())];
  one.threads.clear();
  one.local_time = r.one_in(4) ? 10 * millisecond : second;
  one.max_bypass = r.one_in(3) ? 250 : static_cast<unsigned>(r.below(4));
  const nanos moment = r.one_in(2) ? 200 * microsecond : 3 * millisecond;
  const auto gives_up = 1 + r.below(3);
  const bool calls_back = p.names[0].kind == lock_kind::mutex && r.one_in(2);
  add_threads(r, one, 3 + r.below(4), [&] {
    step s;
    s.how = r.one_in(2) || p.names[0].kind == lock_kind::recursive ? step::style::standard
                                                                   : step::style::lease;
    s.think = r.one_in(2) ? 0 : r.between(0, moment);
    s.hold = r.one_in(2) ? 0 : r.between(0, moment);
    if (r.below(4) < gives_up && r.one_in(2)) s.stop_after = r.between(0, 2 * moment);
    if (r.one_in(8)) s.wait = r.between(0, 2 * moment);
    if (calls_back && r.one_in(2)) s.how = step::style::callback;
    return s;
  });
}

// A process of which at least one thread always reads, and writers in other processes.
void read_on(random_source& r, plan& p) {
  make_calm(p);
  p.names = {{lock_kind::shared}};
  p.machine.slow_permille = 0;
  p.processes.resize(2, p.processes.front());
  for (auto& one : p.processes) one.threads.clear();
  const nanos moment = r.between(20 * millisecond, 200 * millisecond);
  const auto read = [&] {
    step s;
    s.shared = true;
    s.hold = r.between(moment / 2, moment);
    s.think = r.one_in(3) ? r.between(0, moment / 8) : 0;
    if (r.one_in(4)) s.how = step::style::callback;
    return s;
  };
  add_threads(r, p.processes[0], 2 + r.below(4), read);
  add_threads(r, p.processes[1], 1 + r.below(2), [&] {
    step s = read();
    s.shared = r.one_in(4);
    s.hold /= 8;
    s.think = r.between(0, 2 * moment);
    return s;
  });
}

// Threads hand over a hold with a time limit (max_hold); each keeps it for about as long as the
// limit allows.
void hold_in_turns(random_source& r, plan& p) {
  make_calm(p);
  p.names = {{lock_kind::mutex}};
  p.machine.slow_permille = p.machine.preempt_permille = 0;
  p.processes.resize(1);
  auto& one = p.processes.front();
  one.threads.clear();
  one.linger = 0;
  one.max_hold = r.between(one.lease / 2, 2 * one.lease);
  one.local_time = 4 * one.max_hold;
  one.max_bypass = r.one_in(2) ? 0 : 250;
  add_threads(r, one, 2 + r.below(3), [&] {
    step s;
    s.hold = r.between(0, one.max_hold * 3 / 2);
    s.back = r.one_in(2) ? step::end::release : step::end::destroy;
    return s;
  });
}

// Threads hand over a hold whose lease the previous holder has just begun to extend.
void extend_at_the_end(random_source& r, plan& p) {
  make_calm(p);
  p.names = {{lock_kind::mutex}};
  p.processes.resize(1 + r.below(2), p.processes.front());
  for (auto& one : p.processes) {
    one.threads.clear();
    one.local_time = 10 * second;
    one.linger =
        r.one_in(2) || p.store == store_kind::untold || p.store == store_kind::mariadb ? 0 : second;
    add_threads(r, one, 2 + r.below(3), [&] {
      step s;
      s.hold = r.one_in(2) ? r.between(0, millisecond) : r.between(0, one.lease / 4);
      s.what = r.one_in(2) ? step::inside::nothing : step::inside::extend_late_to;
      if (s.what != step::inside::nothing) s.hold = r.between(0, 200 * microsecond);
      return s;
    });
  }
}

// A process that holds several names dies while several threads of another process wait for them.
void die_while_others_watch(random_source& r, plan& p) {
  make_calm(p);
  p.store = store_kind::sees_death;
  p.names.assign(2 + r.below(2), name_plan{r.one_in(2) ? lock_kind::fair : lock_kind::mutex});
  p.machine.slow_permille = 0;
  p.processes.resize(2 + r.below(2), p.processes.front());
  for (auto& one : p.processes) {
    const bool dies = &one == &p.processes.front();
    one.begins = dies ? 0 : r.between(10 * millisecond, 100 * millisecond);
    one.lease = 3 * second;
    one.linger = 0;
    one.threads.clear();
    for (std::size_t i = 0; i < p.names.size(); ++i) {
      step s{.think = dies ? 0 : r.between(0, 50 * millisecond), .name = i, .hold = millisecond};
      if (dies) s.hold = 4 * second;
      one.threads.push_back({{s}});
    }
  }
  p.faults = {{.what = fault_plan::kind::kill, .at = r.between(200 * millisecond, second)}};
}

// Answers that arrive long after the server has ended the connection, and tries that seem to fail.
void answer_in_vain(random_source& r, plan& p) {
  if (r.one_in(2)) p.network.fail_done = static_cast<unsigned>(50 + r.below(250));
  if (r.one_in(2)) return;
  p.faults.clear();
  p.network.slow_reply = static_cast<unsigned>(50 + r.below(200));
  p.network.slowest_late = r.between(5 * second, 14 * second);
  for (auto& one : p.processes) {
    one.lease = 6 * second;
    for (auto& t : one.threads) {
      for (auto& s : t.steps) s.wait = never, s.stop_after = never;
    }
  }
}

// Threads and callbacks of a few processes wait for the same names, of which one is free at any
// moment. The thread that reads the session's inbox changes all the time.
void wait_in_all_ways(random_source& r, plan& p) {
  make_calm(p);
  p.names.clear();
  for (auto more = 1 + r.below(2); more > 0; --more) {
    p.names.push_back(r.one_in(3) ? name_plan{lock_kind::semaphore, 2}
                                  : name_plan{lock_kind::fair});
  }
  p.machine.slow_permille = 0;
  p.processes.resize(2, p.processes.front());
  const nanos moment = r.between(millisecond, 40 * millisecond);
  for (auto& one : p.processes) {
    one.threads.clear();
    add_threads(r, one, 2 + r.below(4), [&] {
      step s;
      s.name = r.below(p.names.size());
      s.how = r.one_in(2) ? step::style::callback : step::style::lease;
      s.hold = r.between(0, moment);
      s.think = r.one_in(2) ? 0 : r.between(0, moment);
      if (r.one_in(4)) s.wait = r.between(0, 3 * moment);
      if (r.one_in(8)) s.hold = r.between(300 * millisecond, second);
      if (r.one_in(3)) s.stop_after = r.between(0, r.one_in(2) ? millisecond : 2 * moment);
      return s;
    });
  }
}

// Readers become writers, and readers again while their lease is renewed, over slow connections.
void weaken_while_renewed(random_source& r, plan& p) {
  make_calm(p);
  p.names = {{lock_kind::shared}};
  p.machine.slow_permille = 0;
  p.network.unordered = true;
  p.network.slowest = r.between(3 * millisecond, 8 * millisecond);
  p.processes.resize(r.one_in(3) ? 2 : 1, p.processes.front());
  for (auto& one : p.processes) {
    one.lease = 300 * millisecond;
    one.threads.clear();
    add_threads(r, one, 1, [&] {
      step s;
      s.shared = !r.one_in(4);
      s.hold = r.between(50 * millisecond, 450 * millisecond);
      s.what = s.shared ? step::inside::upgrade : step::inside::downgrade;
      s.more = r.one_in(2) ? 0 : static_cast<unsigned>(2 + r.below(4));
      s.think = r.between(0, 50 * millisecond);
      return s;
    });
  }
}

// Queue entries that the driver requests a second time, and that have been left again when the
// first request arrives.
void enter_twice(random_source& r, plan& p) {
  make_calm(p);
  p.names = {{r.one_in(2) ? lock_kind::fair : lock_kind::mutex}};
  p.network.unordered = p.network.delivers_late = true;
  p.network.slow_request = static_cast<unsigned>(50 + r.below(250));
  p.network.slowest_late = r.between(300 * millisecond, second);
  p.command_timeout = 200 * millisecond;
  for (auto& one : p.processes) {
    one.lease = 300 * millisecond;
    one.linger = 0;
    one.threads.clear();
    add_threads(r, one, 1 + r.below(2), [&] {
      return step{.think = r.between(0, 300 * millisecond), .hold = r.between(0, 5 * millisecond)};
    });
    one.threads.push_back({{{.think = r.between(20 * second, 40 * second)}}});
  }
}

// Tokens for callers that leave before the answer comes, at a limiter that refills hardly at all.
void take_and_leave(random_source& r, plan& p) {
  make_calm(p);
  p.names = {{.kind = lock_kind::limiter,
              .capacity = 1,
              .burst = static_cast<std::uint32_t>(30 + r.below(50)),
              .per = 1000 * second}};
  p.machine.preempt_permille = 0;
  p.network.slow_reply = p.network.slow_request = static_cast<unsigned>(50 + r.below(400));
  p.network.slowest_late = r.between(100 * millisecond, 900 * millisecond);
  for (auto& one : p.processes) {
    one.threads.clear();
    add_threads(r, one, 1 + r.below(3), [&] {
      step s;
      s.deed = static_cast<unsigned>(r.one_in(4) ? r.below(5) : 5);
      s.weight = static_cast<std::uint32_t>(1 + r.below(3));
      s.how = r.one_in(3) ? step::style::callback : step::style::lease;
      s.wait = r.between(0, 300 * millisecond);
      if (r.one_in(3)) s.stop_after = r.between(0, 100 * millisecond);
      return s;
    });
  }
}

// Waiters that are woken, and asked to stop before they have the mutex. No later waiter comes to
// find the wake-up that the last of them leaves behind.
void wake_leaving_waiters(random_source& r, plan& p) {
  make_calm(p);
  p.machine.slow_permille = 0;
  p.processes.resize(1 + r.below(2), p.processes.front());
  const nanos moment = r.between(2 * millisecond, 20 * millisecond);
  for (auto& one : p.processes) {
    one.linger = 0;
    one.threads.clear();
    const step waits{.name = 1, .how = step::style::callback, .wait = 3 * second, .deed = 4};
    add_threads(r, one, 2 + r.below(2), [&] {
      step s = waits;
      s.think = r.between(0, moment);
      if (!r.one_in(3)) s.stop_after = r.between(moment, 6 * moment);
      return s;
    });
    add_threads(r, one, 1, [&] {
      step s = waits;
      s.think = r.between(moment, 4 * moment);
      s.deed = static_cast<unsigned>(r.below(2));
      return s;
    });
    for (auto& t : one.threads) t.steps.resize(1 + r.below(2));
    add_threads(r, one, 1, [&] {
      return step{.think = r.between(0, millisecond), .hold = r.between(0, 3 * moment)};
    });
  }
}

// Waiters that are woken when the server is about to freeze, and leave before it continues. The
// wake-up that they leave belongs to the next waiter, which waits for long.
void wake_before_it_stands_still(random_source& r, plan& p) {
  make_calm(p);
  p.machine.slow_permille = 0;
  p.command_timeout = r.between(200 * millisecond, 500 * millisecond);
  const nanos moment = r.between(20 * millisecond, 60 * millisecond);
  p.faults = {
      {.what = fault_plan::kind::freeze, .at = moment, .length = r.between(second, 3 * second)}};
  p.processes.resize(2, p.processes.front());
  for (auto& one : p.processes) make_plain(one, second);
  const step waits{.name = 1, .how = step::style::callback, .deed = 4};
  add_threads(r, p.processes.front(), 1 + r.below(2), [&] {
    step s = waits;
    s.think = r.between(0, moment / 4);
    s.wait = r.between(moment, 900 * millisecond);
    if (r.one_in(3)) s.stop_after = r.between(moment, 300 * millisecond);
    return s;
  });
  // Keeps the session open until it has sent all its requests.
  add_threads(r, p.processes.front(), 1, [&] { return step{.think = 10 * second}; });
  auto& other = p.processes.back();
  add_threads(r, other, 1, [&] {
    step s = waits;
    s.think = moment / 2;
    s.wait = 60 * second;
    return s;
  });
  add_threads(r, other, 1, [&] {
    step s = waits;
    s.think = moment - r.between(0, 4 * millisecond);
    s.deed = static_cast<unsigned>(r.below(2));
    return s;
  });
  for (auto& one : p.processes) {
    for (auto& t : one.threads) t.steps.resize(1);
  }
}

// Several locks acquired together whose release fails.
void give_back_many_in_vain(random_source& r, plan& p) {
  make_calm(p);
  p.names.assign(2 + r.below(2), name_plan{r.one_in(2) ? lock_kind::fair : lock_kind::mutex});
  p.network.lose_request = p.network.lose_reply = static_cast<unsigned>(50 + r.below(150));
  p.command_timeout = r.between(200 * millisecond, 500 * millisecond);
  p.processes.resize(1 + r.below(2), p.processes.front());
  for (auto& one : p.processes) {
    one.lease = 10 * second;
    one.linger = 0;
    one.threads.clear();
    add_threads(r, one, 1, [&] {
      return step{.think = r.between(3 * second, 5 * second),
                  .several = true,
                  .hold = r.between(0, 50 * millisecond)};
    });
  }
}

// Counts whose answer is lost when the server stops, and that the client cannot repeat for long.
void count_at_the_end(random_source& r, plan& p) {
  p.names = {{lock_kind::latch, static_cast<std::uint32_t>(40 + r.below(40))}};
  p.network = {};
  p.network.slow_reply = 300;
  p.network.slowest_late = 20 * millisecond;
  p.command_timeout = 2 * second;
  p.faults.clear();
  for (auto more = 1 + r.below(2); more > 0; --more) {
    p.faults.push_back({.what = fault_plan::kind::restart,
                        .at = r.between(0, 100 * millisecond),
                        .length = r.between(11 * second, 16 * second)});
  }
  for (auto& one : p.processes) {
    one.threads.clear();
    one.renew = true;
    add_threads(r, one, 2 + r.below(3), [&] {
      step s{.think = r.between(0, 10 * millisecond), .wait = second};
      s.deed = r.one_in(4) ? 4 : 0;
      if (r.one_in(3)) s.how = step::style::callback;
      return s;
    });
  }
}

// A cache that restarts empty: a former holder releases its lock while another one holds it.
void give_back_to_another_life(random_source& r, plan& p) {
  make_calm(p);
  p.names = {{lock_kind::mutex}};
  const nanos at = r.between(50 * millisecond, 300 * millisecond);
  p.faults = {
      {.what = fault_plan::kind::forget, .at = at, .length = r.between(1, 20 * millisecond)}};
  p.processes.resize(3, p.processes.front());
  for (auto& one : p.processes) {
    one.lease = 3 * second;
    one.begins = 0;
    const bool before = &one == &p.processes.front();
    step s{.think = before ? 0 : at + r.between(30 * millisecond, 300 * millisecond),
           .hold = before ? r.between(600 * millisecond, 950 * millisecond)
                          : r.between(second, 2 * second)};
    one.threads = {{{s}}};
  }
}

// Many waiters far back in the queue whose connection for notifications breaks.
void stand_far_back(random_source& r, plan& p) {
  make_calm(p);
  p.names = {{lock_kind::fair}};
  p.processes.resize(3, p.processes.front());
  p.network.break_listener = static_cast<unsigned>(20 + r.below(200));
  const nanos moment = r.between(20 * millisecond, 100 * millisecond);
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    one.lease = 300 * millisecond;
    one.threads.clear();
    one.unconfirmed = false;
    add_threads(r, one, i == 0 ? 2 : 6,
                [&] { return step{.think = r.between(0, moment), .hold = r.between(0, moment)}; });
    for (auto& t : one.threads) t.steps.resize(2);
  }
}

// Releases whose answer is lost, and that are repeated over another connection.
void give_back_twice(random_source& r, plan& p) {
  p.faults.clear();
  p.network.lose_reply = static_cast<unsigned>(50 + r.below(150));
  p.network.slow_request = p.network.slow_reply = 0;
  p.network.lose_request = r.one_in(2) ? 0 : 30;
  p.machine.stall_per_100k = 0;
  p.command_timeout = second;
  for (auto& one : p.processes) {
    one.lease = 6 * second;
    one.renew = true;
    one.max_hold = never;
    for (auto& t : one.threads) {
      for (auto& s : t.steps) {
        s.hold = std::min(s.hold, 50 * millisecond);
        s.forces = false;
        if (!r.one_in(4)) s.back = step::end::release;
      }
    }
  }
}

// Asynchronous votes, some or all of them without a waiting thread, that are cancelled at any
// moment.
void vote_without_threads(plan& p) {
  random_source r(random_source(p.seed + 47'000'000'000).next());
  if (p.names.front().kind != lock_kind::redlock || r.one_in(3)) return;
  const auto by_threads = r.below(4);
  const auto called_off = r.below(4);
  for (auto& one : p.processes) {
    for (auto& t : one.threads) {
      for (auto& s : t.steps) {
        if (r.below(4) < by_threads) continue;
        s.deed = 1;
        if (r.below(8) < called_off) s.stop_after = r.between(0, 400 * millisecond);
      }
    }
  }
}

bool passes_on(const plan& p) {
  return p.about == theme::locks || p.about == theme::scripts || p.about == theme::rows;
}

}  // namespace

namespace {

// The server is a standby for a while; another server may grant locks meanwhile.
void take_no_writes(random_source& r, plan& p) {
  const nanos lease = p.longest_lease();
  for (auto more = 1 + r.below(2); more > 0; --more) {
    fault_plan f;
    f.what = fault_plan::kind::read_only;
    f.at = r.between(0, 6 * lease);
    f.length = r.between(lease / 4, 3 * lease);
    p.faults.push_back(f);
  }
}

void arrange_contenders(random_source& r, plan& p) {
  switch (r.below(4)) {
    case 0:
      return weaken_while_renewed(r, p);
    case 1:
      return enter_twice(r, p);
    case 2:
      return wait_in_all_ways(r, p);
    default:
      return pass_around(r, p);
  }
}

void arrange_locks(random_source& r, plan& p) {
  if (p.store == store_kind::contenders && r.one_in(2)) return arrange_contenders(r, p);
  if (p.about == theme::rows && r.one_in(2)) {
    return r.one_in(2) ? give_back_twice(r, p) : stand_far_back(r, p);
  }
  switch (r.below(8)) {
    case 0:
    case 1:
      return pass_around(r, p);
    case 6:
      return give_back_many_in_vain(r, p);
    case 2:
      return read_on(r, p);
    case 3:
      return hold_in_turns(r, p);
    case 4:
      return wait_in_all_ways(r, p);
    case 5:
      if (p.about == theme::locks) return die_while_others_watch(r, p);
      [[fallthrough]];
    default:
      return extend_at_the_end(r, p);
  }
}

void arrange_meeting(random_source& r, plan& p) {
  const auto kind = p.names.back().kind;
  if (kind == lock_kind::condition && p.seed >= freezing_seeds && r.one_in(2))
    return wake_before_it_stands_still(r, p);
  if (kind == lock_kind::condition && p.about == theme::async) return wake_leaving_waiters(r, p);
  if (kind == lock_kind::latch && p.about != theme::rows) return count_at_the_end(r, p);
}

}  // namespace

void arrange(plan& p) {
  if (p.about == theme::stores) return vote_without_threads(p);
  random_source r(random_source(p.seed + 43'000'000'000).next());
  if (!r.one_in(2)) {
    if (p.about == theme::sessions && r.one_in(2)) take_no_writes(r, p);
    return;
  }
  if (p.about == theme::sessions) return answer_in_vain(r, p);
  if (p.about == theme::items) return give_back_to_another_life(r, p);
  if (p.about == theme::rates && p.names.size() == 1) return take_and_leave(r, p);
  if (p.about == theme::meetings || p.about == theme::async) return arrange_meeting(r, p);
  if (passes_on(p) && p.has_only_locks()) arrange_locks(r, p);
}

}  // namespace simulation
