#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace bench {

/// What it costs to take several names, or one name on several stores: multi_lock of 8 and redlock
/// over all of them beside a mutex on the first; and how soon one of three contenders has a
/// redlock. In turns, medians of the rounds, as a Markdown table on stdout.
void measure_several(const std::vector<std::string>& urls, std::chrono::milliseconds length,
                     unsigned rounds);

}  // namespace bench
