#pragma once

#include <holdfast/cpp20.hpp>

#include <holdfast/error.hpp>

namespace holdfast::store {

/// The failure of a force_release whose answer was lost, and whose repetition did not find the
/// holder. Either the first attempt removed the holder, or the holder released the lock: the store
/// does not record which.
inline failure perhaps_taken_away() {
  failure f{errc::unavailable,
            "an answer was lost, and the holder is not there any more: it was taken away, or it "
            "gave the lock back meanwhile"};
  f.outcome_unknown = true;
  return f;
}

}  // namespace holdfast::store
