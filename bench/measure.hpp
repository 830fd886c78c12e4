#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/subject.hpp"
#include "bench/workload.hpp"

namespace bench {

struct plan {
  place at;
  std::vector<const workload*> workloads;
  std::vector<const subject_kind*> subjects;
  std::chrono::milliseconds length{};  ///< of one subject in one workload, all rounds together
  unsigned rounds = 1;
  std::vector<pid_t> servers;  ///< the processes of the store
};

/// The result of one subject in one workload: medians over the rounds.
struct row {
  std::string_view workload, subject;
  outcome median;
  unsigned rounds = 0;
  bool counts_operations = false;
  std::string_view baseline;  ///< holdfast only: the baseline that belongs to this workload
  double ratio = -1;          ///< to that baseline
  std::string_view ratio_of;
  std::vector<std::pair<std::string_view, double>> ratios;  ///< to every baseline
  double hand_overs = -1;  ///< resign: p50_us to that of W5 in the same run
  double cpu_ratio = -1;   ///< limits: store_cpu_us to the baseline's
};

/// Runs all subjects of one workload in turns: one round of each, then the next round of each, so
/// that other work of the machine affects them alike. Ratios are taken round by round; the result
/// is their median. Throws if a subject lets two in at a time.
std::vector<row> measure(const plan& p, const workload& w);

/// A row of the medians of rounds, still without ratios.
row row_of(std::string_view workload, std::string_view subject, const std::vector<outcome>& rounds);
/// Our number relative to the baseline's, round by round; the median. Below 0 if there is none.
double ratio_of(const std::vector<outcome>& ours, const std::vector<outcome>& baseline,
                double outcome::* number);

/// Why a subject takes no part in a workload; empty if it does.
std::string why_not(const plan& p, const workload& w, const subject_kind& s);

}  // namespace bench
