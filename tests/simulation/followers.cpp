#include <algorithm>

#include "simulation/arranging.hpp"
#include "simulation/encounters.hpp"

// What follows: the next thread of a process at a lock, on terms of its own; what a session leaves
// behind when it closes, or a call that begins anew; the end of a wait, or of an outage.
namespace simulation {

namespace {

using goes_wrong = fault_plan::kind;

// Threads of a process follow each other at a lock, and each object has a lease of its own; or each
// hold has a limit.
void follow_on_other_terms(random_source& r, plan& p) {
  const nanos lease = r.between(1, 4) * second;
  set_up(p, 1 + r.below(2), lease);
  if (p.store == store_kind::contenders) p.store = store_kind::told;
  p.names = {{r.one_in(4) ? lock_kind::recursive : lock_kind::mutex}};
  const bool limited = r.one_in(2);
  for (auto& one : p.processes) {
    const nanos most = limited ? r.between(lease / 2, 2 * lease) : never;
    one.max_hold = most;
    one.session_lease = limited ? 0 : 2 * lease;
    one.local_time = r.one_in(2) ? 10 * millisecond : most == never ? lease : 2 * most;
    if (p.tells() && r.one_in(2)) one.linger = r.between(50, 2000) * millisecond;
    add_threads(r, one, 1 + r.below(3), [&] {
      step s{.think = r.between(0, r.one_in(2) ? 10 : 500) * millisecond};
      s.hold = limited ? r.between(0, most / 10 * 9) : r.between(0, 100) * millisecond;
      if (p.names[0].kind == lock_kind::recursive) s.how = step::style::standard;
      s.otherwise = !limited && r.one_in(2);
      return s;
    });
  }
}

// Sessions close before they have read the answers to their last releases, and one message is lost.
void close_with_unread_answers(random_source& r, plan& p) {
  set_up(p, 2 + r.below(3), r.between(20, 40) * second);
  p.network.lose_request = static_cast<unsigned>(20 + r.below(150));
  if (r.one_in(2)) p.network.lose_reply = static_cast<unsigned>(r.below(150));
  p.command_timeout = r.between(50, 300) * millisecond;
  if (p.store >= store_kind::contenders) p.store = store_kind::told;
  for (auto& one : p.processes) {
    one.begins = r.between(0, 1000) * millisecond;
    one.unconfirmed = true;
    for (auto more = 1 + r.below(2); more > 0; --more) {
      step s{.think = r.between(0, 50) * millisecond, .name = r.below(p.names.size())};
      if (p.names[s.name].kind == lock_kind::recursive) s.how = step::style::standard;
      s.hold = r.between(0, 20) * millisecond;
      give(one, {s});
    }
  }
}

// A writer becomes a reader, and then a writer behind it gives up, which had kept a reader waiting.
void leave_behind_a_former_writer(random_source& r, plan& p) {
  set_up(p, 3, r.between(3, 6) * second);
  p.names = {{lock_kind::shared}};
  const nanos then = r.between(1000, 2000) * millisecond;
  step reads_on{.hold = r.between(12, 18) * second, .what = step::inside::downgrade};
  reads_on.soon = then;
  give(p.processes[0], {reads_on});
  const nanos asks = r.between(50, 500) * millisecond;
  give(p.processes[1], {{.think = asks, .wait = then + r.between(500, 3000) * millisecond}});
  for (auto more = 1 + r.below(2); more > 0; --more) {
    const nanos later = asks + r.between(20, 2500) * millisecond;
    give(p.processes[2], {{.think = later, .shared = true}});
  }
}

// Threads read one lock each, and write to one that others read.
void write_to_what_others_read(random_source& r, plan& p) {
  make_punctual(p);
  p.names.assign(2 + r.below(2), {lock_kind::shared});
  p.for_each_step([&](step& s, const process_plan&) {
    s.shared = !r.one_in(8);
    s.form = r.one_in(4) ? 0 : 7;
    s.weight = 2;
    s.name = r.below(p.names.size());
    s.wait = r.between(2, 6) * second;
    s.hold = r.between(50, 500) * millisecond;
    s.think = r.between(0, 100) * millisecond;
    s.stop_after = never;
  });
}

// A process stands still for longer than its lease, while it holds a majority.
void stand_still_with_a_majority(random_source& r, plan& p) {
  const nanos lease = r.between(400, 2000) * millisecond;
  set_up(p, 1 + r.below(3), lease);
  make_votes(r, p);
  for (auto& one : p.processes) {
    add_threads(r, one, 1 + r.below(2), [&] {
      return step{.think = r.between(0, lease / 4), .hold = r.between(lease / 2, 4 * lease)};
    });
  }
  for (nanos at = r.between(100, 1000) * millisecond; p.faults.size() < 4;) {
    const nanos length = r.between(lease, 3 * lease);
    p.faults.push_back({.what = goes_wrong::pause, .at = at, .length = length});
    p.faults.back().process = r.below(p.processes.size());
    at += length + r.between(lease / 2, 3 * lease);
  }
}

// Waits with limits behind a long hold. The server falls silent just before the end of one of them.
void fall_silent_before_the_end(random_source& r, plan& p) {
  set_up(p, 2, r.between(10, 20) * second);
  tell_at_once_by_records(p);
  static constexpr lock_kind kinds[] = {lock_kind::fair, lock_kind::shared, lock_kind::semaphore};
  p.names = {{kinds[r.below(3)]}};
  p.command_timeout = r.between(500, 2000) * millisecond;
  give(p.processes[0], {{.hold = 8 * second}});
  auto& waits = p.processes[1];
  waits.begins = 50 * millisecond;
  const step s{.think = r.between(20, 500) * millisecond,
               .wait = r.between(1100, 5000) * millisecond};
  for (auto more = 1 + r.below(3); more > 0; --more) give(waits, {s});
  const nanos before = r.between(1, std::min(p.command_timeout, s.wait - 400 * millisecond));
  p.faults = {{.what = goes_wrong::freeze,
               .at = waits.begins + s.think + s.wait - before,
               .length = r.between(p.command_timeout, 4 * second)}};
}

// An operator takes a name from a thread that waits for names of two stores, and has some of both.
// The leases are long, so that what is left behind stays.
void lose_a_name_of_one_store(random_source& r, plan& p) {
  set_up(p, 3, r.between(12, 30) * second);
  p.store = store_kind::told;
  p.others = {store_kind::told};
  p.names.clear();
  for (std::size_t i = 0; i < 4; ++i) p.names.push_back({.kind = some_mutex(r), .store = i / 2});
  const auto awaited = r.below(2);
  const nanos until = r.between(1500, 5000) * millisecond;
  give(p.processes[0], {{.name = 2 * awaited + r.below(2), .hold = until}});
  step all{.think = r.between(50, 200) * millisecond, .several = true};
  if (r.one_in(2)) all.form = 5, all.how = step::style::callback, all.more = 1;
  give(p.processes[1], {all});
  step takes{.think = r.between(300, 1000) * millisecond, .forces = true};
  takes.name = 2 * (1 - awaited) + r.below(2);
  takes.hold = r.between(0, 300) * millisecond;
  give(p.processes[2], {takes});
}

// Tokens are given back as soon as they were taken, while the bucket is full or nearly so.
void give_tokens_back_at_once(random_source& r, plan& p) {
  make_punctual(p);
  p.machine.preempt_permille = 0;
  for (auto& n : p.names) n.local = 0, n.grows = n.shrinks = false;
  p.for_each_step([&](step& s, const process_plan&) {
    if (p.names[s.name].kind != lock_kind::limiter) return;
    s.deed = static_cast<unsigned>(r.below(3));
    s.think = r.between(0, 3) * second;
    if (r.one_in(2)) s.hold = r.between(0, 10) * millisecond;
  });
}

}  // namespace

void mix_followers(plan& p) {
  random_source r(random_source(p.seed + 137'000'000'000).next());
  if (p.processes.empty()) return;
  const bool votes = p.names.size() == 1 && p.names[0].kind == lock_kind::redlock;
  switch (p.about) {
    case theme::locks:
    case theme::scripts:
    case theme::rows:
      if (!p.has_only_locks() || !p.others.empty()) return;
      if (p.store == store_kind::contenders && r.one_in(4))
        return leave_behind_a_former_writer(r, p);
      if (r.one_in(6)) return follow_on_other_terms(r, p);
      if (p.about != theme::rows && r.one_in(6)) return close_with_unread_answers(r, p);
      if (p.about != theme::rows && r.one_in(6)) return fall_silent_before_the_end(r, p);
      return;
    case theme::deadlocks:
      if (r.one_in(4)) write_to_what_others_read(r, p);
      return;
    case theme::stores:
      if (votes && r.one_in(4)) return stand_still_with_a_majority(r, p);
      if (!votes && r.one_in(4)) return lose_a_name_of_one_store(r, p);
      return;
    case theme::rates:
      if (p.names.size() == 1 && r.one_in(4)) give_tokens_back_at_once(r, p);
      return;
    default:
      return;
  }
}

}  // namespace simulation
