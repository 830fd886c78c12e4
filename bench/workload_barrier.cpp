#include <algorithm>
#include <atomic>
#include <holdfast/holdfast.hpp>
#include <thread>
#include <utility>

#include "bench/workload.hpp"

// 64 participants in 8 processes: from the call of the last one to arrive until the last one
// continues. The others have arrived before, and sleep. In the same run, the same with only a
// number in shared memory that they wait for: the cost of waking up so many on this machine.
namespace bench {
namespace {

constexpr std::uint32_t phases = 30;

void raise(std::atomic<std::int64_t>& greatest, std::int64_t value) {
  for (auto seen = greatest.load(); seen < value;) {
    if (greatest.compare_exchange_weak(seen, value)) return;
  }
}

/// Records when it came through; `turn` counts the phases that all have come through.
void through(shared_state& a, std::uint32_t phase) {
  raise(a.last_at, now_ns());
  if (++a.had_it == a.threads * phase) a.turn.set(phase);
}

void await_all_but_me(const shared_state& a) {
  for (unsigned i = 1; i < a.threads;) {
    const participant& s = a.participants[i];
    if (s.trying && is_asleep(s.tid)) {
      ++i;
    } else {
      std::this_thread::yield();
    }
  }
}

/// The first participant comes last.
template <class Arrive, class Wait, class Last>
void pass(shared_state& a, unsigned number, std::uint32_t phase, Arrive arrive, Wait wait,
          Last last) {
  participant& me = a.participants[number];
  if (number != 0) {
    arrive();
    me.trying = true;
    wait();
    me.trying = false;
    through(a, phase);
    return a.turn.wait_for(phase);
  }
  await_all_but_me(a);
  await_all_but_me(a);  // a thread that was asleep on its way there is there now
  const auto began = now_ns();
  last();
  through(a, phase);
  a.turn.wait_for(phase);
  me.wait.add(std::chrono::nanoseconds{a.last_at - began});
}

void by_number(shared_state& a, unsigned number) {
  for (std::uint32_t p = 1; p <= phases; ++p) {
    pass(a, number, p, [] {}, [&] { a.counted.wait_for(p); }, [&] { a.counted.set(p); });
  }
  if (number != 0) return;
  a.least_ns = static_cast<std::int64_t>(1e3 * a.participants[0].wait.percentile_us(0.5));
  a.participants[0].wait = histogram{};
}

void by_name(shared_state& a, unsigned number, subject& s) {
  holdfast::barrier all{*s.session(), "bench:barrier", a.threads};
  for (std::uint32_t p = phases + 1; p <= 2 * phases; ++p) {
    holdfast::barrier::arrival mine;
    pass(
        a, number, p, [&] { mine = all.arrive(); }, [&] { all.wait(std::move(mine)); },
        [&] { all.arrive_and_wait(); });
  }
}

void sit(shared_state& a, unsigned number, subject& s) {
  a.go.wait_for(1);
  by_number(a, number);
  by_name(a, number, s);
  if (number == 0) a.round_trip_ns = round_trip_ns(*s.session());
}

void conduct(const workers& all, shared_state& a, std::chrono::milliseconds) {
  all.count(false);
  a.go.set(1);
  all.await(a.turn, 2 * phases);
  all.count(true);
  all.join();
}

outcome sum_up(const shared_state& a) {
  const histogram& waits = a.participants[0].wait;
  outcome o;
  o.acquired = static_cast<double>(waits.total());
  o.p50_us = waits.percentile_us(0.5);
  o.p99_us = waits.percentile_us(0.99);
  o.store_ops_per_acquire = store_operations(a) / (o.acquired * a.threads);
  o.round_trips = 1e3 * o.p50_us / static_cast<double>(a.round_trip_ns);
  o.least_us = static_cast<double>(a.least_ns) / 1e3;
  return o;
}

}  // namespace

const workload barrier_64{
    .name = "barrier-64",
    .about = "64 participants in 8 processes: from the last arrival until all have gone on",
    .processes = 8,
    .threads = 64,
    .own_process = true,
    .by = compared::p50_us,
    .host_baseline = "",
    .needs = {&holdfast::store::capabilities::barrier},
    .sit = sit,
    .conduct = conduct,
    .sum_up = sum_up,
};

}  // namespace bench
