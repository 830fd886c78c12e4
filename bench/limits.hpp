#pragma once

#include <chrono>
#include <string>

namespace bench {

/// Decisions of a rate limiter on Redis beside a script with one bucket as it is written by hand:
/// in turns, medians of the rounds, as a Markdown table on stdout.
void measure_limits(const std::string& url, std::chrono::milliseconds length, unsigned rounds);

}  // namespace bench
