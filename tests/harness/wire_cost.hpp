#pragma once

#include <algorithm>
#include <holdfast/holdfast.hpp>

#include "harness/fault_proxy.hpp"

namespace harness {

/// The least number of round trips, over several pairs, for lock and unlock of a free name on the
/// wire; the session goes through that network. One-time costs for a new name or server (a row,
/// prepared statements) come before. A loaded machine may cost a pair more: after a late answer,
/// the estimate of the server's time is wrong.
inline std::size_t round_trips_of_a_free_lock(fault_proxy& network,
                                              const holdfast::session& through) {
  constexpr int known_after = 5, pairs = 20;
  holdfast::mutex m{through, "free"};
  std::size_t least = ~std::size_t{0};
  for (int i = 0; i < known_after + pairs; ++i) {
    const auto before = network.count().round_trips;
    m.lock(), m.unlock();
    if (i >= known_after) least = std::min(least, network.count().round_trips - before);
  }
  return least;
}

}  // namespace harness
