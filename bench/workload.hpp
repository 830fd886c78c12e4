#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <holdfast/store/capabilities.hpp>
#include <span>
#include <string_view>

#include "bench/shared_state.hpp"
#include "bench/subject.hpp"
#include "bench/workers.hpp"

namespace bench {

/// The result of a round of a workload with one subject. Numbers that make no sense for a workload
/// stay below 0.
struct outcome {
  double ops_per_s = -1;
  double p50_us = -1, p99_us = -1;
  double min_share = -1, max_share = -1;  ///< of a thread; 1 is an equal share
  double store_ops_per_acquire = -1;
  double efficiency = -1;       ///< W7: part of the time in which work was done under the lock
  double cpu_percent = -1;      ///< idle: of one processor
  double store_ops_per_s = -1;  ///< idle
  double store_cpu_us = -1;     ///< of the store's server, for one acquisition
  double bytes_each = -1;       ///< held: memory for a lease
  double statements_each = -1;  ///< waiters: of the server, for a waiter in a second
  double round_trips = -1;      ///< p50_us in round trips to the store
  double least_us = -1;         ///< barrier-64: the cost of the wake-ups alone
  double acquired = 0;
};

/// The number by which a subject is compared with its baseline.
enum class compared { ops_per_s, p50_us, cpu_percent };

struct workload {
  std::string_view name;
  std::string_view about;
  unsigned processes;
  unsigned threads;  ///< in all processes
  bool own_process;  ///< if false, and there is one process, its threads are in this one
  compared by;
  std::string_view host_baseline;  ///< the baseline on one host for the ratio
  std::string_view variant{};      ///< as in place
  /// Null: anywhere, beside the baselines. Otherwise no baseline is like it, and this returns where
  /// it makes sense.
  bool (*only_ours_on)(std::string_view url) = nullptr;
  bool once = false;              ///< one round is enough: it is long, and its figure steady
  bool starts_processes = false;  ///< of its own
  bool pinned = false;            ///< client and servers run on a processor each
  /// Capabilities of the store without which this cannot be measured; null ones count for nothing.
  /// The baselines have nothing to compare it with.
  std::array<bool holdfast::store::capabilities::*, 2> needs{};
  /// The work of one thread.
  void (*sit)(shared_state&, unsigned participant, subject&);
  /// The conductor's work between "everybody is ready" and "everybody is done".
  void (*conduct)(const workers&, shared_state&, std::chrono::milliseconds length);
  /// Computes the result.
  outcome (*sum_up)(const shared_state&);
};

std::span<const workload> all_workloads();
/// Null if there is none of that name.
const workload* find_workload(std::string_view name);

extern const workload w1, w1_pinned, w1_linger, w1_unconfirmed, w2, w2_unconfirmed, w3, w3_fifo, w4,
    w5, w5_busy, w6, w6_one_process, w7, idle, line_10, line_10000, held, waiters, waiters_fair,
    resign, take_over, barrier_64;

/// The parts of W5: two threads of two processes hand the lock to each other.
void give_and_receive(shared_state& a, unsigned number, subject& s);
void let_them(const workers& all, shared_state& a, std::chrono::milliseconds length);
outcome sum_up_hand_overs(const shared_state& a);
/// Queries the store: the median of many round trips.
std::int64_t round_trip_ns(const holdfast::session& s);

/// The resident memory of this process.
std::int64_t memory_in_use();
/// The waits of all threads.
histogram all_waits(const shared_state& a);
/// Store operations of all processes between the two counts.
double store_operations(const shared_state& a);
/// Processor time of the store's server between the two counts; -1 if it is unknown.
double store_cpu_us(const shared_state& a);

}  // namespace bench
