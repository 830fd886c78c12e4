#include <algorithm>

#include "bench/workload.hpp"

// W6: many wait for one holder; measured from its release until all have acquired it. Participant 0
// is the holder. idle: their cost while nothing happens.
namespace bench {
namespace {

void hold(shared_state& a, handle& grip) {
  grip.lock();
  a.held.set(1);
  a.release.wait_for(1);
  a.released_at = now_ns();
  grip.unlock();
}

void queue_up(shared_state& a, participant& me, handle& grip) {
  a.held.wait_for(1);
  me.trying = true;
  grip.lock();
  me.last_at = now_ns();
  me.trying = false;
  me.wait.add(std::chrono::nanoseconds{me.last_at - a.released_at});
  ++me.acquired;
  ++a.inside[0];
  if (++a.had_it == a.threads - 1) {
    a.all_had_it.set(1);
    a.counted.wait_for(1);  // so that the count ends here, without this one's unlock
  }
  grip.unlock();
}

void sit(shared_state& a, unsigned number, subject& s) {
  const auto grip = s.grip(0);
  a.go.wait_for(1);
  if (number == 0) return hold(a, *grip);
  queue_up(a, a.participants[number], *grip);
}

void line_up(const workers& all, shared_state& a) {
  a.go.set(1);
  all.await(a.held, 1);
  // Twice: a thread that was asleep on its way into the queue the first time is there the second.
  all.await_waiters(1);
  all.await_waiters(1);
}

void serve_all(const workers& all, shared_state& a, std::chrono::milliseconds) {
  line_up(all, a);
  all.count(false);
  a.release.set(1);
  all.await(a.all_had_it, 1);
  all.count(true);
  a.counted.set(1);
  all.join();
}

void do_nothing(const workers& all, shared_state& a, std::chrono::milliseconds length) {
  line_up(all, a);
  all.count(false);
  all.let_pass(length);
  all.count(true);
  a.counted.set(1);
  a.release.set(1);
  all.join();
}

outcome sum_up(const shared_state& a) {
  const histogram waits = all_waits(a);
  std::int64_t last = 0;
  for (unsigned i = 1; i < a.threads; ++i) last = std::max(last, a.participants[i].last_at);
  outcome o;
  o.acquired = a.threads - 1;
  o.ops_per_s = o.acquired * 1e9 / static_cast<double>(last - a.released_at);
  o.p50_us = waits.percentile_us(0.5);
  o.p99_us = waits.percentile_us(0.99);
  o.store_ops_per_acquire = store_operations(a) / o.acquired;
  return o;
}

outcome sum_up_idle(const shared_state& a) {
  const auto& before = a.before[0];
  const auto& after = a.after[0];
  outcome o;
  o.acquired = a.threads - 1;
  o.cpu_percent = 100.0 * static_cast<double>(after.cpu_ns - before.cpu_ns) /
                  static_cast<double>(after.at - before.at);
  o.store_ops_per_s = store_operations(a) * 1e9 / static_cast<double>(after.at - before.at);
  return o;
}

}  // namespace

const workload w6{
    .name = "W6",
    .about = "200 waiters in 4 processes on one name, until all had it",
    .processes = 4,
    .threads = 201,
    .own_process = true,
    .by = compared::ops_per_s,
    .host_baseline = "flock",
    .sit = sit,
    .conduct = serve_all,
    .sum_up = sum_up,
};

const workload w6_one_process{
    .name = "W6-one-process",
    .about = "the same 200 waiters in one process",
    .processes = 1,
    .threads = 201,
    .own_process = true,
    .by = compared::ops_per_s,
    .host_baseline = "flock",
    .sit = sit,
    .conduct = serve_all,
    .sum_up = sum_up,
};

const workload idle{
    .name = "idle",
    .about = "processor time of 100 waiters while the holder keeps it",
    .processes = 1,
    .threads = 101,
    .own_process = true,
    .by = compared::cpu_percent,
    .host_baseline = "sqlite",
    .sit = sit,
    .conduct = do_nothing,
    .sum_up = sum_up_idle,
};

}  // namespace bench
