#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast::primitive {

/// Names a thread. A std::thread::id is given to a later thread when its own has ended, and that
/// one would unlock what a dead thread holds; a number is given once.
using thread_number = std::uint64_t;
inline constexpr thread_number no_thread = 0;

inline thread_number this_thread_number() noexcept {
  static std::atomic<thread_number> last{no_thread};
  static thread_local const auto mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return mine;
}

}  // namespace holdfast::primitive
