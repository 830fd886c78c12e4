#include "simulation/search.hpp"

#include <poll.h>
#include <time.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace simulation {

namespace {

double seconds_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

struct attempt {
  explicit attempt(const seed_of& seed) : p(make_plan(seed)), run(p, false) {}
  plan p;
  run_beside run;
};

std::vector<attempt>::iterator first_to_end(std::vector<attempt>& under_way) {
  std::vector<pollfd> ends;
  for (const auto& one : under_way) ends.push_back({one.run.descriptor(), POLLIN, 0});
  while (::poll(ends.data(), ends.size(), -1) < 0 && errno == EINTR) {
  }
  const auto ended =
      std::find_if(ends.begin(), ends.end(), [](const auto& e) { return e.revents; });
  return under_way.begin() + (ended - ends.begin());
}

}  // namespace

std::string searched::text() const {
  char line[256];
  std::snprintf(line, sizeof line,
                "%llu runs, %.2f simulated hours, %llu commands (%.0f a second), %llu grants, "
                "%zu failed, %.1f s",
                static_cast<unsigned long long>(runs), simulated_hours,
                static_cast<unsigned long long>(commands),
                static_cast<double>(commands) / (seconds > 0 ? seconds : 1),
                static_cast<unsigned long long>(grants), failed.size(), seconds);
  return line;
}

searched search(std::uint64_t first, const search_limits& limits,
                const std::function<void(const plan&, const outcome&)>& tell) {
  searched all;
  const double began = seconds_now();
  std::uint64_t begun = 0;
  std::vector<attempt> under_way;
  const auto goes_on = [&] { return all.seconds < limits.seconds && begun < limits.runs; };
  while (goes_on() || !under_way.empty()) {
    for (; goes_on() && under_way.size() < std::max<std::size_t>(limits.at_once, 1); ++begun) {
      const std::size_t themes = limits.about.size();
      under_way.emplace_back(seed_of{first + begun / themes, limits.about[begun % themes]});
    }
    const auto ending = first_to_end(under_way);
    attempt one = std::move(*ending);
    under_way.erase(ending);
    const outcome o = one.run.wait();
    ++all.runs;
    all.commands += o.commands;
    all.grants += o.grants;
    all.switches += o.switches;
    all.simulated_hours += static_cast<double>(o.simulated) / 3.6e12;
    all.met.add(one.p.store, o.met);
    all.seconds = seconds_now() - began;
    if (!o.found) continue;
    all.failed.push_back({one.p.seed, one.p.about});
    tell(one.p, o);
    if (all.failed.size() >= limits.failures) break;
  }
  return all;
}

plan shrink(plan p, const std::string& rule, double seconds) {
  constexpr int tries = 8;
  const double until = seconds_now() + seconds;
  for (bool went_on = true; went_on;) {
    went_on = false;
    for (plan& less : smaller(p)) {
      if (seconds_now() > until) return p;
      // A changed plan draws other random numbers, so each smaller plan is tried with a few seeds.
      for (int i = 0; i < tries && !went_on; ++i) {
        const outcome o = run_apart(less, false);
        went_on = o.found && o.found->rule == rule;
        if (!went_on) less.seed = p.seed * 1000 + static_cast<std::uint64_t>(i) + 1;
      }
      if (!went_on) continue;
      p = std::move(less);
      break;
    }
  }
  return p;
}

std::string report(const plan& p, const outcome& o, bool make_smaller) {
  const plan least = make_smaller ? shrink(p, o.found->rule, 20) : p;
  const outcome again = run_apart(least, true);
  std::string text = "seed " + to_string({p.seed, p.about}) + " breaks the rule: " + o.found->rule +
                     "\n  " + o.found->what + "\n";
  if (make_smaller) text += "The smallest case found:\n";
  text += describe(least);
  if (again.found) text += "  " + again.found->rule + ": " + again.found->what + "\n";
  return text + again.trace;
}

}  // namespace simulation
