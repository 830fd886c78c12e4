#include "harness/eventually.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <stdexcept>

namespace harness {

void eventually(const std::string& what, const std::function<bool()>& condition,
                std::chrono::seconds limit) {
  constexpr int look_every_ms = 2;
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "it never came: " << what;  // seen also if a running thread ends the test
      throw std::runtime_error("it never came: " + what);
    }
    ::poll(nullptr, 0, look_every_ms);
  }
}

}  // namespace harness
