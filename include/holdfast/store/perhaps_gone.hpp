#pragma once

#include <holdfast/cpp20.hpp>

#include <holdfast/error.hpp>

namespace holdfast::store {

/// Of a holder that was to be taken away by force, by an attempt whose answer was lost, and that
/// the next attempt did not find: the store keeps no trace of either way to leave.
inline failure perhaps_taken_away() {
  failure f{errc::unavailable,
            "an answer was lost, and the holder is not there any more: it was taken away, or it "
            "gave the lock back meanwhile"};
  f.outcome_unknown = true;
  return f;
}

}  // namespace holdfast::store
