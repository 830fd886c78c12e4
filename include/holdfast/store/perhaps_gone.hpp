#pragma once

#include <holdfast/cpp20.hpp>

#include <holdfast/error.hpp>

namespace holdfast::store {

/// The failure of a force_release whose answer was lost, and whose repetition did not find the
/// holder. Either the first attempt removed the holder, or the holder released the lock: the store
/// does not record which.
inline failure perhaps_taken_away() {
  failure f{
      errc::unavailable,
      "an answer was lost, and the repeated request did not find the holder: either the first "
      "request removed the holder, or the holder released the lock"};
  f.outcome_unknown = true;
  return f;
}

}  // namespace holdfast::store
