#pragma once

#include <algorithm>
#include <holdfast/holdfast.hpp>

#include "harness/fault_proxy.hpp"

namespace harness {

/// The least round trips that lock and unlock of a free name cost on the wire, of several pairs;
/// the session goes through that network. What it costs once, to get to know the name and the
/// server (a row, prepared statements), is over before. A loaded machine may cost a pair more: the
/// time that is guessed of a server is wrong after an answer that came late.
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
