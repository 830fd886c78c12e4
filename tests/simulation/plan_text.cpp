#include "simulation/plan.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace simulation {

namespace {

constexpr std::string_view theme_names[] = {
    "locks", "slots",   "meetings", "stores",  "endings",   "barriers", "async",   "rates",
    "worse", "scripts", "rows",     "permits", "deadlocks", "items",    "sessions"};

}  // namespace

std::string to_string(const seed_of& s) {
  const auto number = std::to_string(s.number);
  if (s.about == theme::locks) return number;
  return std::string(to_string(s.about)) + ':' + number;
}

std::string_view to_string(store_kind k) noexcept {
  static constexpr std::string_view stores[] = {
      "tells",          "tells nobody", "tells, and sees death",       "runs scripts",
      "has contenders", "has slots",    "has slots, and tells",        "is PostgreSQL",
      "is MariaDB",     "is memcached", "is PostgreSQL, mode=session", "is shared with Redisson"};
  return stores[static_cast<int>(k)];
}

std::string_view to_string(theme t) noexcept { return theme_names[static_cast<int>(t)]; }

std::optional<theme> parse_theme(std::string_view text) {
  const auto* const known = std::find(std::begin(theme_names), std::end(theme_names), text);
  if (known == std::end(theme_names)) return std::nullopt;
  return static_cast<theme>(known - std::begin(theme_names));
}

std::optional<seed_of> parse_seed(std::string_view text) {
  seed_of s;
  if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    const auto about = parse_theme(text.substr(0, colon));
    if (!about) return std::nullopt;
    s.about = *about;
    text.remove_prefix(colon + 1);
  }
  const auto read = std::from_chars(text.data(), text.data() + text.size(), s.number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return s;
}

namespace {

std::string ms(nanos t) {
  if (t == never) return "-";
  return std::to_string(t / millisecond) + "." + std::to_string(t / 100'000 % 10) + "ms";
}

}  // namespace

std::string describe(const plan& p) {
  static constexpr const char* kinds[] = {"mutex",        "fair_mutex", "recursive_mutex",
                                          "shared_mutex", "semaphore",  "counting_semaphore",
                                          "latch",        "barrier",    "condition_variable",
                                          "rate_limiter", "election",   "admission",
                                          "both",         "redlock",    "expiring_semaphore"};
  static constexpr const char* faults[] = {"pause",
                                           "kill",
                                           "cut",
                                           "restart",
                                           "forget",
                                           "freeze",
                                           "evict",
                                           "suspend",
                                           "full",
                                           "read only",
                                           "drop a name",
                                           "step of the clock",
                                           "clock forward",
                                           "clock back",
                                           "refuse a row",
                                           "divide",
                                           "restore a backup"};
  static constexpr const char* styles[] = {"lease", "std", "callback"};
  static constexpr const char* meets[] = {"", " with limits", " twice"};
  static constexpr const char* insides[] = {
      "",           " extend", " extend(longer)", " extend, late",        " upgrade",
      " downgrade", " again",  " shorten",        " extend(longer), late"};
  std::string others;
  for (const auto o : p.others) others += std::string("; another ") + std::string(to_string(o));
  std::string text =
      "seed " + to_string({p.seed, p.about}) + (p.calm() ? " (calm)" : "") + "; the store " +
      std::string(to_string(p.store)) + others + "; drift " + std::to_string(p.drift_per_mille) +
      "/1000; network loses " + std::to_string(p.network.lose_request) + "+" +
      std::to_string(p.network.lose_reply) + ", delays " + std::to_string(p.network.slow_request) +
      "+" + std::to_string(p.network.slow_reply) + "+" +
      std::to_string(p.network.slow_notification) + " of 1000 by up to " +
      ms(p.network.slowest_late) +
      (p.network.until == never ? "" : " until " + ms(p.network.until)) +
      (p.network.unordered ? ", out of order" : "") +
      (p.network.refuses_late ? ", and what is late is refused" : "") +
      (p.network.fail_done == 0
           ? ""
           : ", fails " + std::to_string(p.network.fail_done) + " that are done") +
      (p.network.fail_changed == 0
           ? ""
           : ", fails " + std::to_string(p.network.fail_changed) + " that are changed") +
      (p.network.answers_all() ? ""
                               : ", refuses " + std::to_string(p.network.refuse) + "+" +
                                     std::to_string(p.network.leave_open)) +
      (p.network.break_listener == 0
           ? ""
           : ", breaks " + std::to_string(p.network.break_listener) + " listeners") +
      (p.clocks_apart == 0 ? "" : "; clocks " + ms(p.clocks_apart) + " apart") +
      (p.command_timeout == 2 * second ? "" : "; waits " + ms(p.command_timeout)) +
      "; threads: preempt " + std::to_string(p.machine.preempt_permille) + ", slow " +
      std::to_string(p.machine.slow_permille) + ", stall " +
      std::to_string(p.machine.stall_per_100k) + "\n";
  for (std::size_t i = 0; i < p.names.size(); ++i) {
    text += "  n" + std::to_string(i) + ": " + kinds[static_cast<int>(p.names[i].kind)] + " " +
            std::to_string(p.names[i].capacity) +
            (p.names[i].per == 0
                 ? ""
                 : " every " + ms(p.names[i].per) + " burst " + std::to_string(p.names[i].burst)) +
            (p.names[i].keys == 0 ? "" : " by " + std::to_string(p.names[i].keys) + " keys") +
            (p.names[i].local == 0 ? "" : " ahead " + std::to_string(p.names[i].local)) +
            (p.names[i].grows ? " grows" : "") + (p.names[i].shrinks ? " shrinks" : "") +
            (p.names[i].prefers == 0 ? "" : " prefers " + std::to_string(p.names[i].prefers)) +
            (p.names[i].at_once ? " at once" : "") + "\n";
  }
  for (std::size_t i = 0; i < p.processes.size(); ++i) {
    const auto& one = p.processes[i];
    text +=
        "  P" + std::to_string(i + 1) + ": lease " + ms(one.lease) + " linger " + ms(one.linger) +
        " local_time " + ms(one.local_time) + " max_hold " + ms(one.max_hold) + " max_bypass " +
        std::to_string(one.max_bypass) + (one.renew ? "" : " no renewal") +
        (one.unconfirmed ? " unconfirmed_release" : "") +
        (one.priority == 0 ? "" : " priority " + std::to_string(one.priority)) +
        (one.keep == 0 ? "" : " keeps latches for " + ms(one.keep)) +
        (one.session_lease == 0 ? "" : " session's lease " + ms(one.session_lease)) +
        (one.max_waiters == 0 ? "" : " max_waiters " + std::to_string(one.max_waiters)) +
        (one.more_permits == 0 ? "" : " " + std::to_string(one.more_permits) + " permits more") +
        meets[static_cast<int>(one.how)] + "\n";
    for (std::size_t t = 0; t < one.threads.size(); ++t) {
      text += "    t" + std::to_string(t + 1) + ":";
      for (const auto& s : one.threads[t].steps) {
        text += " [" + ms(s.think) + ", n" + std::to_string(s.name) +
                (s.several ? " and all others" : "") + (s.shared ? " shared" : "") +
                (s.weight != 1 ? " weight " + std::to_string(s.weight) : "") + " " +
                styles[static_cast<int>(s.how)] + " wait " + ms(s.wait) +
                (s.stop_after != never ? " stop " + ms(s.stop_after) : "") + " hold " + ms(s.hold) +
                insides[static_cast<int>(s.what)] +
                (s.more == 0 ? "" : " and " + std::to_string(s.more) + " more") +
                (s.forces ? " after a force_release" : "") + (s.looks ? " looks" : "") +
                (s.otherwise ? " by another lock object" : "") +
                (s.clashes ? " as another kind" : "") +
                (s.soon == 0 ? "" : " after " + ms(s.soon)) +
                (s.form == 0 ? "" : " form " + std::to_string(s.form)) +
                (s.clings == 0 ? "" : " clings to it for " + ms(s.clings)) +
                (s.back == step::end::release ? "" : " destroy") +
                (p.names[s.name].kind < lock_kind::latch && p.about != theme::endings
                     ? ""
                     : " deed " + std::to_string(s.deed)) +
                "]";
      }
      text += "\n";
    }
  }
  for (const auto& f : p.faults) {
    text += std::string("  ") + faults[static_cast<int>(f.what)] + " at " + ms(f.at) + " for " +
            ms(f.length) + " P" + std::to_string(f.process + 1) +
            (p.others.empty() ? "" : " store " + std::to_string(f.store)) + "\n";
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
    // A process without threads stays, so that the others keep their numbers, which faults refer
    // to.
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
  zero(&network_traits::slow_notification);
  zero(&network_traits::fail_done);
  zero(&network_traits::fail_changed);
  zero(&network_traits::refuse);
  zero(&network_traits::leave_open);
  zero(&network_traits::break_listener);
  if (p.machine.preempt_permille != 0) add([](plan& l) { l.machine.preempt_permille = 0; });
  if (p.machine.slow_permille != 0) add([](plan& l) { l.machine.slow_permille = 0; });
  if (p.machine.stall_per_100k != 0) add([](plan& l) { l.machine.stall_per_100k = 0; });
  if (p.machine.spurious_permille != 0) add([](plan& l) { l.machine.spurious_permille = 0; });
  if (p.network.unordered) add([](plan& l) { l.network.unordered = false; });
  if (p.network.refuses_late) add([](plan& l) { l.network.refuses_late = false; });
  if (p.command_timeout != 2 * second) add([](plan& l) { l.command_timeout = 2 * second; });
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
        if (p.processes[i].threads[t].steps[s].more != 0) {
          add([&](plan& l) { --l.processes[i].threads[t].steps[s].more; });
        }
        if (p.processes[i].threads[t].steps[s].looks) {
          add([&](plan& l) { l.processes[i].threads[t].steps[s].looks = false; });
        }
        if (p.processes[i].threads[t].steps[s].otherwise) {
          add([&](plan& l) { l.processes[i].threads[t].steps[s].otherwise = false; });
        }
        if (p.processes[i].threads[t].steps[s].clashes) {
          add([&](plan& l) { l.processes[i].threads[t].steps[s].clashes = false; });
        }
        if (p.processes[i].threads[t].steps[s].form != 0) {
          add([&](plan& l) { l.processes[i].threads[t].steps[s].form = 0; });
        }
        if (p.processes[i].threads[t].steps[s].forces) {
          add([&](plan& l) { l.processes[i].threads[t].steps[s].forces = false; });
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
