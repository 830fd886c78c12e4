#pragma once

#include <chrono>
#include <vector>

#include "bench/subject.hpp"

namespace bench {

/// A median, and bounds between which the true one is with 95 % certainty.
struct bounded_median {
  double low = 0, median = 0, high = 0;
};
/// Of at least one value.
bounded_median median_with_bounds(std::vector<double> values);

/// Measures W1 (lock and unlock by one thread) with two subjects in short slices that take turns,
/// so that other work of the machine affects them alike: what differs by a few percent is not seen
/// in rounds of a second. The first subject takes part twice, as a check. Prints the medians of the
/// slices' ratios as a Markdown table on stdout.
void measure_paired(const place& at, const subject_kind& plain, const subject_kind& other,
                    std::chrono::milliseconds length);

}  // namespace bench
