#include "bench/limits.hpp"

// Only if another client of Redis was found at build time.
#ifdef HOLDFAST_BENCH_REDIS

#include <algorithm>
#include <array>
#include <functional>
#include <holdfast/holdfast.hpp>
#include <vector>

#include "bench/hiredis.hpp"
#include "bench/shared_state.hpp"

namespace bench {
namespace {

using namespace std::chrono_literals;

// One bucket as people write it by hand: fractions, the server's clock, one key.
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

/// A limiter under test; `decisions` of it are measured.
struct contender {
  const char* workload;
  std::string_view subject;
  std::function<bool()> take;
};

outcome run_round(const contender& c, hiredis& db, std::chrono::nanoseconds length) {
  histogram waits{};
  const double cpu = db.server_cpu_seconds();
  const auto began = clock::now();
  for (auto now = began; now - began < length;) {
    if (!c.take()) throw std::runtime_error{std::string{c.workload} + " refused"};
    const auto then = clock::now();
    waits.add(then - now);
    now = then;
  }
  const double seconds = std::chrono::duration<double>(clock::now() - began).count();
  outcome o;
  o.acquired = static_cast<double>(waits.total());
  o.ops_per_s = o.acquired / seconds;
  o.p50_us = waits.percentile_us(0.5);
  o.p99_us = waits.percentile_us(0.99);
  o.store_cpu_us = 1e6 * (db.server_cpu_seconds() - cpu) / o.acquired;
  return o;
}

std::vector<holdfast::rate_rule> rules(unsigned count) {
  return std::vector<holdfast::rate_rule>(count, {.tokens = 1'000'000, .per = 1s});
}

void compare_limits(row& r, const std::vector<outcome>& ours,
                    const std::vector<outcome>& baseline) {
  r.baseline = "by_hand";
  r.ratio_of = "ops_per_s";
  r.ratio = ratio_of(ours, baseline, &outcome::ops_per_s);
  r.cpu_ratio = ratio_of(ours, baseline, &outcome::store_cpu_us);
  r.ratios.emplace_back(r.baseline, r.ratio);
}

}  // namespace

std::vector<row> measure_limits(const std::string& url, std::chrono::milliseconds length,
                                unsigned rounds) {
  hiredis db{url};
  const std::string sha = db.ask("SCRIPT LOAD %s", bucket_by_hand)->str;
  const auto session = holdfast::open(url);
  holdfast::rate_limiter one{session, "bench:one", rules(1)};
  holdfast::rate_limiter four{session, "bench:four", rules(4)};
  holdfast::rate_limiter local{
      session, "bench:local", {{.tokens = 1'000'000'000, .per = 1s}}, {.local_tokens = 10'000}};
  const std::string_view ours = holdfast_subject.name;
  const std::array<contender, 4> all{
      {{"limit", "by_hand",
        [&] {
          return db.ask("EVALSHA %s 1 bench-by-hand 1000000 1000000 1", sha.c_str())->integer == 1;
        }},
       {"limit", ours, [&] { return one.try_take().taken; }},
       {"limit-4", ours, [&] { return four.try_take().taken; }},
       {"limit-local", ours, [&] { return local.try_take().taken; }}}};
  std::array<std::vector<outcome>, all.size()> seen;
  for (unsigned r = 0; r < rounds; ++r) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      seen[i].push_back(run_round(all[i], db, length / rounds));
    }
  }
  std::vector<row> rows;
  for (std::size_t i = 0; i < all.size(); ++i) {
    rows.push_back(row_of(all[i].workload, all[i].subject, seen[i]));
    if (i > 0) compare_limits(rows[i], seen[i], seen[0]);
  }
  std::rotate(rows.begin(), rows.begin() + 1, rows.begin() + 2);  // ours first, as everywhere
  return rows;
}

}  // namespace bench

#else

#include <stdexcept>

namespace bench {

std::vector<row> measure_limits(const std::string&, std::chrono::milliseconds, unsigned) {
  throw std::runtime_error{"--limits needs hiredis, which was not there when this was built"};
}

}  // namespace bench

#endif
