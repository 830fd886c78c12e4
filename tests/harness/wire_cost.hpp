#pragma once

#include <holdfast/holdfast.hpp>

#include "harness/fault_proxy.hpp"

namespace harness {

/// The round trips that lock and unlock of a free name cost on the wire, of one pair; the session
/// goes through that network. What it costs once, to get to know the name and the server (a row,
/// prepared statements), is over before.
inline double round_trips_of_a_free_lock(fault_proxy& network, const holdfast::session& through) {
  constexpr int known_after = 5, pairs = 20;
  holdfast::mutex m{through, "free"};
  const auto round_trips_after = [&](int times) {
    for (int i = 0; i < times; ++i) m.lock(), m.unlock();
    return network.count().round_trips;
  };
  const auto before = round_trips_after(known_after);
  return static_cast<double>(round_trips_after(pairs) - before) / pairs;
}

}  // namespace harness
