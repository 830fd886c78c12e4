#include <gtest/gtest.h>
#include <sys/personality.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "simulation/encounters.hpp"
#include "simulation/search.hpp"

namespace {

// Addresses in memory decide nothing here, but a run that must be the same bit for bit should not
// depend on them.
void lie_still(char** arguments) {
  const int now = personality(0xFFFFFFFF);
  if (now < 0 || (now & ADDR_NO_RANDOMIZE) != 0) return;
  if (personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) < 0) return;
  execv("/proc/self/exe", arguments);
}

int replay(const simulation::seed_of& seed, bool make_smaller) {
  const auto p = simulation::make_plan(seed);
  const auto o = simulation::run_apart(p, true);
  if (o.found) {
    std::puts(simulation::report(p, o, make_smaller).c_str());
    return 1;
  }
  std::printf("%s%s\nseed %s breaks no rule: %llu commands, %llu grants\n",
              simulation::describe(p).c_str(), o.trace.c_str(), to_string(seed).c_str(),
              static_cast<unsigned long long>(o.commands),
              static_cast<unsigned long long>(o.grants));
  return 0;
}

int soak(std::uint64_t first, const simulation::search_limits& limits) {
  std::printf("from seed %llu\n", static_cast<unsigned long long>(first));
  const auto all = simulation::search(first, limits, [](const auto& p, const auto& o) {
    std::printf("seed %s: %s: %s\n",
                simulation::to_string(simulation::seed_of{p.seed, p.about}).c_str(),
                o.found->rule.c_str(), o.found->what.c_str());
    std::fflush(stdout);
  });
  std::puts(all.text().c_str());
  std::puts(all.met.text().c_str());
  return all.failed.empty() ? 0 : 1;
}

struct options {
  std::optional<simulation::seed_of> seed;
  bool whole = false;
  std::optional<double> until;  ///< seconds of the run
  std::uint64_t first = simulation::fresh_seeds + std::random_device{}();
  simulation::search_limits limits{
      .seconds = 0, .failures = 1'000'000, .at_once = std::thread::hardware_concurrency()};
};

void leave_out(std::string_view what) {
  auto& out = simulation::plans_leave_out();
  out.several |= what == "multi_lock";
  out.extend_late |= what == "late_extend";
  out.downgrade |= what == "downgrade";
}

// Reads this program's own options; the others are GoogleTest's.
options read(int count, char** arguments) {
  options o;
  std::vector<simulation::theme> about;
  for (int i = 1; i < count; ++i) {
    const std::string_view option = arguments[i];
    const char* const value = i + 1 < count ? arguments[i + 1] : "";
    if (option == "--seed") o.seed = simulation::parse_seed(value);
    if (option == "--whole") o.whole = true;
    if (option == "--until") o.until = std::strtod(value, nullptr);
    if (option == "--soak") o.limits.seconds = std::strtod(value, nullptr);
    if (option == "--from") o.first = std::strtoull(value, nullptr, 10);
    if (option == "--fresh") o.first = simulation::fresh_seeds + std::strtoull(value, nullptr, 10);
    if (option == "--ignore") simulation::judge::ignored().emplace_back(value);
    if (option == "--without") leave_out(value);
    if (option == "--at-once") o.limits.at_once = std::strtoull(value, nullptr, 10);
    if (option == "--most") o.limits.failures = std::strtoull(value, nullptr, 10);
    if (option != "--about") continue;
    if (const auto t = simulation::parse_theme(value)) about.push_back(*t);
  }
  if (!about.empty()) o.limits.about = about;
  return o;
}

}  // namespace

// test_simulation [--seed SEED [--whole] [--until SECONDS]] | [--soak SECONDS
// [--from NUMBER | --fresh NUMBER] [--about THEME]... [--most FAILURES] [--at-once RUNS]]
// [--ignore RULE]... [--without OPERATION]... | GoogleTest's
int main(int count, char** arguments) {
  lie_still(arguments);
  const options o = read(count, arguments);
  if (o.seed && o.until) {
    const auto when = static_cast<simulation::nanos>(*o.until * 1e9);
    std::puts(simulation::run_until(simulation::make_plan(*o.seed), when).c_str());
    return 0;
  }
  if (o.seed) return replay(*o.seed, !o.whole);
  if (o.limits.seconds > 0) return soak(o.first, o.limits);
  testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
