#include "bench/limits.hpp"

// Only where another client of Redis was found when this was built.
#ifdef HOLDFAST_BENCH_REDIS

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <holdfast/holdfast.hpp>
#include <vector>

#include "bench/area.hpp"
#include "bench/hiredis.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;

// One bucket as it is written by hand everywhere: fractions, the server's clock, one key.
constexpr const char* bucket_by_hand = R"(
local t = redis.call('TIME')
local now = t[1] + t[2] / 1000000
local b = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local burst, rate, n = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local tokens = math.min(burst, (tonumber(b[1]) or burst) + (now - (tonumber(b[2]) or now)) * rate)
local taken = tokens >= n
if taken then tokens = tokens - n end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(burst / rate * 1000))
return taken and 1 or 0
)";

/// Something that decides; `decisions` of it are measured.
struct contender {
  const char* name;
  std::function<bool()> take;
};

struct figures {
  double per_second, p50_us, redis_us;
};

figures run_round(const contender& c, hiredis& db, std::chrono::nanoseconds length) {
  std::vector<double> waits;
  const double cpu = db.server_cpu_seconds();
  const auto began = clock::now();
  std::uint64_t decisions = 0;
  for (auto now = began; now - began < length; ++decisions) {
    if (!c.take()) throw std::runtime_error{std::string{c.name} + " refused"};
    const auto then = clock::now();
    waits.push_back(std::chrono::duration<double, std::micro>(then - now).count());
    now = then;
  }
  const double seconds = std::chrono::duration<double>(clock::now() - began).count();
  std::nth_element(waits.begin(), waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 2),
                   waits.end());
  const auto n = static_cast<double>(decisions);
  return {n / seconds, waits[waits.size() / 2], 1e6 * (db.server_cpu_seconds() - cpu) / n};
}

double median(std::vector<figures>& all, double figures::* of) {
  std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return a.*of < b.*of; });
  return all[all.size() / 2].*of;
}

std::vector<holdfast::rate_rule> rules(unsigned count) {
  std::vector<holdfast::rate_rule> all;
  for (unsigned i = 0; i < count; ++i) all.push_back({.tokens = 1'000'000, .per = 1s});
  return all;
}

}  // namespace

void measure_limits(const std::string& url, std::chrono::milliseconds length, unsigned rounds) {
  hiredis db{url};
  const std::string sha = db.ask("SCRIPT LOAD %s", bucket_by_hand)->str;
  const auto session = holdfast::open(url);
  holdfast::rate_limiter one{session, "bench:one", rules(1)};
  holdfast::rate_limiter four{session, "bench:four", rules(4)};
  holdfast::rate_limiter local{
      session, "bench:local", {{.tokens = 1'000'000'000, .per = 1s}}, {.local_tokens = 10'000}};
  const std::array<contender, 4> all{
      {{"by hand, one bucket",
        [&] {
          return db.ask("EVALSHA %s 1 bench-by-hand 1000000 1000000 1", sha.c_str())->integer == 1;
        }},
       {"holdfast, one rule", [&] { return one.try_take().taken; }},
       {"holdfast, four rules", [&] { return four.try_take().taken; }},
       {"holdfast, one rule, local_tokens", [&] { return local.try_take().taken; }}}};
  std::array<std::vector<figures>, all.size()> seen;
  for (unsigned r = 0; r < rounds; ++r) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      seen[i].push_back(run_round(all[i], db, length / rounds));
    }
  }
  const double floor_rate = median(seen[0], &figures::per_second);
  const double floor_cpu = median(seen[0], &figures::redis_us);
  std::printf("| one client | decisions a second | p50 us | Redis CPU us each | to the first |\n");
  std::printf("|---|--:|--:|--:|---|\n");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double rate = median(seen[i], &figures::per_second);
    const double cpu = median(seen[i], &figures::redis_us);
    std::printf("| %s | %.0f | %.2f | %.2f | %.2f x as many, %.2f x the CPU |\n", all[i].name, rate,
                median(seen[i], &figures::p50_us), cpu, rate / floor_rate, cpu / floor_cpu);
  }
}

}  // namespace bench

#else

#include <stdexcept>

namespace bench {

void measure_limits(const std::string&, std::chrono::milliseconds, unsigned) {
  throw std::runtime_error{"--limits needs hiredis, which was not there when this was built"};
}

}  // namespace bench

#endif
