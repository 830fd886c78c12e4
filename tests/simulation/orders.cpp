#include <algorithm>

#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// In which order several names are given, and what comes too late: a request after its caller has
// given up, an answer about what an operator took.
namespace simulation {

namespace {

// Processes want the same names together, for moments only, and wait for them without a limit.
void take_all_in_any_order(random_source& r, plan& p) {
  set_up(p, 2 + r.below(3), r.between(2, 6) * second);
  p.names.clear();
  for (auto more = 2 + r.below(3); more > 0; --more) p.names.push_back({some_mutex(r)});
  for (auto& one : p.processes) {
    one.local_time = 0;
    add_threads(r, one, 1 + r.below(2), [&] {
      step s{.think = r.between(0, 20) * millisecond, .several = true};
      s.hold = r.between(0, 40) * millisecond;
      if (r.one_in(3)) s.form = 4, s.how = step::style::callback, s.more = 1;
      return s;
    });
  }
}

// Many requests arrive when their callers have long given up, or have asked again.
void come_too_late(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), r.between(5, 15) * second);
  p.names.assign(1 + r.below(2), name_plan{some_mutex(r)});
  if (r.one_in(3)) p.names[0].kind = lock_kind::shared;
  p.network.refuses_late = p.network.delivers_late = true;
  p.network.slow_request = static_cast<unsigned>(150 + r.below(350));
  p.network.slowest_late = r.between(300, 4000) * millisecond;
  p.network.until = r.between(10, 30) * second;
  p.command_timeout = r.between(60, 600) * millisecond;
  for (auto& one : p.processes) {
    add_threads(r, one, 1 + r.below(3), [&] {
      step s{.think = r.between(0, 500) * millisecond, .name = r.below(p.names.size())};
      s.wait = r.one_in(3) ? 0 : r.between(100, 4000) * millisecond;
      s.hold = r.between(0, 300) * millisecond;
      s.shared = p.names[s.name].kind == lock_kind::shared && r.one_in(2);
      if (r.one_in(3)) s.how = step::style::callback;
      return s;
    });
    remain(one, 60 * second);
  }
}

// Readers of a process wait for a writer elsewhere, some with a thread and some without. Those
// without one are let in while the thread that acts for them waits for late answers.
void let_readers_in_late(random_source& r, plan& p) {
  set_up(p, 2, r.between(500, 1500) * millisecond);
  if (p.store == store_kind::contenders) p.store = store_kind::told;
  p.names = {{lock_kind::shared}, {lock_kind::mutex}, {lock_kind::mutex}};
  p.network.slow_reply = static_cast<unsigned>(200 + r.below(300));
  p.network.slowest_late = p.longest_lease() * 3 / 2;
  p.network.until = r.between(10, 30) * second;
  const auto reads = [&](bool without_a_thread) {
    step s{.think = r.between(0, 200) * millisecond, .shared = true};
    s.hold = r.between(0, 600) * millisecond;
    if (without_a_thread) s.how = step::style::callback;
    return s;
  };
  add_threads(r, p.processes[0], 1 + r.below(2), [&] { return reads(false); });
  add_threads(r, p.processes[0], 1 + r.below(3), [&] { return reads(true); });
  add_threads(r, p.processes[0], 1 + r.below(2), [&] {
    step s{.think = r.between(0, 50) * millisecond, .name = 1 + r.below(2)};
    s.how = step::style::callback;
    return s;
  });
  add_threads(r, p.processes[1], 1, [&] {
    return step{.think = r.between(0, 300) * millisecond, .hold = r.between(0, 300) * millisecond};
  });
}

// An operator takes locks from holders at a cache, and answers are lost.
void take_without_an_answer(random_source& r, plan& p) {
  set_up(p, 3, r.between(4, 12) * second);
  p.names = {{lock_kind::mutex}};
  p.network.lose_reply = static_cast<unsigned>(40 + r.below(160));
  p.network.until = r.between(10, 30) * second;
  p.command_timeout = r.between(200, 1000) * millisecond;
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    one.local_time = 0;
    one.renew = r.one_in(2);
    step s{.think = r.between(0, 600) * millisecond, .hold = one.lease / 2};
    s.wait = r.between(1, 4) * second;
    if (i == 0) s.forces = true, s.wait = 0, s.hold = 100 * millisecond;
    give(one, std::vector<step>(i == 0 ? 20 : 6, s));
  }
}

// ---- limiters

// Tokens that hardly come back are taken and given back, and answers are lost.
void give_back_without_an_answer(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), 3 * second);
  p.names = {{.kind = lock_kind::limiter,
              .capacity = 1,
              .burst = static_cast<std::uint32_t>(6 + r.below(20)),
              .per = r.between(1000, 3000) * second}};
  p.network.lose_reply = static_cast<unsigned>(50 + r.below(300));
  p.network.until = r.between(10, 40) * second;
  p.network.delivers_late = false;
  p.command_timeout = r.between(200, 1000) * millisecond;
  for (auto& one : p.processes) {
    std::vector<step> all;
    for (auto more = 12 + r.below(24); more > 0; --more) {
      step s{.think = r.between(0, 300) * millisecond};
      s.weight = static_cast<std::uint32_t>(1 + r.below(4));
      s.deed = r.one_in(2) ? 0 : 3;
      if (r.one_in(3)) s.how = step::style::callback;
      all.push_back(s);
    }
    give(one, std::move(all));
  }
}

// ---- latches

// Threads wait at a latch, and are stopped, or run out of time. It opens long after that.
void leave_a_closed_latch(random_source& r, plan& p) {
  set_up(p, 2, 3 * second);
  for (auto& one : p.processes) one.keep = 0;
  p.names = {{lock_kind::latch, static_cast<std::uint32_t>(2 + r.below(3))}};
  step waits{.wait = 60 * second, .deed = static_cast<unsigned>(5 + r.below(3))};
  for (auto more = 2 + r.below(3); more > 0; --more) {
    waits.think = r.between(0, 300) * millisecond;
    waits.how = r.one_in(3) ? step::style::callback : step::style::lease;
    const nanos gives_up = r.between(20, 600) * millisecond;
    (r.one_in(3) ? waits.wait : waits.stop_after) = gives_up;
    give(p.processes[0], {waits});
  }
  remain(p.processes[0], 9 * second);
  for (auto left = p.names[0].capacity; left > 0; --left)
    give(p.processes[1], {step{.think = r.between(5, 8) * second, .weight = 1}});
}

// Threads begin to wait at a latch at the moment at which it opens.
void come_as_a_latch_opens(random_source& r, plan& p) {
  set_up(p, 2, 3 * second);
  for (auto& one : p.processes) one.keep = 0;
  p.names.assign(1 + r.below(4), name_plan{lock_kind::latch, 2});
  for (std::size_t i = 0; i < p.names.size(); ++i) {
    const nanos then = r.between(300, 900) * millisecond;
    step waits{.name = i, .wait = 60 * second, .deed = static_cast<unsigned>(5 + r.below(3))};
    for (auto more = 1 + r.below(3); more > 0; --more) {
      waits.think = then - r.between(0, 2000) * microsecond;
      give(p.processes[0], {waits});
    }
    give(p.processes[1], {step{.think = 100 * millisecond, .name = i, .weight = 1}});
    step opens{.think = then - r.between(0, 2000) * microsecond, .name = i, .weight = 1};
    give(p.processes[1], {opens});
  }
  remain(p.processes[0], 6 * second);
}

}  // namespace

void mix_orders(plan& p) {
  random_source r(random_source(p.seed + 151'000'000'000).next());
  if (p.processes.empty() || p.store == store_kind::redisson) return;
  const bool of_locks = p.has_only_locks() && p.others.empty();
  if (p.store == store_kind::scripts && r.one_in(2)) p.network.refuses_late = true;
  switch (p.about) {
    case theme::locks:
    case theme::scripts:
    case theme::rows:
      if (!of_locks) break;
      if (r.one_in(12)) return take_all_in_any_order(r, p);
      if (r.one_in(12)) return let_readers_in_late(r, p);
      if (p.store == store_kind::scripts && r.one_in(6)) return come_too_late(r, p);
      return;
    case theme::items:
      if (r.one_in(8)) take_without_an_answer(r, p);
      return;
    case theme::rates:
      if (p.names.size() == 1 && r.one_in(8)) give_back_without_an_answer(r, p);
      return;
    case theme::stores:
      // The first node's clock is ahead, and not the last one's.
      if (r.one_in(3)) p.clocks_apart = -p.clocks_apart;
      return;
    case theme::meetings:
    case theme::async:
      break;
    default:
      return;
  }
  if (p.names.back().kind != lock_kind::latch) return;
  if (r.one_in(4)) return leave_a_closed_latch(r, p);
  if (r.one_in(4)) come_as_a_latch_opens(r, p);
}

}  // namespace simulation
