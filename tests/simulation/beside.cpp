#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// What a thread meets beside others: a former writer, a writer beside readers without a thread, a
// connection that breaks while tokens are taken, a renewal before it is shown.
namespace simulation {

namespace {

// A writer becomes a reader, and holds on. Readers of other processes try once, again and again.
void try_behind_a_former_writer(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), r.between(3, 6) * second);
  p.names = {{lock_kind::shared}};
  const nanos then = r.between(50, 500) * millisecond;
  step reads_on{.hold = then + r.between(2, 5) * second, .what = step::inside::downgrade};
  reads_on.soon = then;
  give(p.processes[0], {reads_on});
  for (std::size_t i = 1; i < p.processes.size(); ++i) {
    step tries{.think = r.between(0, 600) * millisecond, .shared = true, .wait = 0};
    tries.hold = r.between(0, 200) * millisecond;
    if (r.one_in(3)) tries.how = step::style::callback;
    give(p.processes[i], std::vector<step>(4 + r.below(6), tries));
  }
}

// Threads of a process read without waiting, one after the other and beside each other, and a
// writer of another process waits.
void read_without_a_thread(random_source& r, plan& p) {
  set_up(p, 2, r.between(2, 5) * second);
  tell_at_once_by_records(p);
  p.names = {{lock_kind::shared}};
  add_threads(r, p.processes[0], 3 + r.below(3), [&] {
    step s{.think = r.between(0, 20) * millisecond, .how = step::style::callback, .shared = true};
    s.hold = r.between(100, 400) * millisecond;
    return s;
  });
  step writes{.think = r.between(200, 600) * millisecond, .hold = r.between(0, 30) * millisecond};
  give(p.processes[1], std::vector<step>(3, writes));
}

// One thread takes tokens that hardly come back, and answers are lost with their connections.
void take_tokens_over_broken_connections(random_source& r, plan& p) {
  set_up(p, 1, 3 * second);
  p.store = r.one_in(2) ? store_kind::postgres : store_kind::mariadb;
  p.names = {{.kind = lock_kind::limiter,
              .capacity = 1,
              .burst = static_cast<std::uint32_t>(20 + r.below(20)),
              .per = r.between(1000, 3000) * second}};
  p.network.lose_reply = static_cast<unsigned>(50 + r.below(300));
  p.network.until = r.between(5, 20) * second;
  p.network.delivers_late = false;
  p.command_timeout = r.between(500, 2000) * millisecond;
  std::vector<step> all;
  for (auto more = 6 + r.below(10); more > 0; --more) {
    step s{.think = r.between(0, 300) * millisecond, .weight = 1, .deed = 3};
    if (r.one_in(2)) s.how = step::style::callback;
    all.push_back(s);
  }
  give(p.processes[0], std::move(all));
}

// Holders look at what is shown of their lock when it has been renewed.
void look_after_a_renewal(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(1, 3) * second);
  p.names = {{lock_kind::mutex}};
  const nanos lease = p.longest_lease();
  for (auto& one : p.processes) {
    one.local_time = 0;
    step s{.think = r.between(0, lease), .hold = r.between(lease, 4 * lease), .looks = true};
    give(one, std::vector<step>(2, s));
  }
}

}  // namespace

void mix_neighbours(plan& p) {
  random_source r(random_source(p.seed + 139'000'000'000).next());
  if (p.processes.empty()) return;
  switch (p.about) {
    case theme::locks:
    case theme::scripts:
      if (!p.has_only_locks() || !p.others.empty()) return;
      if (p.store == store_kind::contenders && r.one_in(4)) return try_behind_a_former_writer(r, p);
      if (p.store != store_kind::contenders && r.one_in(8)) return read_without_a_thread(r, p);
      return;
    case theme::rates:
#ifdef HOLDFAST_WITH_SQL
      if (p.names.size() == 1 && r.one_in(6)) take_tokens_over_broken_connections(r, p);
#endif
      return;
    case theme::items:
      if (r.one_in(6)) look_after_a_renewal(r, p);
      return;
    default:
      return;
  }
}

}  // namespace simulation
