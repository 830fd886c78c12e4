#include <algorithm>

#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// What the notes of all answers can judge: grants that waiters have to fetch themselves, calls that
// end badly after the store has answered them, and tokens that come back late.
namespace simulation {

namespace {

using goes_wrong = fault_plan::kind;

// Many processes want one name for moments each, where the store notifies nobody: each waiter has
// to ask before the grant that it got meanwhile ends.
void fetch_each_grant(random_source& r, plan& p) {
  set_up(p, 2 + r.below(4), r.between(400, 2500) * millisecond);
  make_punctual(p);
  p.store = store_kind::untold;
  p.others.clear();
  static constexpr lock_kind kinds[] = {lock_kind::mutex, lock_kind::fair, lock_kind::shared,
                                        lock_kind::semaphore};
  p.names = {{kinds[r.below(4)]}};
  if (p.names[0].kind == lock_kind::semaphore)
    p.names[0].capacity = static_cast<std::uint32_t>(1 + r.below(3));
  for (auto& one : p.processes) {
    one.local_time = 0;
    add_threads(r, one, 1 + r.below(3), [&] {
      step s{.think = r.between(0, 200) * millisecond};
      s.hold = r.between(0, r.one_in(4) ? 3000 : 300) * millisecond;
      s.shared = p.names[0].kind == lock_kind::shared && r.one_in(2);
      if (r.one_in(5)) s.wait = r.between(100, 3000) * millisecond;
      if (r.one_in(3)) s.how = step::style::callback;
      return s;
    });
  }
}

// Answers to waiters are lost now and then, and later ones come. In the end connections are refused
// until the waits are over.
void fail_after_an_answer(random_source& r, plan& p) {
  set_up(p, 2 + r.below(3), r.between(800, 3000) * millisecond);
  p.names.assign(1 + r.below(2), name_plan{r.one_in(2) ? lock_kind::fair : some_mutex(r)});
  p.command_timeout = p.store == store_kind::mariadb ? second : r.between(100, 400) * millisecond;
  p.network.lose_reply = static_cast<unsigned>(50 + r.below(300));
  p.network.delivers_late = false;
  const nanos away = r.between(3, 8) * second;
  p.faults = {{.what = r.one_in(2) ? goes_wrong::restart : goes_wrong::cut,
               .at = away,
               .length = r.between(12, 20) * second,
               .process = p.processes.size() - 1}};
  p.network.until = away;
  for (auto& one : p.processes) {
    const bool holds = &one == p.processes.data();
    one.local_time = 0;
    for (std::size_t i = 0; i < p.names.size(); ++i) {
      step s{.think = r.between(0, 500) * millisecond, .name = i};
      if (holds) s.think = 0, s.hold = away + r.between(-500, 3000) * millisecond;
      if (!holds) s.wait = r.one_in(3) ? never : away + r.between(-1000, 8000) * millisecond;
      if (!holds && r.one_in(2)) s.how = step::style::callback;
      give(one, {s});
    }
  }
}

// Callers are let in, and others reserve the same tokens. Some answers come when the lease of the
// permit is over, and some calls have ended by then.
void admit_before_reservations(random_source& r, plan& p) {
  set_up(p, 2, r.between(400, 1200) * millisecond);
  give_permits_and_tokens(r, p);
  p.names[1].burst = static_cast<std::uint32_t>(2 + r.below(6));
  p.names[1].capacity = static_cast<std::uint32_t>(1 + r.below(4));
  p.names[1].per = second;
  p.network.slowest_late = r.between(500, 1500) * millisecond;
  p.network.until = r.between(10, 30) * second;
  for (auto& one : p.processes) {
    add_threads(r, one, 1 + r.below(2), [&] {
      step s{.think = r.between(0, 300) * millisecond, .name = 2};
      s.weight = static_cast<std::uint32_t>(1 + r.below(3));
      s.wait = r.between(200, 3000) * millisecond;
      s.deed = static_cast<unsigned>(4 + r.below(4));
      if (r.one_in(2)) s.how = step::style::callback;
      return s;
    });
    add_threads(r, one, 1 + r.below(2), [&] {
      step s{.think = r.between(0, 100) * millisecond, .name = 1};
      s.weight = static_cast<std::uint32_t>(1 + r.below(3));
      s.wait = r.between(1, 20) * second;
      s.deed = 4;
      if (r.one_in(3)) s.how = step::style::callback;
      return s;
    });
  }
}

}  // namespace

void mix_accounts(plan& p) {
  random_source r(random_source(p.seed + 157'000'000'000).next());
  if (p.processes.empty() || p.store == store_kind::redisson) return;
  const bool of_locks = p.has_only_locks() && p.others.empty();
  switch (p.about) {
    case theme::locks:
      if (of_locks && r.one_in(10)) return fetch_each_grant(r, p);
      [[fallthrough]];
    case theme::scripts:
    case theme::rows:
      if (!of_locks) return;
      if (r.one_in(10)) return fail_after_an_answer(r, p);
      return;
    case theme::rates:
      if (p.names.back().kind == lock_kind::admission && r.one_in(3))
        admit_before_reservations(r, p);
      return;
    default:
      return;
  }
}

}  // namespace simulation
