#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace bench {

/// Measures the cost of acquiring several names, or one name on several stores: multi_lock of 8 and
/// redlock over all of them, beside a mutex on the first; and how soon one of three contenders
/// acquires a redlock. In turns, medians of the rounds, as a Markdown table on stdout.
void measure_several(const std::vector<std::string>& urls, std::chrono::milliseconds length,
                     unsigned rounds);

/// The least that such a quorum can cost: one thread, a connection to each server, SET NX PX to all
/// and then their replies; and the same for the script that releases. Empty if these are not Redis
/// servers, or no client was found at build time.
std::function<void()> raw_quorum(const std::vector<std::string>& urls);

}  // namespace bench
