#include <algorithm>
#include <iterator>

#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// Plans of earlier seeds, which the later ideas have made rare, and plans in which ordinary use
// meets much of one trouble.
namespace simulation {

namespace {

using goes_wrong = fault_plan::kind;

bool is_redlock(const plan& p) { return p.names.front().kind == lock_kind::redlock; }

/// Whether processes use a name as different kinds, or with different sizes.
bool mixes_kinds(const plan& p) {
  return std::any_of(p.processes.begin(), p.processes.end(), [](const auto& one) {
    return one.more_permits > 0 || std::any_of(one.threads.begin(), one.threads.end(), [](auto& t) {
             return std::any_of(t.steps.begin(), t.steps.end(),
                                [](const step& s) { return s.clashes; });
           });
  });
}

// ---- queues of unequal waiters

// What may go wrong while they queue: in half of the plans nothing.
void disturb_a_queue(random_source& r, plan& p) {
  const auto some = [&](unsigned least, unsigned most) {
    return least + static_cast<unsigned>(r.below(most - least));
  };
  const auto many = p.processes.size();
  switch (r.below(6)) {
    case 0:  // processes die as holders and as waiters
      if (p.about == theme::locks && p.store < store_kind::contenders)
        p.store = store_kind::sees_death;
      // A waiter behind several of a process that dies notices it at its next poll.
      p.machine.slow_permille = some(1, 10);
      for (auto more = 1 + r.below(many - 1); more > 0; --more) {
        p.faults.push_back({.what = goes_wrong::kill,
                            .at = r.between(50, 3000) * millisecond,
                            .process = r.below(many)});
      }
      return;
    case 1:
      p.network.lose_request = r.one_in(3) ? 0 : some(20, 150);
      p.network.lose_reply = r.one_in(3) ? 0 : some(20, 150);
      p.network.until = r.between(1, 6) * second;
      p.network.delivers_late = r.one_in(2);
      p.network.slowest_late = second;
      if (p.store != store_kind::mariadb) p.command_timeout = r.between(100, 500) * millisecond;
      return;
    case 2:
      for (auto more = 1 + r.below(4); more > 0; --more) {
        p.faults.push_back({.what = r.one_in(3) ? goes_wrong::cut : goes_wrong::pause,
                            .at = r.between(0, 4000) * millisecond,
                            .length = r.between(20, 2500) * millisecond,
                            .process = r.below(many)});
      }
      return;
    default:
      return;
  }
}

// Sessions queue for one name, or for some of which they may want all. What they want differs, some
// waits are short, and holders change what they have.
void queue_up(random_source& r, plan& p) {
  using style = step::style;
  using inside = step::inside;
  static constexpr lock_kind kinds[] = {lock_kind::semaphore, lock_kind::shared,
                                        lock_kind::semaphore, lock_kind::shared,
                                        lock_kind::mutex,     lock_kind::fair};
  set_up(p, 2 + r.below(3), r.between(500, 4000) * millisecond);
  auto kind = kinds[r.below(std::size(kinds))];
  if (p.about == theme::sessions && kind != lock_kind::shared) kind = lock_kind::mutex;
  p.names.assign(r.one_in(3) ? 2 + r.below(2) : 1, name_plan{kind});
  const bool together = p.names.size() > 1;
  const bool permits = kind == lock_kind::semaphore;
  const auto capacity = static_cast<std::uint32_t>(2 + r.below(3));
  for (auto& n : p.names) n.capacity = permits ? capacity : n.capacity;
  const nanos moment = r.between(100, 600) * millisecond;
  for (auto& one : p.processes) {
    one.max_bypass = r.one_in(2) ? 0 : 250;
    add_threads(r, one, 1 + r.below(3), [&] {
      step s{.think = r.one_in(3) ? 0 : r.between(0, moment)};
      s.name = r.below(p.names.size());
      s.several = together && r.one_in(3);
      s.hold = r.between(0, r.one_in(4) ? 5 * moment : moment);
      if (permits) s.weight = static_cast<std::uint32_t>(1 + r.below(capacity));
      s.shared = kind == lock_kind::shared && r.one_in(2);
      if (r.one_in(4)) s.wait = r.between(moment / 20, 2 * moment);
      if (r.one_in(6)) s.stop_after = r.between(moment / 20, 2 * moment);
      if (r.one_in(4)) s.how = style::callback;
      if (!permits && r.one_in(6)) s.how = style::standard;
      if (r.one_in(2)) s.back = step::end::destroy;
      if (kind == lock_kind::shared && r.one_in(2))
        s.what = s.shared ? inside::upgrade : inside::downgrade;
      if (s.what == inside::nothing && r.one_in(8)) s.what = inside::extend;
      return s;
    });
  }
  disturb_a_queue(r, p);
}

// ---- the network and the stores

// A good part of the messages is lost for some seconds; some locks are held for as long, and other
// threads wait all the time.
void lose_many(random_source& r, plan& p) {
  p.network.lose_reply = static_cast<unsigned>(80 + r.below(350));
  p.network.lose_request = r.one_in(2) ? 0 : static_cast<unsigned>(50 + r.below(200));
  p.network.delivers_late = r.one_in(2);
  p.network.until = r.between(2, 25) * second;
  p.command_timeout = p.store == store_kind::mariadb ? second : r.between(100, 800) * millisecond;
  if (is_redlock(p) || p.about == theme::deadlocks) return;
  p.for_each_step([&](step& s, const process_plan&) {
    if (r.one_in(4)) s.hold = r.between(1, 20) * second;
    if (r.one_in(2)) s.wait = s.stop_after = never;
  });
}

// Answers are lost, and then a store is away for longer than a request is repeated; some calls wait
// for as long. No request arrives when it is over: it would leave an entry that nobody expects.
void be_away_for_long(random_source& r, plan& p) {
  const nanos at = r.between(100, 3000) * millisecond;
  p.network.lose_reply = static_cast<unsigned>(200 + r.below(400));
  p.network.delivers_late = false;
  p.network.until = at;
  const bool keeps_data = p.about != theme::items && p.about != theme::sessions;
  p.faults = {{.what = keeps_data && r.one_in(3) ? goes_wrong::restart : goes_wrong::cut,
               .at = at,
               .length = (r.one_in(2) ? r.between(5, 40) : r.between(40, 130)) * second,
               .process = r.below(p.processes.size()),
               .store = r.below(p.others.size() + 1)}};
  p.for_each_step([&](step& s, const process_plan&) {
    if (s.wait != 0 && s.wait != never && r.one_in(2)) s.wait = r.between(20, 250) * second;
  });
}

// Some tries succeed at the server and are answered as if they had been cancelled, and sessions
// stay for long.
void fail_what_is_done(random_source& r, plan& p) {
  if (r.one_in(2)) make_calm(p);
  p.network.fail_done = static_cast<unsigned>(50 + r.below(300));
  for (auto& one : p.processes)
    give(one, {{.think = r.between(20, 50) * second, .how = step::style::standard}});
  p.for_each_step([&](step& s, const process_plan&) {
    if (r.one_in(2)) s.wait = r.one_in(2) ? 0 : s.wait;
    s.hold = std::min(s.hold, r.between(0, second));
  });
}

// Nobody renews. Answers are late by a good part of a lease, and others want the same names when it
// ends.
void rely_on_late_answers(random_source& r, plan& p) {
  make_punctual(p);
  p.machine.preempt_permille = 0;
  const bool votes = is_redlock(p);
  const nanos lease = r.between(300, votes ? 800 : 3000) * millisecond;
  p.network.slow_reply = static_cast<unsigned>(200 + r.below(600));
  p.network.slowest_late = votes ? r.between(60, 190) * millisecond : r.between(lease / 8, lease);
  for (auto& one : p.processes) {
    one.renew = false;
    one.max_hold = never;
    one.lease = lease;
    one.session_lease = one.linger = 0;
  }
  p.for_each_step([&](step& s, const process_plan& one) {
    s.think = r.one_in(2) ? 0 : r.between(0, one.lease / 4);
    s.hold = r.one_in(3) ? r.between(0, one.lease / 2) : r.between(one.lease / 2, 2 * one.lease);
    s.forces = false;
    if (r.one_in(2)) s.wait = s.stop_after = never;
  });
}

}  // namespace

std::uint64_t number_of_its_plan(std::uint64_t seed) noexcept {
  if (seed < blended_seeds) return seed;
  random_source r(random_source(seed + 163'000'000'000).next());
  if (!r.one_in(3)) return seed;
  static constexpr std::uint64_t begin[] = {0, std::uint64_t{1} << 36, several_seeds};
  return begin[r.below(std::size(begin))] + (seed & 0xFFFFFFFF);
}

void mix_troubles(plan& p) {
  random_source r(random_source(p.seed + 167'000'000'000).next());
  if (p.processes.empty() || p.store == store_kind::redisson) return;
  const bool locks = p.has_only_locks() && p.others.empty();
  const bool queues = locks && p.about != theme::slots && p.about != theme::items &&
                      p.about != theme::deadlocks && p.about != theme::endings;
  // What is left after many losses is known only of locks that all use as the same kind.
  const bool bears = (p.has_only_locks() && !mixes_kinds(p)) || is_redlock(p);
  // A driver may connect and ask several times for one try, and each answer may be late.
  const bool one_request = locks && p.store < store_kind::contenders;
  if (p.about == theme::sessions && r.one_in(4)) return fail_what_is_done(r, p);
  if (queues && r.one_in(p.about == theme::scripts ? 2 : 3)) return queue_up(r, p);
  switch (r.below(8)) {
    case 0:
      if (bears) lose_many(r, p);
      return;
    case 1:
      if (bears) be_away_for_long(r, p);
      return;
    case 2:
      if (one_request || is_redlock(p)) rely_on_late_answers(r, p);
      return;
    default:
      return;
  }
}

}  // namespace simulation
