#include <algorithm>

#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"
#include "simulation/scene.hpp"

// Servers that answer a request with an error while its connection stays: they are starting, short
// of memory, or have just changed their leader.
namespace simulation {

using holdfast::errc;

namespace {

// Holders ask who else holds the server's own locks, or waits for them.
void look_around(random_source& r, plan& p) {
  if (r.one_in(2)) make_calm(p);
  p.for_each_step([&](step& s, const process_plan&) { s.looks = s.looks || r.one_in(3); });
}

// Threads of a process pass a lock on to each other, and threads of other processes wait for it.
void pass_it_on(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), r.between(800, 3000) * millisecond);
  p.store = r.one_in(3) ? store_kind::told : store_kind::contenders;
  p.session_timeout = r.between(1, 3) * second;
  p.names = {{some_mutex(r)}};
  for (auto& one : p.processes) {
    one.max_bypass = static_cast<unsigned>(r.below(4));
    one.local_time = r.between(0, 20) * millisecond;
    add_threads(r, one, 2 + r.below(3), [&] {
      step s{.think = r.between(0, 100) * millisecond, .hold = r.between(0, 60) * millisecond};
      if (r.one_in(4)) s.wait = r.between(50, 2000) * millisecond;
      if (r.one_in(3)) s.how = step::style::callback;
      return s;
    });
  }
}

// Waiters for permits find, when they ask again, that others use the name with another number.
void wait_for_another_number(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), r.between(800, 3000) * millisecond);
  make_punctual(p);
  p.store = store_kind::told_slots;
  p.names = {{lock_kind::counting}};
  p.names[0].capacity = static_cast<std::uint32_t>(1 + r.below(2));
  for (auto& one : p.processes) {
    one.more_permits = &one == p.processes.data() ? 1 : 0;
    add_threads(r, one, 2 + r.below(2), [&] {
      step s{.think = r.between(0, 400) * millisecond, .hold = r.between(0, 500) * millisecond};
      if (r.one_in(3)) s.wait = r.between(50, 2000) * millisecond;
      return s;
    });
  }
}

}  // namespace

void mix_refusals(plan& p) {
  random_source r(random_source(p.seed + 173'000'000'000).next());
  random_source numbers(random_source(p.seed + 179'000'000'000).next());
  if (p.about == theme::slots && p.has_only_locks() && numbers.one_in(10))
    return wait_for_another_number(numbers, p);
  if (p.store == store_kind::advisory && r.one_in(3)) return look_around(r, p);
  // A latch that is kept for a moment only is forgotten while its requests are refused.
  const bool forgets = std::any_of(p.processes.begin(), p.processes.end(),
                                   [](const auto& one) { return one.keep > 0; });
  if (p.processes.empty() || forgets || !r.one_in(3)) return;
  const auto some = [&] {
    return static_cast<unsigned>(r.one_in(3) ? 50 + r.below(250) : 3 + r.below(50));
  };
  if (p.about == theme::locks && p.has_only_locks() && p.others.empty() && r.one_in(4))
    pass_it_on(r, p);
  p.network.refuse = some();
  p.network.leave_open = r.one_in(2) ? 0 : some();
  if (p.network.until == never && r.one_in(2)) p.network.until = r.between(1, 15) * second;
}

bool server::answers_with_an_error(connection& by, exchange& what) {
  if (net_.answers_all() || what.takes_time || is_.keeps >= server_traits::what::postgres_rows)
    return false;
  if (happens(net_.refuse)) {
    disturbed(by);
    if (what.over) return true;
    trace_.add("server", "(refused) " + what.label);
    what.failed = holdfast::failure{errc::unavailable, "simulated: the server refuses"};
    return true;
  }
  if (what.over || !happens(net_.leave_open)) return false;
  disturbed(by);
  trace_.add("server", "(left open) " + what.label);
  what.failed = holdfast::failure{errc::unavailable, "simulated: perhaps carried out", true};
  return world_.random().one_in(2);
}

}  // namespace simulation
