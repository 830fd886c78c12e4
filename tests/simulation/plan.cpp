#include "simulation/plan.hpp"

#include <algorithm>
#include <array>

#include "simulation/encounters.hpp"
#include "simulation/patience.hpp"

namespace simulation {

namespace {

template <class T, std::size_t N>
T one_of(random_source& r, const std::array<T, N>& all) {
  return all[r.below(N)];
}

#ifdef HOLDFAST_WITH_REDIS
constexpr auto with_scripts = store_kind::scripts;
#else
constexpr auto with_scripts = store_kind::told;
#endif

store_kind with_rows(random_source& r) {
#ifdef HOLDFAST_WITH_SQL
  return r.one_in(2) ? store_kind::postgres : store_kind::mariadb;
#else
  return r.one_in(2) ? store_kind::told : store_kind::untold;
#endif
}

// Every fourth seed includes features that were added later; the plans of the other seeds stay
// unchanged.
bool ventures(const plan& p) noexcept { return p.seed % 4 == 3; }

step make_step(random_source& r, const plan& p, nanos lease) {
  using inside = step::inside;
  step s;
  s.name = r.below(p.names.size());
  const auto& name = p.names[s.name];
  s.think =
      r.one_in(3) ? 0 : r.between(0, one_of<nanos, 3>(r, {millisecond, 50 * millisecond, lease}));
  s.hold = r.one_in(4)
               ? 0
               : r.between(
                     0, one_of<nanos, 4>(r, {millisecond, 30 * millisecond, lease / 2, lease * 2}));
  switch (r.below(4)) {
    case 0:
      s.wait = 0;
      break;
    case 1:
      s.wait = r.between(0, one_of<nanos, 3>(r, {5 * millisecond, 300 * millisecond, 3 * lease}));
      break;
    default:
      break;
  }
  if (r.one_in(8)) s.stop_after = r.between(0, lease);
  if (r.one_in(3)) s.how = step::style::standard;
  if (r.one_in(6)) s.how = step::style::callback;
  if (name.kind == lock_kind::recursive) s.how = step::style::standard;
  if (name.kind == lock_kind::shared) s.shared = r.one_in(2);
  if (name.kind == lock_kind::semaphore) {
    s.weight = static_cast<std::uint32_t>(1 + r.below(name.capacity));
    if (s.how == step::style::standard) s.how = step::style::lease;
  }
  switch (r.below(6)) {
    case 0:
      s.what = inside::extend;
      break;
    case 1:
      s.what = inside::extend_to;
      break;
    case 2:
      s.what = inside::extend_late;
      break;
    default:
      if (name.kind == lock_kind::shared && !r.one_in(3)) {
        s.what = s.shared ? inside::upgrade : inside::downgrade;
      }
      if (name.kind == lock_kind::recursive) s.what = inside::again;
      break;
  }
  if (r.one_in(2)) s.back = step::end::destroy;
  const bool recursive = std::any_of(p.names.begin(), p.names.end(),
                                     [](const auto& n) { return n.kind == lock_kind::recursive; });
  s.several = !recursive && r.one_in(5);
  const auto& out = plans_leave_out();
  if (out.several) s.several = false;
  if (out.extend_late && s.what == inside::extend_late) s.what = inside::nothing;
  if (out.downgrade && s.what == inside::downgrade) s.what = inside::nothing;
  if (ventures(p)) {
    if (r.one_in(4)) s.hold = r.between(lease / 2, 2 * lease);
    if (r.one_in(2)) s.more = static_cast<unsigned>(1 + r.below(4));
    s.forces = !s.several && r.one_in(8);
  }
  return s;
}

}  // namespace

std::size_t own_name(const plan& p, std::size_t name) noexcept {
  const bool shares = p.names[name].kind == lock_kind::expiring && name > 0;
  return shares ? name - 1 : name;
}

bool without_waiting(const plan& p, const step& s) noexcept {
  const bool asked =
      p.about == theme::async || p.about == theme::rates || p.about == theme::permits;
  const bool votes = p.names[s.name].kind == lock_kind::redlock && s.deed > 0;
  return votes || (asked && s.how == step::style::callback);
}

bool plan::calm() const noexcept {
  return faults.empty() && network.lose_request == 0 && network.lose_reply == 0 &&
         network.slow_request == 0 && network.slow_reply == 0 && network.slow_notification == 0 &&
         network.fail_done == 0 && network.fail_changed == 0 && network.break_listener == 0 &&
         network.answers_all() && machine.stall_per_100k == 0;
}

bool plan::only_deaths() const noexcept {
  plan rest = *this;
  std::erase_if(rest.faults, [](const auto& f) { return f.what == fault_plan::kind::kill; });
  return store == store_kind::sees_death && others.empty() && rest.calm() &&
         machine.slow_permille == 0;
}

bool plan::only_short_cuts() const noexcept {
  nanos shortest = never;
  for (const auto& one : processes) shortest = std::min(shortest, one.lease);
  plan rest = *this;
  std::erase_if(rest.faults, [&](const auto& f) {
    return f.what == fault_plan::kind::cut && 4 * f.length <= shortest;
  });
  return rest.calm() && machine.slow_permille == 0 && renews() && faults.size() <= 1;
}

bool plan::only_late_answers(nanos most) const noexcept {
  plan rest = *this;
  rest.network.slow_reply = 0;
  return rest.calm() && machine.slow_permille == 0 && network.slowest_late <= most;
}

bool plan::refuses_row(std::size_t name, nanos from, nanos to) const noexcept {
  return std::any_of(faults.begin(), faults.end(), [&](const auto& f) {
    const bool it = f.what == fault_plan::kind::refuse_row && f.name == name;
    return it && f.at <= to && f.at + f.length >= from;
  });
}

bool plan::renewals_come_in_time() const noexcept {
  plan rest = *this;
  rest.faults.clear();
  if (!renews() || !rest.only_late_answers(never) || machine.preempt_permille != 0) return false;
  nanos shortest = never;
  for (const auto& one : processes) shortest = std::min(shortest, one.lease);
  // A waiter's first grant lasts for half a second.
  const bool may_be_late =
      100 * network.slowest_late <= 39 * shortest && longest_lease() <= second / 2;
  const bool one_request = store < store_kind::contenders;
  if (network.slow_reply != 0) return faults.empty() && may_be_late && one_request;
  // A renewal that failed is retried soon, so the rest of the lease is enough for it.
  const bool bears_half = one_request && others.empty() && 20 * command_timeout <= shortest &&
                          has_a_name_for_each_thread();
  nanos last = -std::max(shortest, second);
  for (const auto& f : faults) {
    using kind = fault_plan::kind;
    const bool short_one = f.what == kind::cut && f.length <= millisecond;
    const bool half =
        bears_half && (f.what == kind::cut || f.what == kind::freeze) && 2 * f.length <= shortest;
    if ((!short_one && !half) || f.at < last + (half ? shortest : second)) return false;
    last = half ? f.at + f.length : f.at;
  }
  return true;
}

bool plan::has_a_name_for_each_thread() const noexcept {
  std::vector<int> users(names.size());
  for (const auto& one : processes) {
    for (const auto& t : one.threads) {
      std::vector<bool> mine(names.size());
      for (const step& s : t.steps) {
        if (s.several || s.more > 0 || s.what != step::inside::nothing) return false;
        if (s.hold > 0 && !mine[s.name]) ++users[s.name], mine[s.name] = true;
      }
    }
  }
  return has_only_locks() && std::all_of(users.begin(), users.end(), [](int n) { return n <= 1; });
}

bool plan::renews() const noexcept {
  return std::all_of(processes.begin(), processes.end(),
                     [](const auto& p) { return p.renew && p.max_hold == never; });
}

bool plan::has_only_locks() const noexcept {
  return std::all_of(names.begin(), names.end(),
                     [](const auto& n) { return n.kind < lock_kind::latch; });
}

bool plan::answers_come_in_time() const noexcept {
  plan rest = *this;
  rest.network.slow_request = rest.network.slow_reply = rest.network.slow_notification = 0;
  const nanos least = std::min(command_timeout, second);
  return rest.calm() && others.empty() && store < store_kind::contenders &&
         2 * network.slowest_late + 100 * millisecond < least;
}

nanos plan::longest_lease() const noexcept {
  nanos longest = 0;
  for (const auto& p : processes) longest = std::max({longest, p.lease, p.session_lease});
  return longest;
}

left_out& plans_leave_out() {
  static left_out all;
  return all;
}

namespace {

// No message is lost, but many are late: a holder that counts its lease from the answer would hold
// it too long.
void make_answers_slow(random_source& r, plan& p) {
  p.network.lose_request = p.network.lose_reply = 0;
  p.network.slow_reply = static_cast<unsigned>(100 + r.below(400));
  p.network.slowest_late = one_of<nanos, 3>(r, {100 * millisecond, 300 * millisecond, second});
}

void make_conditions(random_source& r, plan& p, bool calm) {
  p.drift_per_mille = calm ? 0 : static_cast<int>(r.below(11)) - 5;
  p.wall_only_grows = r.one_in(2);
  p.machine.slow_permille = r.one_in(2) ? 0 : static_cast<unsigned>(r.below(20));
  p.machine.preempt_permille =
      r.one_in(2) ? 0 : static_cast<unsigned>(r.one_in(3) ? r.below(300) : r.below(20));
  p.machine.spurious_permille = r.one_in(2) ? 0 : 5;
  if (!calm) {
    const auto rate = [&](unsigned most) {
      return r.one_in(2) ? 0U : static_cast<unsigned>(r.below(most));
    };
    p.network.lose_request = rate(60);
    p.network.lose_reply = rate(60);
    p.network.slow_request = rate(40);
    p.network.slow_reply = rate(40);
    p.network.slow_notification = rate(100);
    p.network.slowest_late = one_of<nanos, 3>(r, {100 * millisecond, second, 4 * second});
    p.network.delivers_late = r.one_in(2);
    if (r.one_in(4)) p.machine.stall_per_100k = static_cast<unsigned>(r.below(200));
    if (ventures(p) && r.one_in(3)) make_answers_slow(r, p);
  }
}

process_plan make_process(random_source& r, const plan& p, nanos lease) {
  process_plan one;
  one.begins = r.between(0, 50 * millisecond);
  one.lease = r.one_in(5) ? 2 * lease : lease;
  if (p.store != store_kind::untold && r.one_in(3)) {
    one.linger = one_of<nanos, 3>(r, {5 * millisecond, 200 * millisecond, 2 * second});
  }
  one.local_time = one_of<nanos, 3>(r, {0, 10 * millisecond, 10 * millisecond});
  one.max_bypass = r.one_in(3) ? 0 : 250;
  if (one.linger == 0 && r.one_in(8)) one.max_hold = r.between(lease / 2, 3 * lease);
  one.renew = !r.one_in(12);
  one.unconfirmed = r.one_in(4);
  if (ventures(p)) {
    if (r.one_in(3)) one.lease = 2 * lease;
    if (r.one_in(4)) one.renew = false;
  }
  return one;
}

void make_threads(random_source& r, const plan& p, process_plan& one, nanos lease) {
  const auto threads = 1 + r.below(3);
  for (std::uint64_t t = 0; t < threads; ++t) {
    thread_plan work;
    const auto steps = 2 + r.below(8);
    for (std::uint64_t s = 0; s < steps; ++s) work.steps.push_back(make_step(r, p, lease));
    one.threads.push_back(std::move(work));
  }
}

void make_faults(random_source& r, plan& p, nanos lease) {
  const auto faults = 1 + r.below(5);
  for (std::uint64_t i = 0; i < faults; ++i) {
    using kind = fault_plan::kind;
    fault_plan f;
    f.what = one_of<kind, 9>(r, {kind::pause, kind::pause, kind::kill, kind::cut, kind::cut,
                                 kind::restart, kind::forget, kind::freeze, kind::freeze});
    f.at = r.between(0, 6 * lease);
    f.length = r.between(millisecond, one_of<nanos, 3>(r, {50 * millisecond, lease, 3 * lease}));
    f.process = r.below(p.processes.size());
    p.faults.push_back(f);
  }
}

plan plan_of_locks(std::uint64_t seed) {
  random_source r(seed * 0x9E3779B97F4A7C15U + 1);
  plan p;
  p.seed = seed;
  p.store = one_of<store_kind, 6>(
      r, {store_kind::told, store_kind::told, store_kind::untold, store_kind::sees_death,
          store_kind::contenders, store_kind::contenders});
  const auto names = 1 + r.below(2);
  for (std::uint64_t i = 0; i < names; ++i) {
    const auto kind = one_of<lock_kind, 7>(
        r, {lock_kind::mutex, lock_kind::mutex, lock_kind::fair, lock_kind::recursive,
            lock_kind::shared, lock_kind::shared, lock_kind::semaphore});
    const std::uint32_t capacity =
        kind == lock_kind::semaphore ? static_cast<std::uint32_t>(1 + r.below(4)) : 1;
    p.names.push_back({kind, capacity});
  }

  const bool calm = r.one_in(3);
  make_conditions(r, p, calm);

  const auto processes = 1 + r.below(3) + (r.one_in(3) ? 0 : 1);
  const nanos lease = one_of<nanos, 3>(r, {300 * millisecond, second, 3 * second});
  for (std::uint64_t i = 0; i < processes; ++i) {
    auto one = make_process(r, p, lease);
    make_threads(r, p, one, lease);
    p.processes.push_back(std::move(one));
  }
  if (!calm && !r.one_in(4)) make_faults(r, p, lease);
  return p;
}

// The same, as far as slots support it.
plan plan_of_slots(std::uint64_t seed, store_kind on) {
  plan p = plan_of_locks(seed);
  p.about = theme::slots;
  p.store = on;
  const bool in_seconds = on != store_kind::told_slots;
  bool counting = false;
  for (auto& n : p.names) {
    counting |= n.kind == lock_kind::semaphore;
    if (n.kind == lock_kind::semaphore) n.kind = lock_kind::counting;
    if (n.kind != lock_kind::counting && n.kind != lock_kind::recursive) n.kind = lock_kind::mutex;
  }
  for (auto& one : p.processes) {
    one.linger = 0;
    if (in_seconds) one.lease = (one.lease + second - 1) / second * second;
    for (auto& t : one.threads) {
      for (auto& s : t.steps) {
        s.shared = false;
        s.weight = 1;
        s.several &= !counting;
        if (p.names[s.name].kind == lock_kind::counting) s.how = step::style::standard;
        if (s.what == step::inside::upgrade || s.what == step::inside::downgrade) {
          s.what = step::inside::nothing;
        }
      }
    }
  }
  return p;
}

// Operations on names that are not locks have a time limit: the other participants may never come.
step make_deed(random_source& r, const plan& p, nanos lease, std::size_t name) {
  step s = make_step(r, p, lease);
  s.name = name;
  s.several = s.shared = false;
  s.weight = static_cast<std::uint32_t>(1 + r.below(3));
  s.deed = static_cast<unsigned>(r.below(8));
  const auto kind = p.names[name].kind;
  if (kind == lock_kind::mutex || kind == lock_kind::semaphore) {
    s.weight = 1;
    s.how = step::style::lease;
  }
  if (kind == lock_kind::election || s.wait != never) return s;
  s.wait = r.between(50 * millisecond, 5 * lease);
  return s;
}

std::vector<name_plan> names_of_a_meeting(random_source& r, store_kind store) {
  const bool records = store != store_kind::contenders;
  name_plan limiter{.kind = lock_kind::limiter};
  limiter.capacity = static_cast<std::uint32_t>(1 + r.below(5));
  limiter.burst = static_cast<std::uint32_t>(3 + r.below(6));
  limiter.per = one_of<nanos, 3>(r, {20 * millisecond, 200 * millisecond, second});
  limiter.at_once = r.one_in(3);
  switch (r.below(records ? 6 : 2)) {
    case 0:
      return {{lock_kind::latch, static_cast<std::uint32_t>(1 + r.below(12))}};
    case 1:
      return {{lock_kind::election}};
    case 2:
      return {{.kind = lock_kind::barrier, .at_once = r.one_in(2)}};
    case 3:
      return {{lock_kind::mutex}, {lock_kind::condition}};
    case 4:
      return {limiter};
    default:
      return {{lock_kind::semaphore, static_cast<std::uint32_t>(1 + r.below(3))},
              limiter,
              {lock_kind::admission}};
  }
}

// Latches, barriers, condition variables, limiters, elections, admission.
plan plan_of_meetings(std::uint64_t seed) {
  random_source r(seed * 0x9E3779B97F4A7C15U + 3);
  plan p;
  p.seed = seed;
  p.about = theme::meetings;
  p.store = one_of<store_kind, 5>(r, {store_kind::told, store_kind::told, store_kind::untold,
                                      store_kind::sees_death, store_kind::contenders});
  p.names = names_of_a_meeting(r, p.store);
  const bool calm = r.one_in(3);
  make_conditions(r, p, calm);
  const nanos lease = one_of<nanos, 3>(r, {300 * millisecond, second, 3 * second});
  const auto processes = 1 + r.below(4);
  const auto steps = 2 + r.below(8);
  for (std::uint64_t i = 0; i < processes; ++i) {
    auto one = make_process(r, p, lease);
    one.linger = 0;
    one.threads.resize(1 + r.below(3));
    for (auto& t : one.threads) {
      for (std::uint64_t s = 0; s < steps; ++s) {
        t.steps.push_back(make_deed(r, p, lease, r.below(p.names.size())));
      }
    }
    p.processes.push_back(std::move(one));
  }
  for (auto& n : p.names) {
    if (n.kind != lock_kind::barrier) continue;
    n.capacity = 0;
    for (const auto& one : p.processes) {
      n.capacity += static_cast<std::uint32_t>(one.threads.size());
    }
  }
  if (!calm && !r.one_in(4)) make_faults(r, p, lease);
  return p;
}

// Two stores that are combined, or three that vote. A process is cut off from all of them until its
// leases have ended.
void cut_from_all(random_source& r, plan& p, nanos lease) {
  fault_plan f{.what = fault_plan::kind::cut,
               .at = r.between(lease / 2, 4 * lease),
               .length = r.between(lease, 3 * lease),
               .process = r.below(p.processes.size())};
  for (f.store = 0; f.store <= p.others.size(); ++f.store) p.faults.push_back(f);
}

plan plan_of_stores(std::uint64_t seed) {
  random_source r(seed * 0x9E3779B97F4A7C15U + 5);
  plan p;
  p.seed = seed;
  p.about = theme::stores;
  const bool votes = r.one_in(2);
  const auto kind = [&] {
    return one_of<store_kind, 5>(r, {store_kind::told, store_kind::untold, store_kind::sees_death,
                                     votes ? store_kind::told : store_kind::contenders,
                                     votes ? store_kind::untold : store_kind::told_slots});
  };
  p.store = kind();
  for (int i = votes ? 2 : 1; i > 0; --i) p.others.push_back(kind());
  if (votes) p.names = {{lock_kind::redlock}};
  if (!votes) p.names = {{.store = 0}, {.store = 1}, {lock_kind::both}};
  const bool calm = r.one_in(3);
  make_conditions(r, p, calm);
  const auto processes = 1 + r.below(4);
  const nanos lease = one_of<nanos, 3>(r, {300 * millisecond, second, 3 * second});
  for (std::uint64_t i = 0; i < processes; ++i) {
    auto one = make_process(r, p, lease);
    one.lease = lease;
    one.renew = true;
    one.linger = 0;
    one.max_hold = never;
    make_threads(r, p, one, lease);
    for (auto& t : one.threads) {
      for (auto& s : t.steps) s.several &= !votes;
    }
    p.processes.push_back(std::move(one));
  }
  if (!calm && !r.one_in(4)) make_faults(r, p, lease);
  for (auto& f : p.faults) f.store = r.below(p.others.size() + 1);
  if (!calm && ventures(p) && r.one_in(2)) cut_from_all(r, p, lease);
  return p;
}

// Sessions that close while operations are pending, and callbacks that continue.
plan plan_of_endings(std::uint64_t seed) {
  random_source r(seed * 0x9E3779B97F4A7C15U + 7);
  plan p;
  p.seed = seed;
  p.about = theme::endings;
  p.store = one_of<store_kind, 5>(r, {store_kind::told, store_kind::told, store_kind::untold,
                                      store_kind::sees_death, store_kind::contenders});
  for (std::uint64_t i = 1 + r.below(2); i > 0; --i) {
    const auto kind = one_of<lock_kind, 4>(
        r, {lock_kind::mutex, lock_kind::fair, lock_kind::shared, lock_kind::semaphore});
    const auto capacity = static_cast<std::uint32_t>(1 + r.below(4));
    p.names.push_back({kind, kind == lock_kind::semaphore ? capacity : 1});
  }
  const bool calm = r.one_in(3);
  make_conditions(r, p, calm);
  const nanos lease = one_of<nanos, 3>(r, {300 * millisecond, second, 3 * second});
  for (std::uint64_t i = 1 + r.below(4); i > 0; --i) {
    auto one = make_process(r, p, lease);
    make_threads(r, p, one, lease);
    for (auto& t : one.threads) {
      for (auto& s : t.steps) {
        s.deed = static_cast<unsigned>(r.below(7));
        s.think = r.one_in(2) ? 0 : r.between(0, 20 * millisecond);
      }
    }
    p.processes.push_back(std::move(one));
  }
  if (!calm && !r.one_in(4)) make_faults(r, p, lease);
  return p;
}

// A barrier that breaks: its participants are away for too long, die, or an operator removes them.
// There are more threads than places, so a phase may end without the threads of the phase before.
plan plan_of_barriers(std::uint64_t seed) {
  random_source r(seed * 0x9E3779B97F4A7C15U + 11);
  plan p;
  p.seed = seed;
  p.about = theme::barriers;
  p.store = one_of<store_kind, 6>(r, {store_kind::told, store_kind::told, store_kind::untold,
                                      store_kind::sees_death, with_scripts, with_scripts});
  p.names = {{.kind = lock_kind::barrier, .at_once = r.one_in(3)}};
  const bool calm = r.one_in(5);
  make_conditions(r, p, calm);
  if (r.one_in(2)) p.network = {};
  const nanos lease = one_of<nanos, 3>(r, {300 * millisecond, 300 * millisecond, second});
  std::uint32_t all = 0;
  for (std::uint64_t i = 2 + r.below(3); i > 0; --i) {
    auto one = make_process(r, p, lease);
    using meets = process_plan::meets;
    one.how =
        one_of<meets, 4>(r, {meets::by_calls, meets::by_calls, meets::with_a_limit, meets::twice});
    one.threads.resize(r.one_in(2) ? 1 : 2 + r.below(2));
    all += static_cast<std::uint32_t>(one.threads.size());
    const auto steps = 4 + r.below(8);
    for (auto& t : one.threads) {
      for (std::uint64_t s = 0; s < steps; ++s) {
        step deed = make_deed(r, p, lease, 0);
        deed.wait = r.between(1, r.one_in(5) ? lease : 8 * lease);
        t.steps.push_back(deed);
      }
    }
    p.processes.push_back(std::move(one));
  }
  const auto spare = static_cast<std::uint32_t>(r.below(3));
  p.names[0].capacity = std::max<std::uint32_t>(2, all - std::min(spare, all));
  if (calm) return p;
  for (std::uint64_t i = 2 + r.below(5); i > 0; --i) {
    using kind = fault_plan::kind;
    fault_plan f;
    f.what = one_of<kind, 10>(
        r, {kind::pause, kind::pause, kind::pause, kind::kill, kind::cut, kind::evict, kind::evict,
            kind::evict, kind::restart, r.one_in(3) ? kind::forget : kind::freeze});
    f.at = r.between(0, 10 * lease);
    f.length = r.between(lease / 2, 3 * lease);
    f.process = r.below(p.processes.size());
    p.faults.push_back(f);
  }
  return p;
}

// Asynchronous latches, condition variables, elections and admission. Barriers and limiters have
// themes of their own.
plan plan_of_async(std::uint64_t seed) {
  random_source r(random_source(seed + 13'000'000'000).next());
  const auto elsewhere = [](const plan& p) {
    const auto kind = p.names.front().kind;
    return kind == lock_kind::barrier || kind == lock_kind::limiter;
  };
  plan p = plan_of_meetings(r.next());
  while (elsewhere(p)) p = plan_of_meetings(r.next());
  p.seed = seed;
  p.about = theme::async;
  if (p.store != store_kind::contenders && r.one_in(3)) p.store = with_scripts;
  for (auto& one : p.processes) {
    for (auto& t : one.threads) {
      for (auto& s : t.steps) {
        if (!r.one_in(3)) s.how = step::style::callback;
      }
    }
  }
  return p;
}

// Limiters: by key, with rules that change, with reservations, and with tokens that are taken
// ahead.
plan plan_of_rates(std::uint64_t seed) {
  random_source r(random_source(seed + 17'000'000'000).next());
  const auto limited = [](const plan& p) {
    const auto kind = p.names.back().kind;
    return kind == lock_kind::limiter || kind == lock_kind::admission;
  };
  plan p = plan_of_meetings(r.next());
  while (!limited(p)) p = plan_of_meetings(r.next());
  p.seed = seed;
  p.about = theme::rates;
  if (r.one_in(2)) p.store = with_scripts;
  for (auto& n : p.names) {
    if (n.kind != lock_kind::limiter || p.names.size() > 1) continue;
    if (r.one_in(2)) n.keys = static_cast<std::uint32_t>(2 + r.below(2));
    n.grows = r.one_in(3);
    if (r.one_in(4)) n.local = 3;
  }
  return p;
}

// Locks with worse faults: machines sleep, a proxy delivers after minutes, stores are full, accept
// no writes, drop a name, or have clocks that jump.
plan plan_of_worse(std::uint64_t seed) {
  random_source r(random_source(seed + 19'000'000'000).next());
  plan p = plan_of_locks(r.next());
  while (p.calm()) p = plan_of_locks(r.next());
  p.seed = seed;
  p.about = theme::worse;
  // Long leases: their threads sleep for long, too.
  if (r.one_in(2)) {
    for (auto& one : p.processes) {
      one.lease *= 4;
      for (auto& t : one.threads) {
        for (auto& s : t.steps) s.hold *= 4;
      }
    }
  }
  if (p.store != store_kind::contenders && r.one_in(2)) p.store = with_scripts;
  if (r.one_in(4)) {
    p.network.slowest_late = r.between(20 * second, 150 * second);
    p.network.slow_request = static_cast<unsigned>(1 + r.below(20));
    p.network.delivers_late = true;
  }
  const nanos lease = p.longest_lease();
  for (std::uint64_t i = 1 + r.below(4); i > 0; --i) {
    using kind = fault_plan::kind;
    fault_plan f;
    f.what = one_of<kind, 8>(r, {kind::suspend, kind::suspend, kind::suspend, kind::full,
                                 kind::full, kind::read_only, kind::lose_key, kind::step});
    f.at = r.between(0, 6 * lease);
    f.length = r.between(lease / 4, 3 * lease);
    f.process = r.below(p.processes.size());
    p.faults.push_back(f);
  }
  // A store that loses a name after its clock was set back forgets the earlier fences, too.
  const auto jumps = [](const fault_plan& f) { return f.what == fault_plan::kind::step; };
  if (std::any_of(p.faults.begin(), p.faults.end(), jumps)) {
    std::erase_if(p.faults, [](const fault_plan& f) {
      return f.what == fault_plan::kind::forget || f.what == fault_plan::kind::lose_key;
    });
  }
  return p;
}

// The same plans as for locks and meetings, run with the library's scripts; limiters are excluded.
plan plan_of_scripts(std::uint64_t seed) {
  plan p = seed % 2 == 0 ? plan_of_locks(seed) : plan_of_meetings(seed);
  const bool limits = std::any_of(p.names.begin(), p.names.end(),
                                  [](const auto& n) { return n.kind == lock_kind::limiter; });
  if (limits) p = plan_of_locks(seed);
  p.about = theme::scripts;
  p.store = store_kind::scripts;
  return p;
}

// A session that stays for a moment: when it leaves, it removes the records that it leaves free,
// and the names begin anew.
process_plan make_passer_by(random_source& r, const plan& p, nanos lease) {
  auto one = make_process(r, p, lease);
  one.begins = r.between(0, 4 * lease);
  one.renew = true;
  one.linger = 0;
  one.threads.resize(1);
  for (auto left = 1 + r.below(3); left > 0; --left) {
    const auto name = r.below(p.names.size());
    const bool is_lock = p.names[name].kind < lock_kind::latch;
    auto s = is_lock ? make_step(r, p, lease) : make_deed(r, p, lease, name);
    s.think = r.one_in(2) ? 0 : r.between(0, 50 * millisecond);
    one.threads.front().steps.push_back(s);
  }
  return one;
}

// Many short sessions: a record that one session has read is acquired, released and removed by
// another.
plan plan_of_a_crowd(std::uint64_t seed) {
  random_source r(seed * 0x9E3779B97F4A7C15U + 13);
  plan p;
  p.seed = seed;
  for (auto more = 1 + r.below(2); more > 0; --more) {
    p.names.push_back(
        {one_of<lock_kind, 3>(r, {lock_kind::mutex, lock_kind::fair, lock_kind::shared})});
  }
  const bool calm = r.one_in(6);
  make_conditions(r, p, calm);
  const nanos lease = one_of<nanos, 3>(r, {300 * millisecond, second, 3 * second});
  const nanos span = one_of<nanos, 3>(r, {30 * millisecond, 300 * millisecond, second});
  if (!calm) {
    p.network.slow_request = 10 + static_cast<unsigned>(r.below(90));
    p.network.slowest_late = span;
  }
  for (auto more = 6 + r.below(12); more > 0; --more) {
    auto one = make_passer_by(r, p, lease);
    one.begins = r.between(0, 2 * span);
    if (r.one_in(2)) one.threads.front().steps.resize(1);
    for (auto& s : one.threads.front().steps) {
      s.hold = r.one_in(4) ? r.between(0, span / 4) : 0;
      s.wait = r.one_in(2) ? 0 : r.between(0, span);
    }
    p.processes.push_back(std::move(one));
  }
  if (!p.calm() && r.one_in(3)) make_faults(r, p, lease);
  return p;
}

// Faults that only a database server has.
void make_faults_of_rows(random_source& r, plan& p) {
  using kind = fault_plan::kind;
  for (auto& f : p.faults) {
    if (f.what == kind::freeze && r.one_in(2)) f.what = kind::read_only;
    if (f.what == kind::restart && r.one_in(3)) f.what = kind::clock_back;
    if (f.what == kind::forget && r.one_in(4)) f.what = kind::clock_forward;
  }
}

// The same plans as for locks and meetings, run with the drivers of PostgreSQL and MariaDB on rows.
plan plan_of_rows(std::uint64_t seed) {
  plan p = seed % 3 == 0   ? plan_of_meetings(seed)
           : seed % 3 == 1 ? plan_of_locks(seed)
                           : plan_of_a_crowd(seed);
  random_source r(seed * 0x9E3779B97F4A7C15U + 11);
  p.about = theme::rows;
  p.store = r.one_in(2) ? store_kind::postgres : store_kind::mariadb;
  const nanos lease = p.longest_lease();
  const bool has_barrier = std::any_of(p.names.begin(), p.names.end(),
                                       [](const auto& n) { return n.kind == lock_kind::barrier; });
  for (auto more = has_barrier ? 0 : r.below(5); more > 0; --more) {
    p.processes.push_back(make_passer_by(r, p, lease));
  }
  for (auto& one : p.processes) {
    if (p.store == store_kind::mariadb) one.linger = 0;  // nobody would notify a holder
  }
  make_faults_of_rows(r, p);
  return p;
}

// Permits that outlive the sessions that got them, alone or beside those of a semaphore.
plan plan_of_permits(std::uint64_t seed) {
  random_source r(random_source(seed + 23'000'000'000).next());
  plan p;
  p.seed = seed;
  p.about = theme::permits;
  p.store = one_of<store_kind, 6>(r, {store_kind::told, store_kind::told, store_kind::untold,
                                      store_kind::sees_death, with_scripts, with_rows(r)});
  const auto capacity = static_cast<std::uint32_t>(1 + r.below(3));
  const bool alone = !r.one_in(3);
  if (!alone) p.names.push_back({lock_kind::semaphore, capacity});
  p.names.push_back({lock_kind::expiring, capacity});
  const bool calm = r.one_in(3);
  make_conditions(r, p, calm);
  const nanos lease = one_of<nanos, 3>(r, {300 * millisecond, second, 3 * second});
  for (auto more = 1 + r.below(4); more > 0; --more) {
    auto one = make_process(r, p, lease);
    one.linger = 0;
    one.threads.resize(1 + r.below(3));
    for (auto& t : one.threads) {
      for (auto steps = 3 + r.below(9); steps > 0; --steps) {
        const auto name = r.below(p.names.size());
        t.steps.push_back(make_deed(r, p, lease, name));
        t.steps.back().forces =
            false;  // it would take permits away, and the book of permits must know whose call did
        if (p.names[name].kind == lock_kind::expiring && r.one_in(3)) t.steps.back().wait = never;
      }
    }
    p.processes.push_back(std::move(one));
  }
  if (!calm && !r.one_in(4)) make_faults(r, p, lease);
  for (auto& f : p.faults) {
    if (alone && f.what == fault_plan::kind::freeze) f.what = fault_plan::kind::evict;
  }
  return p;
}

// Threads that acquire locks one inside the other, often in different orders.
plan plan_of_deadlocks(std::uint64_t seed) {
  random_source r(random_source(seed + 29'000'000'000).next());
  plan p;
  p.seed = seed;
  p.about = theme::deadlocks;
  p.store = one_of<store_kind, 6>(r, {store_kind::told, store_kind::told, store_kind::untold,
                                      store_kind::sees_death, with_scripts, with_rows(r)});
  for (auto more = 2 + r.below(3); more > 0; --more) {
    p.names.push_back(
        {one_of<lock_kind, 6>(r, {lock_kind::mutex, lock_kind::mutex, lock_kind::mutex,
                                  lock_kind::fair, lock_kind::recursive, lock_kind::shared})});
  }
  const bool calm = r.one_in(2);
  make_conditions(r, p, calm);
  // A confirmation that no thread waits for arrives when the wait is long over.
  if (!calm && r.one_in(4)) {
    p.network.slowest_late = 15 * second;
    p.network.slow_request = static_cast<unsigned>(50 + r.below(200));
    p.network.delivers_late = true;
  }
  const bool has_shared = std::any_of(p.names.begin(), p.names.end(),
                                      [](const auto& n) { return n.kind == lock_kind::shared; });
  const nanos lease = one_of<nanos, 2>(r, {second, 3 * second});
  for (auto more = 2 + r.below(3); more > 0; --more) {
    auto one = make_process(r, p, lease);
    one.max_hold = never;
    one.renew = true;
    if (p.store == store_kind::mariadb) one.linger = 0;  // nobody would notify a holder
    one.threads.resize(1 + r.below(2));
    for (auto& t : one.threads) {
      for (auto steps = 2 + r.below(4); steps > 0; --steps) {
        auto s = make_step(r, p, lease);
        s.weight = static_cast<std::uint32_t>(2 + r.below(2));
        s.deed = static_cast<unsigned>(r.below(8));
        if (s.wait == 0 && r.one_in(2)) s.wait = r.between(second, 4 * second);
        // The deadlock search does not see that a reader waits behind a writer: such a ring ends by
        // its time limits only.
        if (has_shared && s.wait == never) s.wait = r.between(second, 4 * second);
        t.steps.push_back(s);
      }
    }
    p.processes.push_back(std::move(one));
  }
  if (!p.calm() && !r.one_in(4)) make_faults(r, p, lease);
  return p;
}

// The same with memcached's own driver. Each end of the server loses all data.
plan plan_of_items(std::uint64_t seed) {
  random_source r(random_source(seed + 31'000'000'000).next());
  plan p = plan_of_slots(r.next(), store_kind::memcached);
  p.seed = seed;
  p.about = theme::items;
  using kind = fault_plan::kind;
  for (auto& f : p.faults) {
    if (f.what == kind::restart) f.what = kind::forget;
    if (f.what == kind::freeze && r.one_in(2)) f.what = kind::lose_key;
    if (f.what == kind::cut && r.one_in(3)) f.what = kind::full;
  }
  return p;
}

// The same with locks of the server's connections. Each end of the server ends them all.
plan plan_of_sessions(std::uint64_t seed) {
  plan p = plan_of_locks(random_source(seed + 37'000'000'000).next());
  p.seed = seed;
  p.about = theme::sessions;
  p.store = store_kind::advisory;
  for (auto& n : p.names) {
    const bool shares = n.kind == lock_kind::shared || n.kind == lock_kind::semaphore;
    if (shares) n = {lock_kind::shared, 1};
    if (n.kind == lock_kind::fair) n.kind = lock_kind::mutex;
  }
  for (auto& one : p.processes) {
    one.linger = 0;
    for (auto& t : one.threads) {
      for (auto& s : t.steps) {
        s.weight = 1;
        s.forces = false;  // unsupported
      }
    }
  }
  for (auto& f : p.faults) {
    if (f.what == fault_plan::kind::restart) f.what = fault_plan::kind::forget;
  }
  return p;
}

plan basic_plan(const seed_of& s) {
  switch (s.about) {
    case theme::sessions:
      return plan_of_sessions(s.number);
    case theme::deadlocks:
      return plan_of_deadlocks(s.number);
    case theme::items:
      return plan_of_items(s.number);
    case theme::permits:
      return plan_of_permits(s.number);
    case theme::rows:
      return plan_of_rows(s.number);
    case theme::scripts:
      return plan_of_scripts(s.number);
    case theme::slots:
      return plan_of_slots(s.number,
                           s.number % 2 == 0 ? store_kind::slots : store_kind::told_slots);
    case theme::meetings:
      return plan_of_meetings(s.number);
    case theme::endings:
      return plan_of_endings(s.number);
    case theme::worse:
      return plan_of_worse(s.number);
    case theme::async:
      return plan_of_async(s.number);
    case theme::rates:
      return plan_of_rates(s.number);
    case theme::barriers:
      return plan_of_barriers(s.number);
    case theme::stores:
      return plan_of_stores(s.number);
    default:
      return plan_of_locks(s.number);
  }
}

bool arrange_more(plan& p) {
  random_source r(random_source(p.seed + 61'000'000'000).next());
  if (!r.one_in(3)) return false;
  switch (r.below(3)) {
    case 0:
      return arrange_more_locks(r, p);
    case 1:
      return arrange_more_stores(r, p);
    default:
      return arrange_more_meetings(r, p);
  }
}

// The arrangements that were added later leave some of the plans to the earlier ones.
void arrange_something(plan& p) {
  using way = bool (*)(plan&);
  static constexpr way all[] = {arrange_encounters, arrange_patience, arrange_more_trouble,
                                arrange_more,       provoke_more,     arrange_endings_of_leases,
                                arrange_turns,      arrange_terms,    arrange_several,
                                arrange_news,       arrange_unlike,   arrange_unlike};
  const auto ways = std::size(all) - (p.seed < bearing_seeds ? 1 : 0) -
                    (p.seed < turn_seeds ? 1 : 0) - (p.seed < term_seeds ? 1 : 0) -
                    (p.seed < several_seeds ? 1 : 0) - (p.seed < news_seeds ? 1 : 0) -
                    (p.seed < unlike_seeds ? 2 : 0);
  const auto first = random_source(random_source(p.seed + 79'000'000'000).next()).below(ways);
  for (std::size_t i = 0; i < ways; ++i) {
    if (all[(first + i) % ways](p)) return;
  }
  provoke(p);
}

}  // namespace

namespace {

plan plan_of_calls(const seed_of& s) {
  plan p = basic_plan(s);
  if (s.number >= newer_seeds) vary(p);
  if (s.number >= newest_seeds) arrange(p);
  if (s.number >= encounter_seeds) return arrange_something(p), p;
  if (s.number >= patient_seeds && arrange_patience(p)) return p;
  if (s.number >= troubled_seeds && arrange_more_trouble(p)) return p;
  if (s.number >= freezing_seeds && arrange_more(p)) return p;
  const bool more = s.number >= provoking_seeds && provoke_more(p);
  if (s.number >= latest_seeds && !more) provoke(p);
  return p;
}

}  // namespace

plan make_plan(const seed_of& seed) {
  const seed_of s{number_of_its_plan(seed.number), seed.about};
  plan p = plan_of_calls(s);
  if (s.number >= form_seeds) mix_forms(p);
  if (s.number >= mixed_seeds) mix_objects(p);
  if (s.number >= following_seeds) mix_followers(p);
  if (s.number >= beside_seeds) mix_neighbours(p);
  if (s.number >= remaining_seeds) mix_remains(p);
  if (s.number >= ordering_seeds) mix_orders(p);
  if (s.number >= accounting_seeds) mix_accounts(p);
  if (s.number >= blended_seeds) mix_troubles(p);
  if (s.number >= refusing_seeds) mix_refusals(p);
  if (s.number >= dividing_seeds) mix_divisions(p);
  p.seed = seed.number;
  return p;
}

}  // namespace simulation
