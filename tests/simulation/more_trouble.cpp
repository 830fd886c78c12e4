#include <algorithm>

#include "simulation/arranging.hpp"

namespace simulation {

namespace {

void begin_with(plan& p, std::size_t processes, nanos lease) {
  make_punctual(p);
  p.machine.preempt_permille = p.machine.spurious_permille = 0;
  set_processes(p, processes, lease);
}

void add(process_plan& one, std::vector<step> steps) { one.threads.push_back({std::move(steps)}); }

// Keeps the session open for as long as it may have requests to send.
void stay(process_plan& one, nanos length) { add(one, {{.think = length}}); }

// ---- locks

// A waiter behind a long lease dies at some time during the lease; other processes only try the
// lock.
void die_behind_a_long_lease(random_source& r, plan& p) {
  begin_with(p, 4, second);
  p.names = {{r.one_in(3) ? lock_kind::fair : lock_kind::mutex}};
  auto& holder = p.processes[0];
  holder.lease = r.between(14, 40) * second;
  holder.renew = !r.one_in(3);
  add(holder, {{.hold = holder.lease * 9 / 10}});
  p.processes[1].begins = r.between(50 * millisecond, second);
  add(p.processes[1], {{}});
  // Until its queue entry is over, nobody has asked, and the holder has not renewed the entry.
  const nanos dies = holder.renew ? holder.lease / 3 + r.between(300 * millisecond, second)
                                  : r.between(2 * second, holder.lease / 2);
  for (std::size_t i = 2; i < 4; ++i) {
    p.processes[i].begins = r.one_in(4) ? second : dies + r.between(4, 5) * second;
    const step tries{.think = r.between(50 * millisecond, second), .wait = 0};
    add(p.processes[i], std::vector<step>(20, tries));
  }
  p.faults = {{.what = fault_plan::kind::kill, .at = dies, .process = 1}};
}

// Trouble while the waiters begin to wait, and none for long before their turn.
void wait_on_after_trouble(random_source& r, plan& p) {
  begin_with(p, 2 + r.below(2), second);
  p.session_timeout = 6 * second;
  p.names = {{r.one_in(2) ? lock_kind::fair : lock_kind::mutex}};
  if (r.one_in(3)) p.names = {{lock_kind::shared}};
  p.command_timeout = p.store == store_kind::mariadb ? second : 300 * millisecond;
  if (r.one_in(2)) p.network.lose_reply = static_cast<unsigned>(50 + r.below(200));
  add(p.processes[0], {{.hold = r.between(26, 36) * second}});
  using kind = fault_plan::kind;
  for (std::size_t i = 1; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    one.begins = r.between(50 * millisecond, 300 * millisecond);
    for (auto more = 1 + r.below(2); more > 0; --more) {
      add(one, {{.think = r.between(0, millisecond), .hold = r.between(0, second)}});
    }
    const nanos at = one.begins + r.between(200, 2000) * microsecond;
    p.faults.push_back({.what = r.one_in(3) ? kind::freeze : kind::cut,
                        .at = at,
                        .length = r.between(0, second),
                        .process = i});
  }
}

// A name for each thread, and answers that are lost with their connection while the session's other
// connections work.
void lose_one_of_many_connections(random_source& r, plan& p) {
  begin_with(p, 1, 6 * second);
  p.names.assign(4 + r.below(4), name_plan{lock_kind::fair});
  p.network.lose_reply = static_cast<unsigned>(50 + r.below(150));
  p.command_timeout = second;
  const nanos moment = r.between(300 * microsecond, 3 * millisecond);
  std::size_t next = 0;
  for (auto more = p.names.size(); more > 0; --more) {
    add_threads(r, p.processes[0], 1, [&] {
      return step{.think = r.between(0, moment), .name = next, .hold = r.between(0, moment)};
    });
    ++next;
  }
}

// Callbacks of one process wait for several names, all of which another process holds when it dies.
void die_while_callbacks_wait(random_source& r, plan& p) {
  begin_with(p, 2 + r.below(2), 3 * second);
  p.store = store_kind::sees_death;
  p.names.assign(2 + r.below(4), name_plan{r.one_in(2) ? lock_kind::fair : lock_kind::mutex});
  const nanos dies = r.between(200 * millisecond, 600 * millisecond);
  const bool meanwhile = r.one_in(2);  // at the moment when they ask
  for (std::size_t k = 0; k < p.processes.size(); ++k) {
    auto& one = p.processes[k];
    for (std::size_t i = 0; i < p.names.size(); ++i) {
      step s{.think = r.between(0, 20 * millisecond), .name = i, .hold = millisecond};
      if (k == 0) s.hold = 10 * second;
      if (k > 0) s.how = step::style::callback;
      if (k > 0) s.think = meanwhile ? dies - r.between(0, 3 * millisecond) : dies / 2 + s.think;
      add(one, {s});
    }
  }
  p.faults = {{.what = fault_plan::kind::kill, .at = dies}};
}

// Each answer takes up to two fifths of the lease. That is in time for renewals that are sent in
// time, also for the first one, which is sent after a third of what the grant left.
void take_long_to_answer(random_source& r, plan& p) {
  begin_with(p, 1 + r.below(2), r.between(300 * millisecond, 480 * millisecond));
  const nanos lease = p.longest_lease();
  p.names = {{lock_kind::mutex}};
  if (p.processes.size() > 1) p.names.push_back({lock_kind::mutex});
  p.network.slow_reply = 1000;
  p.network.slowest_late = lease * 38 / 100;
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    add(p.processes[i], {{.name = i, .hold = r.between(20, 60) * lease}});
  }
}

// Connections that break for a moment just when a lock is handed over; leases are much longer than
// what a waiter is granted at first.
void break_when_it_is_handed_on(random_source& r, plan& p) {
  begin_with(p, 2, r.between(30, 90) * second);
  p.names = {{r.one_in(2) ? lock_kind::fair : lock_kind::mutex}};
  const nanos turn = r.between(1100 * millisecond, 3 * second);
  for (auto& one : p.processes) {
    one.local_time = 0;
    one.begins = &one == &p.processes[0] ? 0 : turn / 2;
    const step s{.hold = turn};
    add(one, std::vector<step>(6, s));
  }
  // The holder renews the first grant after a third of its length.
  const bool death = p.store == store_kind::sees_death;
  const bool untold = p.store == store_kind::untold || p.store == store_kind::mariadb;
  const nanos claim = death ? 2 * second : untold ? 2500 * millisecond : 500 * millisecond;
  for (nanos i = 1; i < 12; ++i) {
    const nanos handed_on = i * (turn + 600 * microsecond);
    p.faults.push_back({.what = fault_plan::kind::cut,
                        .at = handed_on + claim * 33 / 100 + r.between(-2, 3) * millisecond,
                        .length = millisecond,
                        .process = static_cast<std::size_t>(i % 2)});
  }
}

// A lock that is kept idle for long after it was used now and then.
void keep_it_idle(random_source& r, plan& p) {
  begin_with(p, 1 + r.below(2), r.between(second, 10 * second));
  if (p.store == store_kind::untold) p.store = store_kind::told;
  if (p.store == store_kind::mariadb) p.store = store_kind::postgres;
  p.names = {{lock_kind::mutex}};
  auto& one = p.processes[0];
  one.linger = r.between(2 * second, 8 * second);
  std::vector<step> steps;
  for (auto more = 2 + r.below(6); more > 0; --more) {
    steps.push_back({.think = r.between(0, one.linger * 9 / 10), .hold = r.between(0, second)});
  }
  add(one, std::move(steps));
  stay(one, 4 * one.linger + 10 * second);
  if (p.processes.size() > 1) p.processes.back().threads.push_back({{{.think = 100 * second}}});
}

// The server is frozen for longer than the leases last, and callers give up meanwhile; a call may
// last as long.
void hang_for_longer_than_a_lease(random_source& r, plan& p) {
  const nanos lease = r.between(3, 6) * second;
  begin_with(p, 1 + r.below(2), lease);
  p.names = {{r.one_in(2) ? lock_kind::fair : lock_kind::mutex}};
  const nanos at = r.between(100 * millisecond, 300 * millisecond);
  const nanos length = lease + r.between(second, 8 * second);
  p.command_timeout = length + 5 * second;
  p.faults = {{.what = fault_plan::kind::freeze, .at = at, .length = length}};
  for (auto& one : p.processes) {
    step s{.think = at + r.between(0, 20 * millisecond), .wait = r.between(0, second)};
    if (r.one_in(2)) s.how = step::style::callback;
    add(one, {s});
    stay(one, length + 3 * lease + 20 * second);
  }
}

// Waits that are given up just when the store is out of reach. Their session is cut off for a
// while, and has nothing else to do afterwards.
void give_up_while_cut_off(random_source& r, plan& p) {
  begin_with(p, 2, r.between(8, 20) * second);
  p.names = {{r.one_in(2) ? lock_kind::fair : lock_kind::mutex}};
  p.network.delivers_late = r.one_in(2);
  p.command_timeout =
      p.store == store_kind::mariadb ? second : r.between(200 * millisecond, second);
  const nanos gives_up = r.between(200 * millisecond, 500 * millisecond);
  const nanos cut = gives_up + r.between(-millisecond, millisecond);
  const nanos length = r.between(100 * millisecond, 3 * second);
  add(p.processes[0], {{.hold = r.one_in(2) ? cut + r.between(0, length) : cut + length + second}});
  auto& one = p.processes[1];
  one.begins = 10 * millisecond;
  step s{.think = 0, .wait = gives_up - 10 * millisecond};
  if (r.one_in(2)) s.how = step::style::callback;
  if (r.one_in(2)) s.wait = never, s.stop_after = gives_up - 10 * millisecond;
  add(one, {s});
  stay(one, 60 * second);
  p.faults = {{.what = r.one_in(3) ? fault_plan::kind::freeze : fault_plan::kind::cut,
               .at = cut,
               .length = length,
               .process = 1}};
}

// Threads and callbacks of a process that request the lock for each other when they release, while
// another process holds it for moments only. The lock may be theirs before they know which thread
// requested it.
void ask_for_the_next(random_source& r, plan& p) {
  begin_with(p, 2, 3 * second);
  p.names = {{lock_kind::mutex}};
  p.machine.preempt_permille = r.one_in(2) ? 0 : static_cast<unsigned>(r.below(200));
  const nanos moment = r.between(50 * microsecond, 2 * millisecond);
  for (auto& one : p.processes) {
    one.local_time = r.one_in(2) ? 0 : millisecond;
    one.max_bypass = r.one_in(2) ? 0 : 250;
    add_threads(r, one, 2 + r.below(3), [&] {
      step s{.think = r.one_in(2) ? 0 : r.between(0, moment), .hold = r.between(0, moment)};
      if (!r.one_in(3)) s.how = step::style::callback;
      return s;
    });
  }
}

// Threads that were admitted together wake late, when their lease is suspect or over.
void wake_when_it_is_in_doubt(random_source& r, plan& p) {
  begin_with(p, 2, r.between(300 * millisecond, 600 * millisecond));
  if (p.store == store_kind::untold) p.store = store_kind::told;
  const bool read = r.one_in(2);
  p.names = {{read ? lock_kind::shared : lock_kind::mutex}};
  p.machine.slow_permille = static_cast<unsigned>(300 + r.below(500));
  const nanos lease = p.longest_lease();
  const nanos until = r.between(100 * millisecond, 400 * millisecond);
  add(p.processes[0], {{.hold = until}});
  auto& one = p.processes[1];
  one.local_time = 10 * second;
  one.begins = 10 * millisecond;
  for (auto more = 3 + r.below(4); more > 0; --more) {
    step s{.think = r.between(0, 20 * millisecond), .shared = read};
    s.hold = r.between(0, lease);
    add(one, std::vector<step>(read ? 1 : 3, s));
  }
  stay(one, 30 * second);
  nanos at = until + r.between(0, lease / 2);
  for (auto more = read ? 1U : 3U; more > 0; --more) {
    p.faults.push_back({.what = fault_plan::kind::cut,
                        .at = at,
                        .length = r.between(lease / 3, read ? lease * 5 / 6 : 2 * lease),
                        .process = 1});
    at += 4 * lease;
  }
}

// Holders that extend their lease just after it has ended, and keep the lost lock.
void extend_what_has_ended(random_source& r, plan& p) {
  begin_with(p, 2, r.between(20, 40) * second);
  p.names = {{r.one_in(2) ? lock_kind::fair : lock_kind::mutex}};
  auto& one = p.processes[0];
  one.renew = false;
  step s{.hold = 2 * one.lease - r.between(0, one.lease / 50 - 10 * millisecond),
         .what = r.one_in(2) ? step::inside::extend : step::inside::extend_late};
  s.clings = 2 * one.lease;
  add(one, {s});
  p.processes[1].begins = second;
  add(p.processes[1], {{.hold = millisecond}});
}

// Readers that become writers and readers again, where calls fail half-way: threads continue late,
// and find the connection gone. Others read beside them.
void fail_half_way(random_source& r, plan& p) {
  begin_with(p, 2, 3 * second);
  p.names = {{lock_kind::shared}};
  p.session_timeout = 10 * second;
  p.machine.slow_permille = static_cast<unsigned>(200 + r.below(500));
  p.command_timeout = 300 * millisecond;
  add_threads(r, p.processes[0], 1, [&] {
    step s{.think = r.between(0, 50 * millisecond),
           .shared = !r.one_in(6),
           .hold = r.between(300 * millisecond, 1500 * millisecond)};
    s.what = s.shared ? step::inside::upgrade : step::inside::downgrade;
    return s;
  });
  add_threads(r, p.processes[1], 2, [&] {
    return step{.think = r.between(0, 100 * millisecond),
                .shared = true,
                .hold = r.between(0, 100 * millisecond)};
  });
  for (nanos at = r.between(0, 200 * millisecond); at < 8 * second;) {
    const nanos length = r.between(50, 300) * millisecond;
    p.faults.push_back({.what = fault_plan::kind::cut, .at = at, .length = length});
    at += length + r.between(50, 400) * millisecond;
  }
}

// ---- connections that hold locks

// Changes of the mode that succeed, and are answered as if they had been cancelled. Their sessions
// have other requests to send, so that the server hears from them.
void change_the_mode_in_vain(random_source& r, plan& p) {
  begin_with(p, 2, 6 * second);
  p.names = {{lock_kind::shared}, {lock_kind::mutex}, {lock_kind::mutex}};
  p.network.fail_changed = static_cast<unsigned>(200 + r.below(400));
  for (auto& one : p.processes) {
    add_threads(r, one, 1 + r.below(2), [&] {
      step s{.think = r.between(0, 50 * millisecond),
             .shared = r.one_in(2),
             .hold = r.between(0, 200 * millisecond)};
      s.what = s.shared ? step::inside::upgrade : step::inside::downgrade;
      if (r.one_in(2)) s.more = static_cast<unsigned>(1 + r.below(3));
      return s;
    });
    const std::size_t its_own = &one == &p.processes[0] ? 1 : 2;
    add(one, std::vector<step>(30, {.think = 2 * second, .name = its_own}));
  }
}

// ---- memcached, and others

// A lease is shortened just when the connection ends, and no new connection can be made for a
// while; others wait for the lease's end.
void shorten_while_cut_off(random_source& r, plan& p) {
  begin_with(p, 2, r.between(4, 8) * second);
  p.names = {{lock_kind::mutex}};
  auto& one = p.processes[0];
  const nanos then = r.between(100 * millisecond, second);
  one.renew = false;
  one.local_time = 0;
  step s{.hold = 2 * one.lease, .what = step::inside::shorten};
  s.soon = then;
  add(one, {s});
  auto& other = p.processes[1];
  other.begins = 50 * millisecond;
  other.renew = true;
  add(other, {{.hold = one.lease}});
  p.faults = {{.what = fault_plan::kind::cut,
               .at = then + r.between(500, 3500) * microsecond,
               .length = r.between(300 * millisecond, second)}};
}

// ---- barriers

// A participant arrives behind others, and dies; the last one comes much later.
void die_behind_others(random_source& r, plan& p) {
  begin_with(p, 3 + r.below(2), r.between(3, 8) * second);
  p.store = store_kind::sees_death;
  p.names = {
      {.kind = lock_kind::barrier, .capacity = static_cast<std::uint32_t>(p.processes.size())}};
  const nanos dies = r.between(500 * millisecond, 2 * second);
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    using meets = process_plan::meets;
    one.how = r.one_in(2) ? meets::with_a_limit : meets::by_calls;
    const bool last = i + 1 == p.processes.size();
    one.begins = last ? 0 : static_cast<nanos>(i) * dies / 8;
    step s{.think = last ? 10 * second : r.between(0, dies / 8), .wait = 20 * second};
    s.deed = r.one_in(2) ? 0 : 5;
    add(one, {s});
  }
  p.faults = {
      {.what = fault_plan::kind::kill, .at = dies, .process = 1 + r.below(p.processes.size() - 2)}};
}

// Operators clear barriers at which some participants wait and none has continued yet.
void clear_it_while_some_wait(random_source& r, plan& p) {
  const auto threads = static_cast<std::uint32_t>(2 + r.below(3));
  begin_with(p, threads, second);
  p.names = {{.kind = lock_kind::barrier, .capacity = threads, .at_once = r.one_in(3)}};
  for (auto& one : p.processes) {
    add_threads(r, one, 1, [&] {
      return step{.think = r.between(0, second), .wait = r.between(3, 10) * second};
    });
    for (auto& t : one.threads) t.steps.resize(3);
  }
  for (auto more = 1 + r.below(4); more > 0; --more) {
    p.faults.push_back({.what = fault_plan::kind::evict, .at = r.between(0, 3 * second)});
  }
}

// The connection ends while the answer to an arrival is on its way, and no new one can be made
// until the call gives up. The thread arrives again at once.
void arrive_when_it_breaks(random_source& r, plan& p) {
  begin_with(p, 2, r.between(40, 60) * second);
  p.store = r.one_in(2) ? store_kind::told : store_kind::untold;
  p.names = {{.kind = lock_kind::barrier, .capacity = 2}};
  p.command_timeout = second;
  const nanos first = r.between(100 * millisecond, second);
  for (auto& one : p.processes) {
    one.how = process_plan::meets::by_calls;
    const step meets{.think = first, .wait = 60 * second};
    step again = meets;
    again.think = millisecond;
    add(one, {meets, meets, again, again});
  }
  // The first phase ends soon after `first`.
  p.faults = {{.what = fault_plan::kind::cut,
               .at = 2 * first + r.between(0, 1500 * microsecond),
               .length = r.between(8, 14) * second}};
}

// Arrivals whose answer is lost: the thread gives up and arrives again long before the store would
// forget the first arrival.
void arrive_and_not_be_heard(random_source& r, plan& p) {
  if (r.one_in(2)) return arrive_when_it_breaks(r, p);
  begin_with(p, 2 + r.below(2), r.between(4, 10) * second);
  p.store = r.one_in(2) ? store_kind::told : store_kind::untold;
  p.names = {{.kind = lock_kind::barrier,
              .capacity = static_cast<std::uint32_t>(p.processes.size()),
              .at_once = r.one_in(3)}};
  p.network.lose_reply = static_cast<unsigned>(100 + r.below(250));
  for (auto& one : p.processes) {
    using meets = process_plan::meets;
    one.how = r.one_in(4) ? meets::by_calls : meets::with_a_limit;
    add_threads(r, one, 1, [&] {
      step s{.think = r.between(0, 200 * millisecond), .wait = r.between(50, 500) * millisecond};
      s.deed = static_cast<unsigned>(r.below(7));
      return s;
    });
  }
}

// Arrivals that cannot be sent: a process that is cut off for a moment comes again much later, and
// its lease lasts until then.
void arrive_while_cut_off(random_source& r, plan& p) {
  begin_with(p, 2, r.between(2, 4) * second);
  p.store = r.one_in(2) ? store_kind::told : store_kind::untold;
  const nanos lease = p.longest_lease();
  p.names = {{.kind = lock_kind::barrier, .capacity = 2}};
  p.command_timeout = 300 * millisecond;
  const nanos again = r.between(2 * lease, 4 * lease);
  const nanos first = r.between(100 * millisecond, second);
  for (auto& one : p.processes) {
    const bool fails = &one == &p.processes.front();
    one.how = process_plan::meets::with_a_limit;
    const step meets{.think = first, .wait = 30 * second};
    step cut = meets, late = meets;
    cut.think = second, cut.wait = r.between(20 * millisecond, 100 * millisecond);
    late.think = again;
    add(one, fails ? std::vector<step>{meets, cut, late} : std::vector<step>{meets, late});
    if (!fails) one.threads[0].steps[1].think = again + second;
  }
  // The first phase ends a moment after `first`.
  p.faults = {{.what = fault_plan::kind::cut,
               .at = first + second - r.between(0, 30 * millisecond),
               .length = r.between(150, 400) * millisecond}};
}

// ---- several stores

// Votes that are cancelled while too few nodes answer.
void stop_while_nodes_are_away(random_source& r, plan& p) {
  begin_with(p, 1 + r.below(2), 2 * second);
  static constexpr store_kind kinds[] = {store_kind::told, store_kind::untold};
  p.store = kinds[r.below(2)];
  p.others = {kinds[r.below(2)], kinds[r.below(2)]};
  p.names = {{lock_kind::redlock}};
  for (auto& one : p.processes) {
    add_threads(r, one, 1 + r.below(2), [&] {
      step s{.think = r.between(0, 300 * millisecond), .hold = r.between(0, 10 * millisecond)};
      s.stop_after = r.between(0, 250 * millisecond);
      s.deed = static_cast<unsigned>(r.below(2));
      return s;
    });
  }
  nanos at = r.between(0, 500 * millisecond);
  for (auto more = 2 + r.below(4); more > 0; --more) {
    const auto works = r.below(3);
    const nanos length = r.between(300 * millisecond, second);
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == works) continue;
      p.faults.push_back(
          {.what = fault_plan::kind::freeze, .at = at, .length = length, .store = i});
    }
    at += length + r.between(100 * millisecond, second);
  }
}

// ---- condition variables

// Waits that are given up while their first request is slow, and later requests overtake it.
// Another waiter of the process waits on, and is woken long after the trouble.
void wait_beside_a_waiter_that_left(random_source& r, plan& p) {
  begin_with(p, 2, 300 * millisecond);
  p.store = store_kind::told;
  p.names = {{lock_kind::mutex}, {lock_kind::condition}};
  p.network.unordered = p.network.delivers_late = true;
  p.network.slow_request = static_cast<unsigned>(200 + r.below(500));
  p.network.slowest_late = r.between(200 * millisecond, 2 * second);
  p.command_timeout = r.between(200 * millisecond, 3 * second);
  const step waits{.name = 1, .how = step::style::callback, .deed = 4};
  auto& one = p.processes[0];
  for (auto more = 1 + r.below(3); more > 0; --more) {
    add_threads(r, one, 1, [&] {
      step s = waits;
      s.think = r.between(0, 200 * millisecond);
      s.wait = r.between(millisecond, 500 * millisecond);
      return s;
    });
    one.threads.back().steps.resize(3);
  }
  step stays = waits;
  stays.think = r.between(second, 5 * second);
  stays.wait = 90 * second;
  add(one, {stays});
  step puts = waits;
  puts.think = r.between(30, 40) * second;
  puts.deed = static_cast<unsigned>(r.below(2));
  add(p.processes[1], {puts});
}

// ---- tokens

// The server's clock is set back between taking tokens and giving them back.
void give_back_at_an_earlier_time(random_source& r, plan& p) {
  begin_with(p, 1, second);
  p.store = r.one_in(2) ? store_kind::told : p.store;
  p.names = {{.kind = lock_kind::limiter,
              .capacity = 1,
              .burst = static_cast<std::uint32_t>(8 + r.below(20)),
              .per = 1000 * second}};
  const auto many = 2 + r.below(3);
  for (std::uint64_t i = 0; i < many; ++i) {
    step s{.think = r.between(0, 50 * millisecond),
           .weight = static_cast<std::uint32_t>(2 + r.below(4)),
           .wait = 0,
           .hold = r.between(250, 750) * 4 * millisecond};
    s.deed = 0;
    add(p.processes[0], {s, {.think = second, .wait = 0, .deed = 1}});
  }
  p.faults = {{.what = fault_plan::kind::clock_back,
               .at = r.between(200 * millisecond, second),
               .length = r.between(1, 10) * 1000 * second}};
  p.network.slowest_late = 0;
}

// Permits with tokens whose answer comes after the permit has ended.
void admit_too_late(random_source& r, plan& p) {
  begin_with(p, 1 + r.below(3), 300 * millisecond);
  give_permits_and_tokens(r, p);
  p.network.slowest_late = r.between(400 * millisecond, 900 * millisecond);
  for (auto& one : p.processes) {
    add_threads(r, one, 1 + r.below(2), [&] {
      step s{.think = r.between(0, 300 * millisecond), .name = 2};
      s.weight = static_cast<std::uint32_t>(1 + r.below(3));
      s.wait = r.between(2, 6) * second;
      s.deed = static_cast<unsigned>(4 + r.below(4));
      if (r.one_in(2)) s.how = step::style::callback;
      return s;
    });
    for (auto& t : one.threads) t.steps.resize(3);
  }
}

bool arrange_locks_anew(random_source& r, plan& p) {
  if (!p.has_only_locks()) return false;
  if (p.store == store_kind::contenders) {
    return (r.one_in(2) ? wait_on_after_trouble(r, p) : fail_half_way(r, p)), true;
  }
  switch (r.below(11)) {
    case 0:
      return die_behind_a_long_lease(r, p), true;
    case 1:
      return wait_on_after_trouble(r, p), true;
    case 2:
      if (p.about == theme::rows) return lose_one_of_many_connections(r, p), true;
      if (p.about == theme::locks) return die_while_callbacks_wait(r, p), true;
      return die_behind_a_long_lease(r, p), true;
    case 3:
      // A change of a row takes two requests at least.
      if (p.about == theme::rows) return lose_one_of_many_connections(r, p), true;
      return take_long_to_answer(r, p), true;
    case 4:
      return break_when_it_is_handed_on(r, p), true;
    case 5:
      return keep_it_idle(r, p), true;
    case 6:
      return hang_for_longer_than_a_lease(r, p), true;
    case 7:
      return give_up_while_cut_off(r, p), true;
    case 8:
      return wake_when_it_is_in_doubt(r, p), true;
    case 9:
      return ask_for_the_next(r, p), true;
    default:
      return extend_what_has_ended(r, p), true;
  }
}

void arrange_barriers_anew(random_source& r, plan& p) {
  switch (r.below(4)) {
    case 0:
      return die_behind_others(r, p);
    case 1:
      return clear_it_while_some_wait(r, p);
    case 2:
      return arrive_and_not_be_heard(r, p);
    default:
      return arrive_while_cut_off(r, p);
  }
}

}  // namespace

bool arrange_more_trouble(plan& p) {
  random_source r(random_source(p.seed + 67'000'000'000).next());
  if (r.one_in(2) || p.processes.empty()) return false;
  switch (p.about) {
    case theme::locks:
    case theme::scripts:
    case theme::rows:
      return arrange_locks_anew(r, p);
    case theme::meetings:
    case theme::async:
      return p.names.back().kind == lock_kind::condition &&
             (wait_beside_a_waiter_that_left(r, p), true);
    case theme::sessions:
      return change_the_mode_in_vain(r, p), true;
    case theme::items:
      return shorten_while_cut_off(r, p), true;
    case theme::stores:
      return stop_while_nodes_are_away(r, p), true;
    case theme::barriers:
      return arrange_barriers_anew(r, p), true;
    case theme::rates:
      return (r.one_in(2) ? give_back_at_an_earlier_time(r, p) : admit_too_late(r, p)), true;
    default:
      return false;
  }
}

}  // namespace simulation
