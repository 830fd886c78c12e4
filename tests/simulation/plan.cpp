#include "simulation/plan.hpp"

#include <algorithm>
#include <array>

namespace simulation {

namespace {

template <class T, std::size_t N>
T one_of(random_source& r, const std::array<T, N>& all) {
  return all[r.below(N)];
}

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
  return s;
}

}  // namespace

bool plan::calm() const noexcept {
  return faults.empty() && network.lose_request == 0 && network.lose_reply == 0 &&
         network.slow_request == 0 && network.slow_reply == 0 && network.slow_notice == 0 &&
         machine.stall_per_100k == 0;
}

nanos plan::longest_lease() const noexcept {
  nanos longest = 0;
  for (const auto& p : processes) longest = std::max(longest, p.lease);
  return longest;
}

left_out& plans_leave_out() {
  static left_out all;
  return all;
}

plan make_plan(std::uint64_t seed) {
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
    p.network.slow_notice = rate(100);
    p.network.slowest_late = one_of<nanos, 3>(r, {100 * millisecond, second, 4 * second});
    p.network.delivers_late = r.one_in(2);
    if (r.one_in(4)) p.machine.stall_per_100k = static_cast<unsigned>(r.below(200));
  }

  nanos longest_begin = 0;
  const auto processes = 1 + r.below(3) + (r.one_in(3) ? 0 : 1);
  const nanos lease = one_of<nanos, 3>(r, {300 * millisecond, second, 3 * second});
  for (std::uint64_t i = 0; i < processes; ++i) {
    process_plan one;
    one.begins = r.between(0, 50 * millisecond);
    longest_begin = std::max(longest_begin, one.begins);
    one.lease = r.one_in(5) ? 2 * lease : lease;
    if (p.store != store_kind::untold && r.one_in(3)) {
      one.linger = one_of<nanos, 3>(r, {5 * millisecond, 200 * millisecond, 2 * second});
    }
    one.local_time = one_of<nanos, 3>(r, {0, 10 * millisecond, 10 * millisecond});
    one.max_bypass = r.one_in(3) ? 0 : 250;
    if (one.linger == 0 && r.one_in(8)) one.max_hold = r.between(lease / 2, 3 * lease);
    one.renew = !r.one_in(12);
    one.unconfirmed = r.one_in(4);
    const auto threads = 1 + r.below(3);
    for (std::uint64_t t = 0; t < threads; ++t) {
      thread_plan work;
      const auto steps = 2 + r.below(8);
      for (std::uint64_t s = 0; s < steps; ++s) work.steps.push_back(make_step(r, p, lease));
      one.threads.push_back(std::move(work));
    }
    p.processes.push_back(std::move(one));
  }

  if (!calm && !r.one_in(4)) {
    const auto faults = 1 + r.below(5);
    for (std::uint64_t i = 0; i < faults; ++i) {
      using kind = fault_plan::kind;
      fault_plan f;
      f.what = one_of<kind, 9>(r, {kind::pause, kind::pause, kind::kill, kind::cut, kind::cut,
                                   kind::restart, kind::forget, kind::freeze, kind::freeze});
      f.at = r.between(0, 6 * lease);
      f.length = r.between(millisecond, one_of<nanos, 3>(r, {50 * millisecond, lease, 3 * lease}));
      f.process = r.below(processes);
      p.faults.push_back(f);
    }
  }
  return p;
}

namespace {

std::string ms(nanos t) {
  if (t == never) return "-";
  return std::to_string(t / millisecond) + "." + std::to_string(t / 100'000 % 10) + "ms";
}

}  // namespace

std::string describe(const plan& p) {
  static constexpr const char* kinds[] = {"mutex", "fair_mutex", "recursive_mutex", "shared_mutex",
                                          "semaphore"};
  static constexpr const char* stores[] = {"tells", "tells nobody", "tells, and sees death",
                                           "has contenders"};
  static constexpr const char* faults[] = {"pause", "kill", "cut", "restart", "forget", "freeze"};
  static constexpr const char* styles[] = {"lease", "std", "callback"};
  static constexpr const char* insides[] = {
      "", " extend", " extend(longer)", " extend, late", " upgrade", " downgrade", " again"};
  std::string text =
      "seed " + std::to_string(p.seed) + (p.calm() ? " (calm)" : "") + "; the store " +
      stores[static_cast<int>(p.store)] + "; drift " + std::to_string(p.drift_per_mille) +
      "/1000; network loses " + std::to_string(p.network.lose_request) + "+" +
      std::to_string(p.network.lose_reply) + ", delays " + std::to_string(p.network.slow_request) +
      "+" + std::to_string(p.network.slow_reply) + "+" + std::to_string(p.network.slow_notice) +
      " of 1000 by up to " + ms(p.network.slowest_late) + "; threads: preempt " +
      std::to_string(p.machine.preempt_permille) + ", slow " +
      std::to_string(p.machine.slow_permille) + ", stall " +
      std::to_string(p.machine.stall_per_100k) + "\n";
  for (std::size_t i = 0; i < p.names.size(); ++i) {
    text += "  n" + std::to_string(i) + ": " + kinds[static_cast<int>(p.names[i].kind)] + " " +
            std::to_string(p.names[i].capacity) + "\n";
  }
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    const auto& one = p.processes[i];
    text += "  P" + std::to_string(i + 1) + ": lease " + ms(one.lease) + " linger " +
            ms(one.linger) + " local_time " + ms(one.local_time) + " max_hold " + ms(one.max_hold) +
            " max_bypass " + std::to_string(one.max_bypass) + (one.renew ? "" : " no renewal") +
            (one.unconfirmed ? " unconfirmed_release" : "") + "\n";
    for (std::size_t t = 0; t < one.threads.size(); ++t) {
      text += "    t" + std::to_string(t + 1) + ":";
      for (const auto& s : one.threads[t].steps) {
        text += " [" + ms(s.think) + ", n" + std::to_string(s.name) +
                (s.several ? " and all others" : "") + (s.shared ? " shared" : "") +
                (s.weight != 1 ? " weight " + std::to_string(s.weight) : "") + " " +
                styles[static_cast<int>(s.how)] + " wait " + ms(s.wait) +
                (s.stop_after != never ? " stop " + ms(s.stop_after) : "") + " hold " + ms(s.hold) +
                insides[static_cast<int>(s.what)] +
                (s.back == step::end::release ? "" : " destroy") + "]";
      }
      text += "\n";
    }
  }
  for (const auto& f : p.faults) {
    text += std::string("  ") + faults[static_cast<int>(f.what)] + " at " + ms(f.at) + " for " +
            ms(f.length) + " P" + std::to_string(f.process + 1) + "\n";
  }
  return text;
}

std::vector<plan> smaller(const plan& p) {
  std::vector<plan> all;
  const auto add = [&](auto change) {
    plan less = p;
    change(less);
    all.push_back(std::move(less));
  };
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    if (p.processes.size() < 2) break;
    // Others keep their numbers, which faults name: it just does nothing.
    if (!p.processes[i].threads.empty()) add([&](plan& l) { l.processes[i].threads.clear(); });
  }
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    for (std::size_t t = 0; t < p.processes[i].threads.size(); ++t) {
      if (p.processes[i].threads.size() < 2) break;
      add([&](plan& l) {
        auto& threads = l.processes[i].threads;
        threads.erase(threads.begin() + static_cast<std::ptrdiff_t>(t));
      });
    }
  }
  for (std::size_t i = 0; i < p.faults.size(); ++i) {
    add([&](plan& l) { l.faults.erase(l.faults.begin() + static_cast<std::ptrdiff_t>(i)); });
  }
  const auto zero = [&](auto member) {
    if (p.network.*member != 0) add([&](plan& l) { l.network.*member = 0; });
  };
  zero(&network_traits::lose_request);
  zero(&network_traits::lose_reply);
  zero(&network_traits::slow_request);
  zero(&network_traits::slow_reply);
  zero(&network_traits::slow_notice);
  if (p.machine.preempt_permille != 0) add([](plan& l) { l.machine.preempt_permille = 0; });
  if (p.machine.slow_permille != 0) add([](plan& l) { l.machine.slow_permille = 0; });
  if (p.machine.stall_per_100k != 0) add([](plan& l) { l.machine.stall_per_100k = 0; });
  if (p.machine.spurious_permille != 0) add([](plan& l) { l.machine.spurious_permille = 0; });
  if (p.drift_per_mille != 0) add([](plan& l) { l.drift_per_mille = 0; });
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    for (std::size_t t = 0; t < p.processes[i].threads.size(); ++t) {
      const auto n = p.processes[i].threads[t].steps.size();
      for (std::size_t s = 0; s < n; ++s) {
        add([&](plan& l) {
          auto& steps = l.processes[i].threads[t].steps;
          steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(s));
        });
        if (p.processes[i].threads[t].steps[s].what != step::inside::nothing) {
          add([&](plan& l) { l.processes[i].threads[t].steps[s].what = step::inside::nothing; });
        }
      }
    }
    if (p.processes[i].linger != 0) add([&](plan& l) { l.processes[i].linger = 0; });
    if (p.processes[i].unconfirmed) add([&](plan& l) { l.processes[i].unconfirmed = false; });
    if (p.processes[i].max_hold != never) add([&](plan& l) { l.processes[i].max_hold = never; });
    if (!p.processes[i].renew) add([&](plan& l) { l.processes[i].renew = true; });
  }
  return all;
}

}  // namespace simulation
