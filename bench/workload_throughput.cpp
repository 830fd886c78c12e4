#include <algorithm>
#include <limits>

#include "bench/workload.hpp"

// W1 to W4 and W7: threads that lock and unlock for as long as the round lasts.
namespace bench {
namespace {

using namespace std::chrono_literals;
constexpr auto working_time = 1ms;
constexpr std::uint64_t timed_of = 8;

void work_for(std::chrono::nanoseconds length) {
  if (length == 0ns) return;
  for (const auto until = clock::now() + length; clock::now() < until;) {
  }
}

void lock_and_unlock(shared_state& a, unsigned number, subject& s, unsigned lock,
                     std::chrono::nanoseconds work) {
  participant& me = a.participants[number];
  const auto grip = s.grip(lock);
  a.go.wait_for(1);
  me.first_at = now_ns();
  while (!a.stop) {
    // Not each time: reading the clock costs more than a free std::mutex.
    const bool timed = me.acquired % timed_of == 0;
    const auto asked = timed ? clock::now() : clock::time_point{};
    grip->lock();
    if (timed) me.wait.add(clock::now() - asked);
    // Read before the work and written after it, so that a second thread inside is noticed.
    const auto inside = a.inside[lock];
    work_for(work);
    a.inside[lock] = inside + 1;
    grip->unlock();
    ++me.acquired;
  }
  me.last_at = now_ns();
}

void sit_at_one_lock(shared_state& a, unsigned number, subject& s) {
  lock_and_unlock(a, number, s, 0, 0ns);
}
void sit_at_own_lock(shared_state& a, unsigned number, subject& s) {
  lock_and_unlock(a, number, s, number, 0ns);
}
void sit_and_work(shared_state& a, unsigned number, subject& s) {
  lock_and_unlock(a, number, s, 0, working_time);
}

void run_for_a_while(const workers& all, shared_state& a, std::chrono::milliseconds length) {
  all.count(false);
  a.go.set(1);
  all.let_pass(length);
  a.stop = true;
  all.join();
  all.count(true);
}

struct totals {
  std::uint64_t acquired = 0, least = std::numeric_limits<std::uint64_t>::max(), most = 0;
  double seconds = 0;
};

totals add_up(const shared_state& a) {
  totals t;
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
  for (unsigned i = 0; i < a.threads; ++i) {
    const participant& s = a.participants[i];
    t.acquired += s.acquired;
    t.least = std::min(t.least, s.acquired);
    t.most = std::max(t.most, s.acquired);
    first = std::min(first, s.first_at);
    last = std::max(last, s.last_at);
  }
  t.seconds = static_cast<double>(last - first) / 1e9;
  return t;
}

outcome sum_up(const shared_state& a) {
  const totals t = add_up(a);
  const histogram waits = all_waits(a);
  const auto acquired = static_cast<double>(t.acquired);
  const double fair = acquired / a.threads;
  outcome o;
  o.acquired = acquired;
  o.ops_per_s = acquired / t.seconds;
  o.p50_us = waits.percentile_us(0.5);
  o.p99_us = waits.percentile_us(0.99);
  o.min_share = static_cast<double>(t.least) / fair;
  o.max_share = static_cast<double>(t.most) / fair;
  o.store_ops_per_acquire = store_operations(a) / acquired;
  o.store_cpu_us = std::max(-1.0, store_cpu_us(a) / acquired);
  return o;
}

outcome sum_up_working(const shared_state& a) {
  outcome o = sum_up(a);
  o.efficiency = o.ops_per_s * std::chrono::duration<double>{working_time}.count();
  return o;
}

constexpr workload variant_of(workload w, std::string_view variant, std::string_view name,
                              std::string_view about, std::string_view host_baseline) {
  w.variant = variant;
  w.name = name;
  w.about = about;
  w.host_baseline = host_baseline;
  return w;
}

constexpr workload pinned(workload w) {
  w.pinned = true;
  return w;
}

}  // namespace

const workload w1{
    .name = "W1",
    .about = "one client, one free name, lock + unlock",
    .processes = 1,
    .threads = 1,
    .own_process = false,
    .by = compared::ops_per_s,
    .host_baseline = "sqlite",
    .sit = sit_at_one_lock,
    .conduct = run_for_a_while,
    .sum_up = sum_up,
};

const workload w1_pinned = pinned(variant_of(
    w1, "", "W1-pinned", "as W1, client and server on a processor each", w1.host_baseline));

const workload w1_linger = variant_of(w1, "linger", "W1-linger", "as W1, with linger", "flock");

const workload w2{
    .name = "W2",
    .about = "16 threads, a name each",
    .processes = 1,
    .threads = 16,
    .own_process = false,
    .by = compared::ops_per_s,
    .host_baseline = "sqlite",
    .sit = sit_at_own_lock,
    .conduct = run_for_a_while,
    .sum_up = sum_up,
};

const workload w1_unconfirmed =
    variant_of(w1, "unconfirmed", "W1-unconfirmed", "as W1, with unconfirmed_release", "sqlite");
const workload w2_unconfirmed =
    variant_of(w2, "unconfirmed", "W2-unconfirmed", "as W2, with unconfirmed_release", "sqlite");

const workload w3{
    .name = "W3",
    .about = "8 threads of one process, one name, empty critical section",
    .processes = 1,
    .threads = 8,
    .own_process = false,
    .by = compared::ops_per_s,
    .host_baseline = "sqlite",
    .sit = sit_at_one_lock,
    .conduct = run_for_a_while,
    .sum_up = sum_up,
};

const workload w3_fifo = variant_of(w3, "fifo", "W3-fifo",
                                    "as W3, strictly in order (max_bypass = 0)", w3.host_baseline);

const workload w4{
    .name = "W4",
    .about = "4 processes × 4 threads, one name",
    .processes = 4,
    .threads = 16,
    .own_process = true,
    .by = compared::ops_per_s,
    .host_baseline = "sqlite",
    .sit = sit_at_one_lock,
    .conduct = run_for_a_while,
    .sum_up = sum_up,
};

const workload w7{
    .name = "W7",
    .about = "8 threads, 1 ms of work under the lock",
    .processes = 1,
    .threads = 8,
    .own_process = false,
    .by = compared::ops_per_s,
    .host_baseline = "flock",
    .sit = sit_and_work,
    .conduct = run_for_a_while,
    .sum_up = sum_up_working,
};

}  // namespace bench
