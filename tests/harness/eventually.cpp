#include "harness/eventually.hpp"

#include <poll.h>

#include <stdexcept>

namespace harness {

void eventually(const std::string& what, const std::function<bool()>& condition,
                std::chrono::seconds limit) {
  constexpr int look_every_ms = 2;
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("it never came: " + what);
    ::poll(nullptr, 0, look_every_ms);
  }
}

}  // namespace harness
