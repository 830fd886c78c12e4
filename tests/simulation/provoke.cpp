#include <algorithm>

#include "simulation/arranging.hpp"

namespace simulation {

// Removes all faults, and no thread is late.
void make_punctual(plan& p) {
  const bool unordered = p.network.unordered;
  p.faults.clear();
  p.network = {};
  p.network.unordered = unordered;
  p.machine.slow_permille = p.machine.stall_per_100k = 0;
  p.drift_per_mille = 0;
  p.command_timeout = 2 * second;
}

namespace {

bool has(const plan& p, lock_kind kind) {
  return std::any_of(p.names.begin(), p.names.end(), [&](const auto& n) { return n.kind == kind; });
}

// Holders that use their lock to its end, for which others wait; answers come late. A holder that
// counts from the answer, or trusts an answer that is too old, holds the lock for longer than the
// store does.
void hold_to_the_end(random_source& r, plan& p) {
  make_punctual(p);
  p.machine.preempt_permille = p.machine.spurious_permille = 0;
  const nanos lease = p.longest_lease();
  p.network.slow_reply = static_cast<unsigned>(200 + r.below(500));
  p.network.slowest_late = r.between(lease / 4, lease * 9 / 10);
  if (p.processes.size() < 2) p.processes.push_back(p.processes.front());
  for (auto& one : p.processes) {
    one.linger = 0;
    one.max_hold = never;
    one.renew = p.about == theme::stores || r.one_in(3);
    one.threads.resize(std::min<std::size_t>(one.threads.size(), 2));
  }
  p.for_each_step([&](step& s, const process_plan& one) {
    s.think = r.between(0, one.lease / 4);
    // A renewed or extended lease must be used to its end, too.
    s.hold = r.between(one.lease / 2, one.lease * (one.renew ? 11 : 7) / 4);
    s.wait = s.stop_after = never;
    s.forces = false;
    s.more = 0;
    if (!r.one_in(3) && p.names[s.name].kind != lock_kind::recursive)
      s.what = step::inside::nothing;
  });
  const auto renews = std::find_if(p.processes.begin(), p.processes.end(),
                                   [](const auto& one) { return one.renew; });
  if (renews == p.processes.end() && r.one_in(2)) return;
  const auto at_random = r.below(p.processes.size());
  fault_plan f{.what = fault_plan::kind::cut,
               .at = r.between(lease / 3, 4 * lease),
               .length = r.between(lease, 2 * lease),
               .process = renews == p.processes.end()
                              ? at_random
                              : static_cast<std::size_t>(renews - p.processes.begin())};
  for (f.store = 0; f.store <= p.others.size(); ++f.store) p.faults.push_back(f);
}

// Holders query whether they are shown.
void look_at_them(random_source& r, plan& p) {
  make_punctual(p);
  p.for_each_step([&](step& s, const process_plan&) {
    s.looks = r.one_in(2);
    s.forces = false;
  });
}

// Writers before readers, or readers before writers; candidates with priorities.
void prefer(random_source& r, plan& p) {
  make_punctual(p);
  for (auto& n : p.names) {
    if (n.kind == lock_kind::shared || n.kind == lock_kind::election) {
      n.prefers = static_cast<unsigned>(1 + r.below(2));
    }
  }
  for (auto& one : p.processes) {
    one.priority = static_cast<int>(r.below(3));
    one.max_hold = never;
    one.renew = true;
  }
  p.for_each_step([&](step& s, const process_plan& one) {
    s.forces = false;
    s.think = r.between(0, 50 * millisecond);
    s.hold = r.between(50 * millisecond, one.lease / 2);
    if (r.one_in(2)) s.wait = s.stop_after = never;
    if (p.names[s.name].kind == lock_kind::election && s.deed == 7) s.deed = 0;
  });
}

// Leases that are long beside all faults: the end of a lease helps nobody.
void rely_on_no_end(random_source& r, plan& p) {
  make_punctual(p);
  const bool is_away_for_long = r.one_in(3);
  for (auto& one : p.processes) {
    one.lease = r.between(15, 40) * second;
    one.linger = 0;
    one.max_hold = never;
    one.renew = true;
  }
  p.for_each_step([&](step& s, const process_plan&) {
    s.think = r.between(0, second);
    s.hold = r.between(0, r.one_in(3) ? 2 * second : 50 * millisecond);
    s.wait = r.one_in(3)   ? never
             : r.one_in(3) ? 0
                           : r.between(0, (is_away_for_long ? 40 : 5) * second);
    s.forces = false;
  });
  if (r.one_in(2)) {
    p.command_timeout =
        p.store == store_kind::mariadb ? second : r.between(200 * millisecond, second);
    p.network.lose_request = static_cast<unsigned>(r.below(100));
    p.network.lose_reply = static_cast<unsigned>(20 + r.below(200));
  }
  using kind = fault_plan::kind;
  for (auto more = 1 + r.below(3); more > 0; --more) {
    const auto length =
        is_away_for_long ? r.between(10, 20) * second : r.between(300 * millisecond, 8 * second);
    const bool ends_all = p.store == store_kind::memcached || p.store == store_kind::advisory;
    p.faults.push_back({.what = r.one_in(3)               ? kind::freeze
                                : ends_all || r.one_in(2) ? kind::cut
                                                          : kind::restart,
                        .at = r.between(0, 5 * second),
                        .length = length,
                        .process = r.below(p.processes.size())});
  }
}

// A holder's lease is long beside that of a queue entry. The waiter behind it dies, and others only
// try the lock.
void die_in_line(random_source& r, plan& p) {
  make_punctual(p);
  p.names = {{r.one_in(2) ? lock_kind::fair : lock_kind::mutex}};
  p.processes.resize(3 + r.below(2), p.processes.front());
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    one.linger = 0;
    one.max_hold = never;
    one.renew = true;
    one.begins = static_cast<nanos>(i) * 100 * millisecond;
    if (i == 0) one.lease = r.between(13, 40) * second;
    const step holds{.hold = r.between(one.lease, 2 * one.lease)};
    const step tries{.think = r.between(second, 10 * second), .wait = 0};
    one.threads = {{std::vector<step>(i < 2 ? 1 : 20, i == 0 ? holds : i == 1 ? step{} : tries)}};
  }
  p.faults = {{.what = fault_plan::kind::kill,
               .at = p.processes[0].lease / 3 - r.between(-second, 4 * second),
               .process = 1}};
}

// Requests that arrive long after their sender has asked again and has an answer.
void arrive_after_the_next(random_source& r, plan& p) {
  make_punctual(p);
  p.network.slow_request = static_cast<unsigned>(100 + r.below(300));
  p.network.delivers_late = true;
  p.network.slowest_late = r.between(200 * millisecond, 2 * second);
  p.command_timeout = r.between(50 * millisecond, 200 * millisecond);
  for (auto& one : p.processes) {
    one.lease = r.between(second, 3 * second);
    one.linger = 0;
    one.max_hold = never;
    one.renew = r.one_in(2);
  }
  p.for_each_step([&](step& s, const process_plan& one) {
    s.hold = r.between(0, one.lease);
    s.wait = never;
    s.forces = s.several = false;
    s.what = r.one_in(3) ? step::inside::nothing : step::inside::extend_to;
    s.more = 0;
  });
}

// Operators take locks away from holders that renew them.
void take_from_holders(random_source& r, plan& p) {
  make_punctual(p);
  for (auto& one : p.processes) {
    one.linger = 0;
    one.max_hold = never;
    one.renew = true;
  }
  p.for_each_step([&](step& s, const process_plan& one) {
    s.several = false;
    s.forces = r.one_in(2);
    s.hold = r.between(one.lease / 2, 3 * one.lease);
    s.what = step::inside::nothing;
    s.more = 0;
  });
}

// A full server drops one key after another, or a name.
void evict_keys(random_source& r, plan& p) {
  make_punctual(p);
  const bool meets = p.about == theme::barriers;
  for (auto& one : p.processes) one.how = process_plan::meets::with_a_limit;
  if (!meets) {
    p.names = {{r.one_in(2) ? lock_kind::fair : lock_kind::mutex}};
    p.processes.resize(4 + r.below(3), p.processes.front());
  }
  p.for_each_step([&](step& s, const process_plan&) {
    s.forces = false;
    if (meets) return;
    s = {.think = r.between(0, 100 * millisecond), .hold = r.between(0, 500 * millisecond)};
  });
  for (auto more = 3 + r.below(8); more > 0; --more) {
    const nanos longest = (meets ? 1 : 4) * second;
    p.faults.push_back({.what = fault_plan::kind::lose_key, .at = r.between(0, longest)});
  }
}

// Nodes of a quorum that are away one after the other, and whose clocks differ.
void be_away_in_turns(random_source& r, plan& p) {
  make_punctual(p);
  p.clocks_apart = r.between(10 * millisecond, 10 * second);
  p.for_each_step([&](step& s, const process_plan& one) {
    s.think = r.between(0, 500 * millisecond);
    s.hold = r.between(0, one.lease / 2);
  });
  nanos at = r.between(0, 300 * millisecond);
  for (auto more = 4 + r.below(8); more > 0; --more) {
    const nanos length = r.between(200 * millisecond, 1500 * millisecond);
    p.faults.push_back({.what = fault_plan::kind::freeze,
                        .at = at,
                        .length = length,
                        .store = r.below(p.others.size() + 1)});
    at += length + r.between(0, 100 * millisecond);
  }
}

// Answers that arrive about when the lease that they grant ends.
void answer_at_the_end(random_source& r, plan& p) {
  make_punctual(p);
  p.machine.preempt_permille = p.machine.spurious_permille = 0;
  const nanos lease = p.longest_lease();
  p.network.slow_reply = static_cast<unsigned>(200 + r.below(400));
  p.network.slowest_late = r.between(lease / 2, 2 * lease);
  p.command_timeout = 15 * second;
  for (auto& one : p.processes) one.threads.resize(1);
  const bool together =
      p.others.empty() && !has(p, lock_kind::recursive) && !has(p, lock_kind::counting);
  p.for_each_step([&](step& s, const process_plan&) {
    s.several = together;
    s.forces = false;
    s.wait = s.stop_after = never;
  });
}

// Waits that are given up about when the holder before releases.
void give_up_in_time(random_source& r, plan& p) {
  make_punctual(p);
  const nanos moment = r.between(3 * millisecond, 50 * millisecond);
  p.for_each_step([&](step& s, const process_plan&) {
    s.several = false;
    s.forces = false;
    s.think = r.between(0, moment);
    s.hold = r.between(0, 2 * moment);
    s.wait = r.one_in(3) ? never : r.between(0, 4 * moment);
    s.stop_after = s.wait == never ? r.between(0, 4 * moment) : never;
    s.what = step::inside::nothing;
    s.more = 0;
  });
}

// Sessions that close while several of their waiters are queued behind a holder that stays.
void go_while_many_wait(random_source& r, plan& p) {
  make_punctual(p);
  p.processes.resize(2, p.processes.front());
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    one.begins = static_cast<nanos>(i) * 50 * millisecond;
    one.lease = (i == 0 ? 12 : 1) * second;
    one.max_hold = never;
    one.renew = true;
    p.names[0].capacity = 1;
    const step waits{.think = r.between(0, 20 * millisecond), .deed = i == 0 ? 5U : 0U};
    one.threads = {{std::vector<step>(i == 0 ? 1 : 2 + r.below(4), waits)}};
  }
}

// Arrivals whose answers are lost, and that are given up.
void arrive_in_vain(random_source& r, plan& p) {
  make_punctual(p);
  p.network.lose_reply = static_cast<unsigned>(50 + r.below(250));
  p.command_timeout = r.between(100 * millisecond, 500 * millisecond);
  for (auto& one : p.processes) one.how = process_plan::meets::with_a_limit;
  p.for_each_step([&](step& s, const process_plan&) {
    s.wait = r.between(50 * millisecond, r.one_in(3) ? 5 * second : second);
  });
}

void provoke_locks(random_source& r, plan& p) {
  const bool in_whole_seconds = p.store >= store_kind::mariadb;
  const bool keys = p.store == store_kind::scripts;
  const bool by_leases = p.store < store_kind::contenders || p.store == store_kind::postgres ||
                         p.store == store_kind::mariadb;
  switch (r.below(keys ? 12 : 8)) {
    case 0:
    case 1:
      return rely_on_no_end(r, p);
    case 2:
      return give_up_in_time(r, p);
    case 3:
      return answer_at_the_end(r, p);
    case 4:
      if (p.about != theme::slots && p.about != theme::items && p.about != theme::sessions)
        return take_from_holders(r, p);
      return rely_on_no_end(r, p);
    case 5:
      if (!in_whole_seconds && by_leases) return arrive_after_the_next(r, p);
      return give_up_in_time(r, p);
    case 6:
    case 8:
    case 9:
      if (keys) return evict_keys(r, p);
      return rely_on_no_end(r, p);
    default:
      return by_leases ? die_in_line(r, p) : rely_on_no_end(r, p);
  }
}

}  // namespace

bool provoke_more(plan& p) {
  random_source r(random_source(p.seed + 59'000'000'000).next());
  if (r.one_in(3) || p.processes.empty()) return false;
  switch (p.about) {
    case theme::stores:
      if (has(p, lock_kind::redlock)) return be_away_in_turns(r, p), true;
      return answer_at_the_end(r, p), true;
    case theme::endings:
      return r.one_in(2) && (go_while_many_wait(r, p), true);
    case theme::barriers:
      if (p.store == store_kind::scripts && r.one_in(2)) return evict_keys(r, p), true;
      return arrive_in_vain(r, p), true;
    case theme::locks:
    case theme::scripts:
    case theme::rows:
    case theme::slots:
    case theme::items:
    case theme::sessions:
      if (!p.has_only_locks()) return false;
      return provoke_locks(r, p), true;
    default:
      return false;
  }
}

void provoke(plan& p) {
  random_source r(random_source(p.seed + 53'000'000'000).next());
  if (r.one_in(2) || p.processes.empty()) return;
  if (p.about == theme::stores) {
    if (r.one_in(2)) p.clocks_apart = r.between(millisecond, 10 * second);
    return r.one_in(2) ? hold_to_the_end(r, p) : make_punctual(p);
  }
  const bool locks = p.about == theme::locks || p.about == theme::scripts ||
                     p.about == theme::rows || p.about == theme::slots || p.about == theme::items;
  const bool known = p.store != store_kind::contenders;
  if (known && has(p, lock_kind::election)) return prefer(r, p);
  if (!locks || !p.has_only_locks()) return;
  if (known && has(p, lock_kind::shared) && r.one_in(2)) return prefer(r, p);
  // memcached cannot list its keys.
  const bool looks = r.one_in(3) && p.about != theme::items;
  return looks ? look_at_them(r, p) : hold_to_the_end(r, p);
}

}  // namespace simulation
