#include <algorithm>

#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// Processes that use one name with different terms, and calls that use two sessions or two stores.
namespace simulation {

namespace {

using goes_wrong = fault_plan::kind;

// Waiters of a condition, some of which use a mutex of another session, which ends while they wait.
// There is one notification for each token.
void leave_while_waiting(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), 3 * second);
  tell_at_once(p);
  p.names = {{lock_kind::mutex}, {lock_kind::condition}};
  for (auto& one : p.processes) {
    step waits{.think = r.between(0, 300 * millisecond), .name = 1, .wait = 30 * second};
    waits.hold = r.between(0, 500 * millisecond);
    waits.otherwise = true;
    if (!r.one_in(3)) give(one, {waits, waits});
    step takes{.think = r.between(0, 600 * millisecond), .name = 1, .wait = 30 * second};
    takes.deed = static_cast<unsigned>(4 + r.below(4));
    if (p.about == theme::async && r.one_in(2)) takes.how = step::style::callback;
    give(one, {takes, takes});
  }
  for (auto more = 1 + r.below(2); more > 0; --more) {
    step puts{.think = r.between(300 * millisecond, second), .name = 1};
    puts.deed = static_cast<unsigned>(r.below(2));
    if (p.about == theme::async && r.one_in(2)) puts.how = step::style::callback;
    give(p.processes.back(), std::vector<step>(4, puts));
  }
}

// Many leaders, one after the other, while an observer rests that began before all of them.
void lead_while_an_observer_rests(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), 3 * second);
  tell_at_once(p);
  if (p.store == store_kind::contenders) p.store = store_kind::told;
  p.names = {{lock_kind::election}};
  for (auto& one : p.processes) {
    step observes{.wait = r.between(2, 4) * second, .hold = r.between(second, 5 * second)};
    observes.deed = 7;
    if (r.one_in(2)) observes.how = step::style::callback;
    give(one, {observes});
    one.begins = r.between(0, 20 * millisecond);
    for (auto more = 1 + r.below(2); more > 0; --more) {
      step leads{.think = r.between(20, 200) * millisecond, .hold = r.between(0, 20 * millisecond)};
      std::vector<step> all(6 + r.below(10), leads);
      all.front().think = r.between(300, 500) * millisecond;
      give(one, std::move(all));
    }
  }
}

// Processes keep one latch for different times, and some of them do not use it for a while.
void keep_a_latch_for_different_times(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), 3 * second);
  p.names = {{lock_kind::latch, static_cast<std::uint32_t>(8 + r.below(6))}};
  const auto use = [&](nanos from, nanos until) {
    step s{.think = r.between(from, until), .wait = second};
    s.deed = static_cast<unsigned>(r.below(2) * (3 + r.below(3)));
    return s;
  };
  give(p.processes[0], {use(0, 20 * millisecond), use(5 * second, 9 * second)});
  p.processes[0].threads[0].steps[0].deed = 0;
  for (std::size_t i = 1; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    one.keep = second;
    one.begins = 200 * millisecond;
    std::vector<step> all;
    for (auto more = 2 + r.below(3); more > 0; --more) {
      all.push_back(use(0, r.one_in(2) ? second : 5 * second));
    }
    give(one, std::move(all));
  }
}

// Some processes name another number of permits.
void name_another_number(random_source& r, plan& p, lock_kind kind) {
  set_up(p, 2 + r.below(2), r.between(3, 6) * second);
  p.names = {{kind, static_cast<std::uint32_t>(1 + r.below(3))}};
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    if (i > 0 && r.one_in(2)) one.more_permits = static_cast<std::uint32_t>(1 + r.below(3));
    add_threads(r, one, 1 + r.below(2), [&] {
      step s{.think = r.between(0, 600 * millisecond), .how = step::style::standard};
      s.hold = r.between(100 * millisecond, second);
      if (r.one_in(3)) s.wait = r.between(0, second);
      return s;
    });
    for (auto& t : one.threads) t.steps.resize(5, t.steps.front());
  }
  p.processes.back().more_permits = static_cast<std::uint32_t>(1 + r.below(3));
}

// Tokens are taken ahead for one key, and used for others.
void take_ahead_for_several_keys(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), 3 * second);
  p.names = {{.kind = lock_kind::limiter,
              .capacity = 2,
              .burst = static_cast<std::uint32_t>(12 + r.below(12)),
              .per = r.between(100, 1000) * second,
              .keys = static_cast<std::uint32_t>(2 + r.below(2)),
              .local = static_cast<std::uint32_t>(3 + r.below(3))}};
  for (auto& one : p.processes) {
    for (auto more = 1 + r.below(2); more > 0; --more) {
      std::vector<step> all;
      for (auto steps = 10 + r.below(20); steps > 0; --steps) {
        step s{.think = r.between(0, r.one_in(3) ? 150 * millisecond : 20 * millisecond)};
        s.hold = r.one_in(5) ? 0 : 1;  // the key: one of them is used much more than the others
        s.weight = static_cast<std::uint32_t>(1 + r.below(3));
        s.deed = 3;
        all.push_back(s);
      }
      give(one, std::move(all));
    }
  }
}

// Callers wait for tokens hardly longer than those need, and answers are late.
void wait_until_tokens_come(random_source& r, plan& p) {
  set_up(p, 1, 3 * second);
  p.names = {{.kind = lock_kind::limiter,
              .capacity = 1,
              .burst = static_cast<std::uint32_t>(1 + r.below(3)),
              .per = r.between(100, 1000) * millisecond}};
  if (!r.one_in(4)) {
    p.network.slow_reply = static_cast<unsigned>(200 + r.below(700));
    p.network.slowest_late = r.between(5, 60) * millisecond;
  }
  std::vector<step> all;
  for (auto more = 6 + r.below(10); more > 0; --more) {
    step s{.think = r.between(0, 100 * millisecond), .wait = second, .deed = 6, .looks = true};
    s.soon = r.one_in(2) ? 0 : r.between(0, 20 * millisecond);
    if (!r.one_in(3)) s.how = step::style::callback;
    all.push_back(s);
  }
  give(p.processes[0], std::move(all));
}

// Callers of an admission lack tokens first. When these come, others have the permits for long.
void lack_tokens_and_then_permits(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), 3 * second);
  give_permits_and_tokens(r, p);
  p.network.slow_reply = 0;
  p.names[0].capacity = 1;
  p.names[1].burst = 1;
  p.names[1].per = r.between(500, 3000) * millisecond;
  for (auto& one : p.processes) {
    give(one, {{.name = 1, .weight = 1, .deed = 3}});
    for (auto more = 1 + r.below(2); more > 0; --more) {
      step enters{.think = r.between(20, 400) * millisecond, .name = 2, .weight = 1, .deed = 5};
      enters.wait = r.between(p.names[1].per, 3 * p.names[1].per);
      enters.hold = r.between(0, 300 * millisecond);
      if (r.one_in(2)) enters.how = step::style::callback;
      give(one, std::vector<step>(3, enters));
    }
  }
  step keeps{.think = r.between(300, 2000) * millisecond, .hold = r.between(1, 4) * second};
  give(p.processes.back(), std::vector<step>(3, keeps));
}

// Locks of two sessions are taken together, without a thread, while another process has the second
// one. The waits are stopped when the first one has just been granted.
void stop_between_two_stores(random_source& r, plan& p) {
  set_up(p, 2, r.between(10, 20) * second);
  p.store = p.others[0] = store_kind::told;
  give(p.processes[1], {{.name = 1, .hold = 8 * second}});
  p.processes[0].begins = 30 * millisecond;
  p.network.slow_reply = static_cast<unsigned>(200 + r.below(400));
  p.network.slowest_late = r.between(5, 20) * millisecond;
  for (auto more = 1 + r.below(2); more > 0; --more) {
    std::vector<step> all;
    for (auto steps = 1 + r.below(4); steps > 0; --steps) {
      step s{.think = r.between(0, 50 * millisecond), .how = step::style::callback};
      s.several = true;
      s.stop_after = r.between(0, 30 * millisecond);
      s.more = 1;
      all.push_back(s);
    }
    give(p.processes[0], std::move(all));
  }
  remain(p.processes[0], 12 * second);
}

// Two locks are taken together, in the forms of the standard, while the store of the second one is
// away.
void lock_both_beside_an_outage(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(1, 4) * second);
  p.store = p.others[0] = store_kind::told;
  for (auto& one : p.processes) {
    step s{.think = r.between(0, 2 * second), .name = 2, .how = step::style::standard};
    s.wait = r.one_in(3) ? never : r.between(0, 3 * second);
    s.hold = r.between(0, 500 * millisecond);
    give(one, std::vector<step>(3, s));
    remain(one, 30 * second);
  }
  static constexpr goes_wrong kinds[] = {goes_wrong::restart, goes_wrong::cut, goes_wrong::freeze};
  p.faults = {{.what = kinds[r.below(3)],
               .at = r.between(0, 2 * second),
               .length = r.between(2, 16) * second,
               .process = r.below(p.processes.size()),
               .store = r.one_in(4) ? 0U : 1U}};
}

// Some nodes fail once. Long after that, calls have little time, answers are late, and the lock is
// held.
void try_briefly_after_an_outage(random_source& r, plan& p) {
  set_up(p, 2, second);
  make_votes(p);
  p.network.slow_reply = static_cast<unsigned>(500 + r.below(450));
  p.network.slowest_late = r.between(120, 170) * millisecond;
  const nanos at = r.between(50 * millisecond, 500 * millisecond);
  const nanos length = r.between(300 * millisecond, 2 * second);
  const auto well = r.below(3);
  for (std::size_t i = 0; i < 3; ++i) {
    if (i == well) continue;
    p.faults.push_back({.what = goes_wrong::restart, .at = at, .length = length, .store = i});
  }
  give(p.processes[1], {{.think = 9 * second, .hold = 20 * second}});
  std::vector<step> all{{.think = at + r.between(0, length / 2), .wait = second}};
  for (auto more = 10 + r.below(15); more > 0; --more) {
    step s{.think = r.between(0, 300 * millisecond), .wait = r.between(1, 60) * millisecond};
    if (r.one_in(3)) s.deed = 1;
    all.push_back(s);
  }
  all[1].think = 12 * second;
  give(p.processes[0], std::move(all));
}

// Many short sessions with long leases, on a network that loses some messages.
void close_when_messages_are_lost(random_source& r, plan& p) {
  set_up(p, 4 + r.below(5), r.between(20, 40) * second);
  tell_at_once_by_records(p);
  p.network.lose_request = p.network.lose_reply = static_cast<unsigned>(50 + r.below(250));
  p.command_timeout = r.between(150, 300) * millisecond;
  p.names.assign(1 + r.below(2), name_plan{some_mutex(r)});
  for (auto& one : p.processes) {
    one.begins = r.between(0, 5 * second);
    one.unconfirmed = r.one_in(2);
    one.local_time = 0;
    step s{.think = r.between(0, 50 * millisecond), .name = r.below(p.names.size())};
    s.hold = r.between(0, 100 * millisecond);
    if (r.one_in(2)) s.back = step::end::destroy;
    if (r.one_in(3)) s.wait = r.between(0, 300 * millisecond);
    give(one, {s});
  }
}

// The server's clock goes back. A later holder dies, and nobody asks until its lease has ended.
void die_behind_a_clock(random_source& r, plan& p) {
  set_up(p, 4, r.between(500 * millisecond, 2 * second));
  tell_at_once(p);
  p.names.assign(1 + r.below(2), name_plan{r.one_in(3) ? lock_kind::shared : some_mutex(r)});
  p.wall_only_grows = false;
  const nanos lease = p.longest_lease();
  const nanos back = second + r.between(0, second);
  p.faults = {{.what = goes_wrong::clock_back, .at = back, .length = r.between(20, 90) * second}};
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    const auto name = r.below(p.names.size());
    one.local_time = 0;
    if (i == 0) {
      give(one, {{.name = name, .hold = r.between(0, 500 * millisecond)}});
    } else if (i == 1) {
      const nanos from = back + r.between(100, 1000) * millisecond;
      one.begins = from;
      give(one, {{.name = name, .hold = 20 * second}});
      p.faults.push_back(
          {.what = goes_wrong::kill, .at = from + r.between(50, 3000) * millisecond, .process = i});
    } else {
      one.begins = p.faults.back().at + lease + r.between(200 * millisecond, 8 * second);
      give(one, {{.name = name, .hold = r.between(0, 200 * millisecond)}});
    }
  }
}

// Writers become readers just when their process is cut off, for longer than it keeps trying.
// Others read meanwhile.
void weaken_into_silence(random_source& r, plan& p) {
  set_up(p, 2, r.between(30, 50) * second);
  tell_at_once(p);
  p.names.assign(2 + r.below(2), name_plan{lock_kind::shared});
  const nanos change = r.between(second, 2 * second);
  const nanos late = r.between(50, 400) * millisecond;
  p.network.slow_reply = static_cast<unsigned>(500 + r.below(400));
  p.network.slowest_late = late;
  p.faults = {{.what = r.one_in(4) ? goes_wrong::restart : goes_wrong::cut,
               .at = change + r.between(0, late),
               .length = r.between(10500, 14000) * millisecond}};
  for (std::size_t i = 0; i < p.names.size(); ++i) {
    step weakens{.name = i, .hold = 6 * second, .what = step::inside::downgrade};
    weakens.soon = change;
    if (r.one_in(3)) weakens.how = step::style::callback, weakens.more = 1;
    give(p.processes[0], {weakens});
    step reads{.think = r.between(0, second), .name = i, .shared = true};
    reads.hold = r.between(3, 6) * second;
    give(p.processes[1], std::vector<step>(4, reads));
  }
}

// All connections of a process break again and again. Long after that, its threads use the store
// without any trouble.
void replace_broken_connections(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(second, 2 * second));
  p.names.assign(3 + r.below(3), name_plan{lock_kind::mutex});
  nanos at = 0;
  for (auto more = 15 + r.below(15); more > 0; --more) {
    at += r.between(50, 150) * millisecond;
    p.faults.push_back(
        {.what = goes_wrong::restart, .at = at, .length = r.between(1, 5) * millisecond});
  }
  for (auto& one : p.processes) {
    one.local_time = 0;
    for (std::size_t i = 0; i < p.names.size(); ++i) {
      std::vector<step> all;
      for (auto more = 60; more > 0; --more) {
        all.push_back({.think = r.between(0, 80 * millisecond), .name = i});
        all.back().hold = r.between(0, 10 * millisecond);
      }
      for (auto more = 4; more > 0; --more) {
        all.push_back({.think = more == 4 ? at + 14 * second : 0, .name = i});
      }
      give(one, std::move(all));
    }
  }
}

// More threads than connections, each with a lock of its own. The server refuses the changes of one
// of the rows.
void refuse_the_row_of_one(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(3, 6) * second);
  p.names.assign(8 + r.below(5), name_plan{lock_kind::mutex});
  const nanos at = r.between(50, 300) * millisecond;
  p.faults = {{.what = goes_wrong::refuse_row,
               .at = at,
               .length = r.between(500 * millisecond, 3 * second),
               .name = r.below(p.names.size())}};
  for (auto& one : p.processes) {
    one.local_time = 0;
    for (std::size_t i = 0; i < p.names.size(); ++i) {
      std::vector<step> all;
      for (auto more = 40; more > 0; --more) {
        all.push_back({.think = r.one_in(2) ? 0 : r.between(0, 5 * millisecond), .name = i});
        all.back().hold = r.one_in(2) ? 0 : r.between(0, millisecond);
        if (i == p.faults[0].name) all.back().think = r.between(0, 20 * millisecond);
      }
      give(one, std::move(all));
    }
  }
}

// Answers are lost, so that the driver asks for a second entry of a reader twice. Other readers
// are in the way of its upgrade.
void upgrade_twice(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), r.between(4, 8) * second);
  p.names = {{lock_kind::shared}};
  p.network.unordered = p.network.delivers_late = true;
  p.network.lose_reply = static_cast<unsigned>(50 + r.below(200));
  p.command_timeout = r.between(150, 400) * millisecond;
  for (auto& one : p.processes) {
    step s{.think = r.between(0, 300 * millisecond), .shared = true};
    s.what = step::inside::upgrade;
    s.hold = r.between(second, 3 * second);
    for (auto more = 1 + r.below(2); more > 0; --more) give(one, std::vector<step>(3, s));
  }
}

// Requests for queue entries are late, and are repeated. The first one arrives when its owner has
// released the lock.
void enter_once_more(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), r.between(300, 1000) * millisecond);
  p.names = {{some_mutex(r)}};
  p.network.unordered = p.network.delivers_late = true;
  p.network.slow_request = static_cast<unsigned>(100 + r.below(250));
  p.network.slowest_late = r.between(300, 1200) * millisecond;
  p.command_timeout = r.between(150, 250) * millisecond;
  for (auto& one : p.processes) {
    one.local_time = 0;
    step s{.think = r.between(0, 500 * millisecond), .hold = r.between(0, 20 * millisecond)};
    give(one, std::vector<step>(3, s));
    remain(one, 40 * second);
  }
  const step last{.think = 5 * second};
  give(p.processes[0], {last});
}

#ifdef HOLDFAST_WITH_REDIS
constexpr auto shared_with_redisson = store_kind::redisson;
#else
constexpr auto shared_with_redisson = store_kind::untold;
#endif

// Readers with leases of different lengths leave one after the other, while writers wait.
void read_for_different_times(random_source& r, plan& p) {
  set_up(p, 3 + r.below(2), second);
  p.store = shared_with_redisson;
  p.names = {{lock_kind::shared}};
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    one.lease = r.one_in(2) ? r.between(500, 1500) * millisecond : r.between(5, 25) * second;
    one.renew = !r.one_in(3);
    const bool writes = i + 1 == p.processes.size() && r.one_in(2);
    add_threads(r, one, 1 + r.below(2), [&] {
      step s{.think = r.between(0, 800 * millisecond), .shared = !writes};
      s.hold = writes ? r.between(0, 300 * millisecond) : r.between(200 * millisecond, 3 * second);
      if (r.one_in(4)) s.what = s.shared ? step::inside::upgrade : step::inside::downgrade;
      if (r.one_in(4)) s.wait = r.between(0, 2 * second);
      return s;
    });
    for (auto& t : one.threads) t.steps.resize(5, t.steps.front());
  }
}

// A latch is in use for longer than each use keeps it.
void use_a_latch_for_longer_than_it_is_kept(random_source& r, plan& p) {
  set_up(p, 2, 3 * second);
  if (!r.one_in(3)) p.store = shared_with_redisson;
  p.names = {{lock_kind::latch, static_cast<std::uint32_t>(20 + r.below(10))}};
  for (auto& one : p.processes) one.keep = second;
  std::vector<step> all;
  for (auto more = 8 + r.below(6); more > 0; --more) {
    const step counts{.think = r.between(50, 400) * millisecond};
    step looks = counts;
    looks.deed = static_cast<unsigned>(3 + r.below(2));
    all.push_back(counts);
    all.push_back(looks);
  }
  all.front().think = 0;
  give(p.processes[0], std::move(all));
  p.processes[1].begins = 100 * millisecond;
  step waits{.think = r.between(0, 300 * millisecond), .deed = 5};
  waits.wait = r.between(500, 2500) * millisecond;
  give(p.processes[1], {waits});
}

// Permits that any process may extend, in the layout of another program.
bool share_permits(plan& p) {
  if (p.names.size() > 1) return false;
  make_punctual(p);
  p.store = shared_with_redisson;
  for (auto& one : p.processes) one.linger = 0;
  p.for_each_step([](step& s, const process_plan&) {
    if (s.deed == 7) s.deed = 3;
  });
  return true;
}

bool meets_unlike(random_source& r, plan& p) {
  switch (p.names.back().kind) {
    case lock_kind::condition:
      return leave_while_waiting(r, p), true;
    case lock_kind::election:
      return lead_while_an_observer_rests(r, p), true;
    case lock_kind::latch:
      if (r.one_in(2)) return use_a_latch_for_longer_than_it_is_kept(r, p), true;
      return keep_a_latch_for_different_times(r, p), true;
    case lock_kind::admission:
      return lack_tokens_and_then_permits(r, p), true;
    default:
      return false;
  }
}

void locks_unlike(random_source& r, plan& p) {
  if (p.store == store_kind::contenders) {
    return r.one_in(2) ? upgrade_twice(r, p) : enter_once_more(r, p);
  }
  switch (r.below(p.about == theme::locks ? 2 : p.about == theme::rows ? 3 : 4)) {
    case 0:
      return weaken_into_silence(r, p);
    case 1:
      return p.about == theme::rows ? replace_broken_connections(r, p)
                                    : close_when_messages_are_lost(r, p);
    case 2:
      return p.about == theme::rows ? refuse_the_row_of_one(r, p) : die_behind_a_clock(r, p);
    default:
      return read_for_different_times(r, p);
  }
}

bool spans_unlike(random_source& r, plan& p) {
  if (p.names.front().kind == lock_kind::redlock) return try_briefly_after_an_outage(r, p), true;
  return (r.one_in(2) ? stop_between_two_stores(r, p) : lock_both_beside_an_outage(r, p)), true;
}

}  // namespace

bool arrange_unlike(plan& p) {
  random_source r(random_source(p.seed + 107'000'000'000).next());
  if (p.processes.empty()) return false;
  switch (p.about) {
    case theme::meetings:
    case theme::async:
      return meets_unlike(r, p);
    case theme::rates:
      if (p.names.back().kind == lock_kind::admission) return meets_unlike(r, p);
      return (r.one_in(2) ? take_ahead_for_several_keys(r, p) : wait_until_tokens_come(r, p)), true;
    case theme::stores:
      return spans_unlike(r, p);
    case theme::permits:
      return share_permits(p);
    case theme::slots:
    case theme::items:
      return name_another_number(r, p, lock_kind::counting), true;
    case theme::locks:
    case theme::scripts:
    case theme::rows:
      if (p.has_only_locks()) return locks_unlike(r, p), true;
      return p.about == theme::scripts && meets_unlike(r, p);
    default:
      return false;
  }
}

}  // namespace simulation
