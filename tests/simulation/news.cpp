#include <algorithm>

#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// What callers, tokens and observers are told of a loss, of an outage, or of what others do.
namespace simulation {

namespace {

using goes_wrong = fault_plan::kind;

// Threads of one process pass a lock on to each other without the store, which meanwhile ends the
// lease, or from which an operator takes the lock away.
void pass_on_what_is_lost(random_source& r, plan& p) {
  set_up(p, 2, r.between(second, 4 * second));
  tell_at_once(p);
  p.names = {{lock_kind::mutex}};
  auto& one = p.processes[0];
  one.local_time = r.one_in(4) ? 0 : 60 * second;
  one.max_bypass = r.one_in(2) ? 250 : 2;
  if (r.one_in(3)) one.linger = r.between(100, 2000) * millisecond;
  add_threads(r, one, 2 + r.below(3), [&] {
    step s{.think = r.one_in(2) ? 0 : r.between(0, one.lease / 4)};
    s.hold = r.between(one.lease / 8, one.lease / 2);
    if (r.one_in(4)) s.how = step::style::callback;
    return s;
  });
  if (r.one_in(2)) {
    step takes{.think = r.between(one.lease / 4, 2 * one.lease), .wait = 0, .forces = true};
    give(p.processes[1], std::vector<step>(2 + r.below(3), takes));
    return;
  }
  nanos at = r.between(0, one.lease);
  for (auto more = 1 + r.below(3); more > 0; --more) {
    const nanos length = r.between(one.lease, 2 * one.lease);
    p.faults.push_back({.what = goes_wrong::cut, .at = at, .length = length});
    at += length + r.between(one.lease, 3 * one.lease);
  }
}

// An operator takes locks with long leases away, and others wait for them.
void take_away_before_others(random_source& r, plan& p) {
  set_up(p, 3 + r.below(2), r.between(5, 30) * second);
  tell_at_once(p);
  const auto kind = r.one_in(2) ? some_mutex(r) : lock_kind::shared;
  p.names.assign(1 + r.below(2),
                 r.one_in(4) ? name_plan{lock_kind::semaphore, 2} : name_plan{kind});
  const auto holds = [&](nanos from, nanos until) {
    step s{.think = r.between(from, until), .name = r.below(p.names.size())};
    s.hold = r.between(500 * millisecond, 4 * second);
    s.shared = p.names[s.name].kind == lock_kind::shared && r.one_in(2);
    if (r.one_in(4)) s.how = step::style::callback;
    return s;
  };
  for (auto& one : p.processes) {
    one.local_time = r.one_in(2) ? 0 : 10 * millisecond;
    for (auto more = 1 + r.below(2); more > 0; --more) {
      give(one, {holds(0, second), holds(0, second)});
    }
  }
  step takes{.think = r.between(300 * millisecond, 2 * second), .wait = 0, .forces = true};
  takes.name = r.below(p.names.size());
  give(p.processes.back(), std::vector<step>(2 + r.below(3), takes));
}

// Many leases of a session that are due to be renewed together are extended just then.
void extend_what_is_due(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(2, 9) * second);
  p.names.assign(4 + r.below(5), name_plan{some_mutex(r)});
  if (!r.one_in(3)) {
    p.network.slow_reply = static_cast<unsigned>(200 + r.below(800));
    p.network.slowest_late = r.between(5, 200) * millisecond;
  }
  auto& one = p.processes[0];
  one.local_time = 0;
  const nanos third = one.lease / 3;
  const nanos apart = r.one_in(2) ? millisecond : 50 * millisecond;
  for (std::size_t i = 0; i < p.names.size(); ++i) {
    step s{.think = r.between(0, apart), .name = i, .hold = 5 * third};
    s.what = r.one_in(3) ? step::inside::extend_to : step::inside::extend;
    s.soon = third + r.between(-5 * millisecond, 2 * apart + p.network.slowest_late);
    give(one, std::vector<step>(2, s));
  }
}

// Threads wait for a condition, and one notification after several tokens wakes all of them.
void notify_all_of_several(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), 3 * second);
  tell_at_once(p);
  p.names = {{lock_kind::mutex}, {lock_kind::condition}};
  for (auto& one : p.processes) {
    for (auto more = 1 + r.below(3); more > 0; --more) {
      step takes{.think = r.between(0, 200 * millisecond), .name = 1, .wait = 30 * second};
      takes.deed = static_cast<unsigned>(4 + r.below(4));
      if (p.about == theme::async && r.one_in(2)) takes.how = step::style::callback;
      give(one, std::vector<step>(2, takes));
    }
  }
  for (auto more = 1 + r.below(2); more > 0; --more) {
    step puts{.think = r.between(300 * millisecond, 2 * second), .name = 1, .weight = 3};
    puts.deed = static_cast<unsigned>(2 + r.below(2));
    if (p.about == theme::async && !r.one_in(3)) puts.how = step::style::callback;
    give(p.processes.back(), std::vector<step>(4, puts));
  }
}

// Callers of an admission wait for tokens for long, while others want its permits only.
void want_permits_beside_an_admission(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), r.between(2, 6) * second);
  give_permits_and_tokens(r, p);
  p.network.slow_reply = 0;
  p.names[0].capacity = static_cast<std::uint32_t>(1 + r.below(2));
  p.names[1].burst = 2;
  p.names[1].per = r.between(5, 100) * second;
  for (auto& one : p.processes) {
    step enters{.think = r.between(0, 500 * millisecond), .name = 2};
    enters.weight = static_cast<std::uint32_t>(1 + r.below(2));
    enters.wait = r.one_in(3) ? 0 : r.between(2, 12) * second;
    enters.hold = r.between(0, 300 * millisecond);
    enters.deed = static_cast<unsigned>(r.below(8));
    if (r.one_in(2)) enters.how = step::style::callback;
    give(one, std::vector<step>(3, enters));
    step takes{.think = r.between(200, 1500) * millisecond};
    takes.hold = r.between(0, 200 * millisecond);
    if (r.one_in(2)) give(one, std::vector<step>(5, takes));
  }
  remain(p.processes[0], 30 * second);
}

// Tokens are reserved for different times, then the rules change, and some of the reservations are
// given up.
void change_rules_behind_reservations(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), 3 * second);
  const auto burst = static_cast<std::uint32_t>(12 + r.below(8));
  p.names = {{.kind = lock_kind::limiter,
              .capacity = 1,
              .burst = burst,
              .per = r.between(100, 1000) * second,
              .grows = !r.one_in(4)}};
  auto& one = p.processes[0];
  p.names[0].shrinks = !p.names[0].grows;
  give(one, {{.weight = burst, .deed = 3}});
  nanos comes = 0;
  for (auto more = 2 + r.below(3); more > 0; --more) {
    step reserves{.weight = static_cast<std::uint32_t>(2 + r.below(3)), .deed = 4};
    comes += r.between(50, 150) * millisecond;
    reserves.think = comes;
    reserves.wait = 100'000 * second;
    reserves.hold = r.between(1000, 2000) * millisecond;
    if (!r.one_in(3)) reserves.back = step::end::destroy;
    give(one, {reserves});
  }
  give(one, {{.think = r.between(700, 1200) * millisecond, .deed = 7}});
  if (p.processes.size() > 1) {
    step takes{.think = r.between(0, second), .weight = 1, .deed = 3};
    give(p.processes[1], std::vector<step>(5, takes));
  }
}

// Most nodes are away for much longer than a session keeps trying, while some processes wait for
// the lock, and one keeps it.
void be_without_a_majority_for_long(random_source& r, plan& p) {
  set_up(p, 1 + r.below(3), r.between(second, 4 * second));
  make_votes(p);
  const nanos lease = p.longest_lease();
  for (auto& one : p.processes) {
    step s{.think = r.between(0, 4 * second), .hold = r.between(0, 4 * lease)};
    s.deed = static_cast<unsigned>(r.below(2));
    give(one, {s, s});
  }
  static constexpr goes_wrong kinds[] = {goes_wrong::restart, goes_wrong::freeze};
  const auto without = r.below(4);  // or all three
  const nanos at = r.between(500 * millisecond, 4 * second);
  const nanos length = r.one_in(3) ? r.between(lease, 3 * lease) : r.between(30, 50) * second;
  for (std::size_t i = 0; i < 3; ++i) {
    if (i == without) continue;
    p.faults.push_back({.what = kinds[r.below(2)], .at = at, .length = length, .store = i});
  }
}

// Participants of a barrier drop out, in each form, and the others meet again and again.
void drop_out_one_by_one(random_source& r, plan& p) {
  set_up(p, 3 + r.below(2), r.between(500 * millisecond, 2 * second));
  p.names = {{.kind = lock_kind::barrier,
              .capacity = static_cast<std::uint32_t>(p.processes.size()),
              .at_once = r.one_in(3)}};
  std::size_t phases = 1;
  for (auto& one : p.processes) {
    one.how = process_plan::meets::by_calls;
    step meets{.think = r.between(0, 300 * millisecond), .wait = 20 * second};
    std::vector<step> all(phases++, meets);
    meets.deed = 7;
    if (r.one_in(2)) meets.how = step::style::callback;
    all.push_back(meets);
    give(one, std::move(all));
  }
}

// Processes with short leases and with long ones use the same locks, and some of them die.
void share_with_leases_of_all_lengths(random_source& r, plan& p) {
  set_up(p, 2 + r.below(3), second);
  tell_at_once(p);
  p.names.assign(1 + r.below(2), name_plan{r.one_in(4) ? lock_kind::shared : some_mutex(r)});
  for (auto& one : p.processes) {
    one.lease = r.one_in(2) ? r.between(300, 1000) * millisecond : r.between(10, 60) * second;
    one.local_time = r.one_in(2) ? 0 : 10 * millisecond;
    add_threads(r, one, 1 + r.below(2), [&] {
      step s{.think = r.between(0, second), .name = r.below(p.names.size())};
      s.hold = r.between(0, 3 * second);
      s.shared = p.names[s.name].kind == lock_kind::shared && r.one_in(2);
      if (r.one_in(4)) s.wait = r.between(0, 2 * second);
      if (r.one_in(3)) s.what = step::inside::extend;
      return s;
    });
    for (auto& t : one.threads) t.steps.resize(4, t.steps.front());
  }
  if (!r.one_in(3)) return;
  p.faults = {{.what = goes_wrong::kill,
               .at = r.between(500 * millisecond, 5 * second),
               .process = r.below(p.processes.size())}};
}

bool tell_news_of_locks(random_source& r, plan& p) {
  if (!p.has_only_locks() || p.store == store_kind::contenders) return false;
  switch (r.below(7)) {
    case 0:
    case 1:
      return pass_on_what_is_lost(r, p), true;
    case 2:
    case 3:
      return take_away_before_others(r, p), true;
    case 4:
      return share_with_leases_of_all_lengths(r, p), true;
    default:
      return extend_what_is_due(r, p), true;
  }
}

}  // namespace

bool arrange_news(plan& p) {
  random_source r(random_source(p.seed + 103'000'000'000).next());
  if (p.processes.empty()) return false;
  const bool admits = p.names.back().kind == lock_kind::admission;
  const bool waits = p.names.back().kind == lock_kind::condition;
  switch (p.about) {
    case theme::locks:
    case theme::scripts:
    case theme::rows:
      return tell_news_of_locks(r, p);
    case theme::stores:
      return be_without_a_majority_for_long(r, p), true;
    case theme::rates:
      if (admits) return want_permits_beside_an_admission(r, p), true;
      return r.one_in(2) && (change_rules_behind_reservations(r, p), true);
    case theme::barriers:
      return r.one_in(3) && (drop_out_one_by_one(r, p), true);
    case theme::meetings:
    case theme::async:
      if (admits) return want_permits_beside_an_admission(r, p), true;
      return waits && (notify_all_of_several(r, p), true);
    default:
      return false;
  }
}

}  // namespace simulation
