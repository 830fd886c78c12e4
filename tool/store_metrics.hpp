#pragma once

#include <chrono>
#include <holdfast/metrics_text.hpp>
#include <span>
#include <string>

#include "tool/survey/snapshot.hpp"

namespace holdfast::tool {

/// Queries all names of the store. Costs a scan, and one or two round trips a name. Throws
/// holdfast::error.
snapshot look_at_store(const session& s);

/// The state of whole stores for Prometheus, as docs/monitoring.md lists it. No name is a label but
/// those of the first 64 elections.
std::string store_metrics(std::span<const snapshot> stores,
                          std::chrono::system_clock::time_point now, metrics_format format);

}  // namespace holdfast::tool
