#pragma once

#include <chrono>
#include <holdfast/metrics_text.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tool/listed_name.hpp"

namespace holdfast::tool {

/// What was found out about one store at one moment.
struct store_snapshot {
  std::string url;  ///< without secrets
  bool up = false;  ///< if not, the rest is empty
  std::optional<std::chrono::nanoseconds> round_trip;
  std::chrono::nanoseconds scan{};  ///< how long it took to look at all names
  std::vector<listed_name> names;
};

/// Looks at all names of the store. Costs a scan, and one or two round trips a name. A store that
/// does not answer is one that is not up; other failures are thrown (holdfast::error).
store_snapshot look_at_store(const session& s, const std::string& url);

/// The state of whole stores for Prometheus, as docs/monitoring.md lists it. No name is a label but
/// those of the first 64 elections.
std::string store_metrics(std::span<const store_snapshot> stores,
                          std::chrono::system_clock::time_point now, metrics_format format);

}  // namespace holdfast::tool
