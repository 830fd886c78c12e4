#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include "bench/area.hpp"
#include "bench/crew.hpp"
#include "bench/subject.hpp"

namespace bench {

/// What a round of a workload with one subject came to. Numbers that make no sense for a workload
/// are left below 0.
struct outcome {
  double ops_per_s = -1;
  double p50_us = -1, p99_us = -1;
  double min_share = -1, max_share = -1;  ///< of a thread; 1 is what it gets if all get the same
  double store_ops_per_acquire = -1;
  double efficiency = -1;       ///< W7: part of the time in which work was done under the lock
  double cpu_percent = -1;      ///< idle: of one processor
  double store_ops_per_s = -1;  ///< idle
  double store_cpu_us = -1;     ///< of the store's server, for one acquisition
  double bytes_each = -1;       ///< held: memory for a lease
  double acquired = 0;
};

/// Which number a subject is compared with its floor by.
enum class compared { ops_per_s, p50_us, cpu_percent };

struct workload {
  std::string_view name;
  std::string_view about;
  unsigned processes;
  unsigned threads;  ///< in all processes
  bool own_process;  ///< if false, and there is one process, its threads are in this one
  compared by;
  std::string_view host_floor;  ///< which floor on one host a ratio is taken to
  std::string_view variant{};   ///< as in place
  bool only_ours = false;       ///< nothing is like it; for stores with a server
  /// What one thread does.
  void (*sit)(area&, unsigned seat, subject&);
  /// What the conductor does between "everybody is ready" and "everybody is done".
  void (*conduct)(const crew&, area&, std::chrono::milliseconds length);
  /// What it came to.
  outcome (*sum_up)(const area&);
};

std::span<const workload> all_workloads();
/// Null if there is none of that name.
const workload* find_workload(std::string_view name);

extern const workload w1, w1_linger, w1_unconfirmed, w2, w2_unconfirmed, w3, w3_fifo, w4, w5,
    w5_busy, w6, w6_one_process, w7, idle, line_10, line_10000, held;

/// The waits of all threads.
histogram all_waits(const area& a);
/// Store operations of all processes between the two counts.
double store_operations(const area& a);
/// Processor time of the store's server between them; -1 if it cannot be asked.
double store_cpu_us(const area& a);

}  // namespace bench
