#pragma once

#include <holdfast/testing.hpp>

#include "harness/forwarding_clock.hpp"

namespace harness {

/// A clock that stands still until `time` is moved; a base class.
class still_clock : public forwarding_clock {
 public:
  still_clock() : forwarding_clock(time) {}

  holdfast::testing::fake_clock time;
};

}  // namespace harness
