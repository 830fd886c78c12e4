#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// Turns within a process: readers behind a writer that has gone, and waiters that have little time.
namespace simulation {

namespace {

// A process writes for a moment, and from then on its threads only read. They wait together, again
// and again, for the writer of another process.
void read_after_a_writer(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), r.between(2, 4) * second);
  tell_at_once_by_records(p);
  p.names = {{lock_kind::shared}};
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    auto& one = p.processes[i];
    step writes{.think = r.between(0, 20 * millisecond), .hold = r.between(0, 20 * millisecond)};
    if (i + 1 == p.processes.size()) {
      writes.hold = r.between(second, 3 * second);
      give(one, std::vector<step>(4, writes));
      continue;
    }
    give(one, {writes});
    const step reads{.think = r.between(0, 400 * millisecond),
                     .shared = true,
                     .hold = r.between(0, 100 * millisecond)};
    for (auto more = 2 + r.below(3); more > 0; --more) give(one, std::vector<step>(6, reads));
  }
}

// Answers are late, and some threads that wait behind a holder of their process have hardly any
// time left when it releases.
void wait_with_little_time(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(3, 6) * second);
  if (p.store > store_kind::scripts) p.store = store_kind::told;
  p.network.slow_reply = static_cast<unsigned>(300 + r.below(500));
  p.network.slowest_late = r.between(200, 400) * millisecond;
  p.names = {{lock_kind::mutex}};
  for (auto& one : p.processes) {
    one.local_time = 0;
    for (auto more = 2 + r.below(3); more > 0; --more) {
      step s{.think = r.between(0, 200 * millisecond), .hold = r.between(0, 300 * millisecond)};
      if (!r.one_in(3)) s.wait = r.between(100 * millisecond, 1500 * millisecond);
      give(one, std::vector<step>(6, s));
    }
  }
}

}  // namespace

bool arrange_turns(plan& p) {
  random_source r(random_source(p.seed + 89'000'000'000).next());
  if (r.one_in(2) || p.processes.empty() || !p.has_only_locks()) return false;
  if (p.about != theme::locks && p.about != theme::scripts) return false;
  if (p.store == store_kind::contenders) return false;
  return (r.one_in(2) ? read_after_a_writer(r, p) : wait_with_little_time(r, p)), true;
}

}  // namespace simulation
