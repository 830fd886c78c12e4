#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <holdfast/session.hpp>
#include <vector>

#include "bench/workload.hpp"

namespace bench {

std::span<const workload> all_workloads() {
  static const std::array all{
      w1,        w1_pinned, w1_linger,  w1_unconfirmed, w2,      w2_unconfirmed, w3,
      w3_fifo,   w4,        w5,         w5_busy,        w6,      w6_one_process, w7,
      idle,      line_10,   line_10000, held,           waiters, waiters_fair,   resign,
      take_over, barrier_64};
  return all;
}

const workload* find_workload(std::string_view name) {
  const auto all = all_workloads();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const auto& w) { return w.name == name; });
  return at == all.end() ? nullptr : &*at;
}

std::int64_t round_trip_ns(const holdfast::session& s) {
  std::vector<std::int64_t> took;
  for (int i = 0; i < 201; ++i) {
    const auto began = now_ns();
    (void)s.show("bench:nothing");
    took.push_back(now_ns() - began);
  }
  std::nth_element(took.begin(), took.begin() + 100, took.end());
  return took[100];
}

std::int64_t memory_in_use() {
  std::ifstream file{"/proc/self/statm"};
  std::int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

histogram all_waits(const shared_state& a) {
  histogram sum{};
  for (unsigned i = 0; i < a.threads; ++i) sum.add(a.participants[i].wait);
  return sum;
}

double store_operations(const shared_state& a) {
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < a.processes; ++i) {
    sum += a.after[i].store_operations - a.before[i].store_operations;
  }
  return static_cast<double>(sum);
}

double store_cpu_us(const shared_state& a) {
  if (a.after[0].store_cpu_ns == 0) return -1;
  return static_cast<double>(a.after[0].store_cpu_ns - a.before[0].store_cpu_ns) / 1e3;
}

}  // namespace bench
