#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"
#include "simulation/server.hpp"

// Servers of one store that do not know the same: a primary that goes on after its standby has
// taken over, and a store that comes back with a backup.
namespace simulation {

using goes_wrong = fault_plan::kind;

namespace {

// One process votes now and then, and one of the nodes is away at most of these times.
void vote_without_a_node(random_source& r, plan& p) {
  set_up(p, 1, r.between(second, 4 * second));
  make_votes(r, p);
  p.machine.preempt_permille = 0;
  std::vector<step> steps;
  for (auto more = 4 + r.below(5); more > 0; --more) {
    steps.push_back({.think = r.between(second, 3 * second),
                     .wait = r.one_in(2) ? never : r.between(second, 5 * second),
                     .hold = r.between(0, second),
                     .deed = static_cast<unsigned>(r.below(3))});
  }
  give(p.processes[0], std::move(steps));
  const auto away = r.below(3);
  for (nanos at = r.between(second, 3 * second); p.faults.size() < 4;) {
    const nanos length = r.between(500, 4000) * millisecond;
    p.faults.push_back({.what = r.one_in(3) ? goes_wrong::cut : goes_wrong::freeze,
                        .at = at,
                        .length = length,
                        .store = away});
    at += length + r.between(second, 4 * second);
  }
}

// Waits for several names are stopped while others hold one of them, or two.
void stop_waits_for_several(random_source& r, plan& p) {
  set_up(p, 2 + r.below(2), r.between(800, 3000) * millisecond);
  tell_at_once_by_records(p);
  make_punctual(p);
  p.names.assign(2 + r.below(2), name_plan{some_mutex(r)});
  for (auto& n : p.names) n.kind = r.one_in(3) ? lock_kind::shared : lock_kind::mutex;
  for (auto& one : p.processes) {
    add_threads(r, one, 1 + r.below(2), [&] {
      step s{.think = r.between(0, 300) * millisecond, .name = r.below(p.names.size())};
      s.hold = r.between(0, 800) * millisecond;
      s.several = r.one_in(2);
      if (!s.several) return s;
      if (r.one_in(3)) s.wait = r.between(100, 2000) * millisecond;
      if (!r.one_in(3)) s.stop_after = r.between(0, 500) * millisecond;
      if (r.one_in(3)) s.form = 4;
      return s;
    });
  }
}

// One thread waits for tokens, and is stopped when they are its own and not there yet.
void stop_waits_for_tokens(random_source& r, plan& p) {
  set_up(p, 1, 3 * second);
  make_punctual(p);
  p.names = {{.kind = lock_kind::limiter,
              .capacity = 1,
              .burst = static_cast<std::uint32_t>(2 + r.below(6)),
              .per = r.between(100, 2000) * millisecond,
              .at_once = r.one_in(4)}};
  std::vector<step> all;
  for (auto more = 6 + r.below(10); more > 0; --more) {
    step s{.think = r.between(0, 300) * millisecond, .wait = r.between(1, 20) * second};
    s.deed = r.one_in(3) ? 3U : 6U;
    s.weight = static_cast<std::uint32_t>(1 + r.below(6));
    if (s.deed == 6U && !r.one_in(4)) s.stop_after = r.between(0, 1500) * millisecond;
    if (r.one_in(3)) s.how = step::style::callback;
    all.push_back(s);
  }
  give(p.processes[0], std::move(all));
}

// Readers go first, and come while a writer of their process waits.
void read_before_a_writer(random_source& r, plan& p) {
  set_up(p, 1 + r.below(2), r.between(800, 3000) * millisecond);
  tell_at_once_by_records(p);
  make_punctual(p);
  p.names = {{.kind = lock_kind::shared, .prefers = 1}};
  for (auto& one : p.processes) {
    add_threads(r, one, 2 + r.below(3), [&] {
      step s{.think = r.between(0, 300) * millisecond, .hold = r.between(50, 900) * millisecond};
      s.shared = !r.one_in(4);
      if (s.shared && r.one_in(2)) s.how = step::style::callback;
      return s;
    });
  }
}

}  // namespace

void mix_divisions(plan& p) {
  random_source r(random_source(p.seed + 181'000'000'000).next());
  if (!p.processes.empty() && p.names.front().kind == lock_kind::redlock && r.one_in(4))
    return vote_without_a_node(r, p);
  if (p.has_only_locks() && p.store < store_kind::contenders && p.about <= theme::locks &&
      r.one_in(6))
    return r.one_in(3) ? read_before_a_writer(r, p) : stop_waits_for_several(r, p);
  if (p.about == theme::rates && p.others.empty() && p.store != store_kind::contenders &&
      r.one_in(6))
    return stop_waits_for_tokens(r, p);
  const bool restores = p.store == store_kind::contenders;
  if (p.processes.empty() || !p.others.empty() || (!p.on_rows() && !restores)) return;
  if (!r.one_in(3)) return;
  if (r.one_in(2)) make_calm(p);
  nanos at = r.between(50, 4000) * millisecond;
  for (auto more = 1 + r.below(2); more > 0; --more) {
    const nanos length = r.between(10, 200) * millisecond * (r.one_in(2) ? 1 : 20);
    p.faults.push_back(
        {.what = restores ? goes_wrong::restore : goes_wrong::divide, .at = at, .length = length});
    at += length + r.between(0, 6) * second;
  }
}

void server::divide(nanos until) {
  if (!back_->divide(until)) return;
  trace_.add("world", "a standby takes over; the former primary goes on until " +
                          std::to_string(until / millisecond) + " ms");
  forgot_at_ = forgot_all_at_ = until;
  all_meet(trouble::data_lost, until);
}

void server::restore(nanos until) {
  const bool less = back_->restore();
  stop(until, false);
  if (!less) return;
  trace_.add("world", "it comes back with a backup");
  forgot_at_ = forgot_all_at_ = until;
  all_meet(trouble::data_lost, until);
}

}  // namespace simulation
