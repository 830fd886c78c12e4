#include "harness/eventually.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace harness {

namespace {
// A trial of seeded faults waits for many events that never come: tests/mutants sets how long.
std::chrono::seconds at_most(std::chrono::seconds limit) {
  static const char* const patience = std::getenv("HOLDFAST_PATIENCE");
  return patience == nullptr ? limit : std::min(limit, std::chrono::seconds(std::atol(patience)));
}
}  // namespace

void eventually(const std::string& what, const std::function<bool()>& condition,
                std::chrono::seconds limit) {
  constexpr int look_every_ms = 2;
  const auto end = std::chrono::steady_clock::now() + at_most(limit);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "it never came: " << what;  // also seen if a running thread ends the test
      throw std::runtime_error("it never came: " + what);
    }
    ::poll(nullptr, 0, look_every_ms);
  }
}

}  // namespace harness
