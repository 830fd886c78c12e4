#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast::primitive {

/// Identifies a thread. A std::thread::id is reused for a later thread after its own has ended, and
/// that thread could unlock what the dead thread holds; a number is never reused.
using thread_number = std::uint64_t;
inline constexpr thread_number no_thread = 0;

inline thread_number this_thread_number() noexcept {
  static std::atomic<thread_number> last{no_thread};
  static thread_local const auto mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return mine;
}

}  // namespace holdfast::primitive
