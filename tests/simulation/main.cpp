#include <gtest/gtest.h>
#include <sys/personality.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

#include "simulation/search.hpp"

namespace {

// Where things lie in memory decides nothing here, but a run that is to be the same bit for bit
// should not depend on it.
void lie_still(char** arguments) {
  const int now = personality(0xFFFFFFFF);
  if (now < 0 || (now & ADDR_NO_RANDOMIZE) != 0) return;
  if (personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) < 0) return;
  execv("/proc/self/exe", arguments);
}

int replay(std::uint64_t seed, bool make_smaller) {
  const auto p = simulation::make_plan(seed);
  const auto o = simulation::run_apart(p, true);
  if (o.found) {
    std::puts(simulation::report(p, o, make_smaller).c_str());
    return 1;
  }
  std::printf("%s%s\nseed %llu breaks no rule: %llu commands, %llu grants\n",
              simulation::describe(p).c_str(), o.trace.c_str(),
              static_cast<unsigned long long>(seed), static_cast<unsigned long long>(o.commands),
              static_cast<unsigned long long>(o.grants));
  return 0;
}

int soak(std::uint64_t first, double seconds, std::size_t most) {
  std::printf("from seed %llu\n", static_cast<unsigned long long>(first));
  const auto all = simulation::search(
      first, {.seconds = seconds, .failures = most}, [](const auto& p, const auto& o) {
        std::printf("seed %llu: %s: %s\n", static_cast<unsigned long long>(p.seed),
                    o.found->rule.c_str(), o.found->what.c_str());
        std::fflush(stdout);
      });
  std::puts(all.text().c_str());
  return all.failed.empty() ? 0 : 1;
}

}  // namespace

// test_simulation [--seed N [--whole]] | [--soak SECONDS [--from SEED] [--most FAILURES]] [--ignore
// RULE]... | GoogleTest's
int main(int count, char** arguments) {
  lie_still(arguments);
  std::uint64_t seed = 0;
  std::uint64_t first = std::random_device{}();
  double seconds = 0;
  std::size_t most = 1'000'000;
  bool replays = false;
  bool whole = false;
  for (int i = 1; i < count; ++i) {
    const std::string_view option = arguments[i];
    const char* const value = i + 1 < count ? arguments[i + 1] : "";
    if (option == "--seed") seed = std::strtoull(value, nullptr, 10), replays = true;
    if (option == "--whole") whole = true;
    if (option == "--soak") seconds = std::strtod(value, nullptr);
    if (option == "--from") first = std::strtoull(value, nullptr, 10);
    if (option == "--ignore") simulation::judge::ignored().emplace_back(value);
    if (option == "--without") {
      auto& out = simulation::plans_leave_out();
      const std::string_view what = value;
      out.several |= what == "multi_lock";
      out.extend_late |= what == "late_extend";
      out.downgrade |= what == "downgrade";
    }
    if (option == "--most") most = std::strtoull(value, nullptr, 10);
  }
  if (replays) return replay(seed, !whole);
  if (seconds > 0) return soak(first, seconds, most);
  testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
