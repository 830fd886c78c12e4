#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>
#include <thread>
#include <vector>

#include "bench/workload.hpp"

// Workloads that only holdfast supports: many waiters for one name, and many held leases. One
// thread begins them all; none of them has a thread of its own.
namespace bench {
namespace {

using namespace std::chrono_literals;

// A record of SQL is written again for each of them: ten thousand queued waiters would measure the
// disk.
bool is_redis(std::string_view url) {
  return scheme_of(url).starts_with("redis") && url.find("dialect=") == url.npos;
}

/// One name with this many waiters: the time from the first release until all have acquired it, one
/// after the other.
template <unsigned Waiters>
void pass_through_line(shared_state& a, unsigned, subject& s) {
  holdfast::fair_mutex lock{*s.session(), "bench:line"};
  participant& me = a.participants[0];
  auto first = lock.acquire();
  for (unsigned i = 0; i < Waiters; ++i) {
    async_acquire(lock).start([&](holdfast::result<holdfast::lease> got) {
      if (!got) return;
      ++me.acquired;
      ++a.inside[0];
      if (++a.had_it == Waiters) a.all_had_it.set(1);
    });
  }
  while (s.session()->show("bench:line").waiters.size() < Waiters) std::this_thread::yield();
  a.held.set(1);
  a.release.wait_for(1);
  me.first_at = now_ns();
  (void)first.release();
  a.all_had_it.wait_for(1);
  me.last_at = now_ns();
}

void let_line_pass(const workers& all, shared_state& a, std::chrono::milliseconds) {
  all.await(a.held, 1);
  all.count(false);
  a.release.set(1);
  all.await(a.all_had_it, 1);
  all.count(true);
  all.join();
}

outcome sum_up_line(const shared_state& a) {
  const participant& me = a.participants[0];
  outcome o;
  o.acquired = static_cast<double>(me.acquired);
  o.ops_per_s = o.acquired * 1e9 / static_cast<double>(me.last_at - me.first_at);
  o.p50_us = 1e6 / o.ops_per_s;
  o.store_ops_per_acquire = store_operations(a) / o.acquired;
  o.store_cpu_us = store_cpu_us(a) / o.acquired;
  return o;
}

constexpr unsigned leases = 100'000;
constexpr auto lease_length = 3s;  // renewed every second: ten times as often as usual

void hold_many(shared_state& a, unsigned, subject& s) {
  holdfast::lock_options options;
  options.lease = lease_length;
  options.unconfirmed_release = true;
  std::vector<holdfast::lease> held;
  held.reserve(leases);
  const auto before = memory_in_use();
  for (unsigned i = 0; i < leases; ++i) {
    holdfast::fair_mutex lock{*s.session(), "bench:held:" + std::to_string(i), options};
    held.push_back(lock.acquire());
  }
  a.memory_bytes = memory_in_use() - before;
  a.held.set(1);
  a.release.wait_for(1);
  for (const auto& l : held) l.check();
  a.participants[0].acquired = a.inside[0] = leases;
}

void keep_for_a_while(const workers& all, shared_state& a, std::chrono::milliseconds) {
  all.await(a.held, 1);
  all.count(false);
  all.let_pass(5s);
  all.count(true);
  a.release.set(1);
  all.join();
}

// For ten thousand leases of thirty seconds.
outcome sum_up_held(const shared_state& a) {
  const auto& before = a.before[0];
  const auto& after = a.after[0];
  constexpr double scale = static_cast<double>(lease_length / 1s) / 30 * 10'000 / leases;
  outcome o;
  o.acquired = leases;
  o.cpu_percent = scale * 100.0 * static_cast<double>(after.cpu_ns - before.cpu_ns) /
                  static_cast<double>(after.at - before.at);
  o.bytes_each = static_cast<double>(a.memory_bytes) / leases;
  o.store_ops_per_s = store_operations(a) * 1e9 / static_cast<double>(after.at - before.at);
  o.store_cpu_us = store_cpu_us(a) / store_operations(a);
  return o;
}

constexpr workload line_of(std::string_view name, std::string_view about,
                           void (*sit)(shared_state&, unsigned, subject&)) {
  return {.name = name,
          .about = about,
          .processes = 1,
          .threads = 1,
          .own_process = true,
          .by = compared::ops_per_s,
          .host_baseline = "",
          .only_ours_on = is_redis,
          .sit = sit,
          .conduct = let_line_pass,
          .sum_up = sum_up_line};
}

}  // namespace

const workload line_10 = line_of(
    "line-10", "10 in line for one name, one hand-over after the other", pass_through_line<10>);
const workload line_10000 =
    line_of("line-10000", "the same with 10,000 in line", pass_through_line<10'000>);

const workload held{
    .name = "held",
    .about = "100,000 leases held: renewal and memory, for 10,000 leases of 30 s",
    .processes = 1,
    .threads = 1,
    .own_process = true,
    .by = compared::cpu_percent,
    .host_baseline = "",
    .only_ours_on = is_redis,
    .sit = hold_many,
    .conduct = keep_for_a_while,
    .sum_up = sum_up_held,
};

}  // namespace bench
