#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bench/measure.hpp"

namespace bench {

/// Decisions of a rate limiter on Redis beside a script with one bucket as people write it by hand,
/// in turns: medians of the rounds, and ratios as in measure().
std::vector<row> measure_limits(const std::string& url, std::chrono::milliseconds length,
                                unsigned rounds);

}  // namespace bench
