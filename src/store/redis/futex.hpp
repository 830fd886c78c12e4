#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast::store::redis {

/// A one-shot signal to one thread. Waking costs a system call only if that thread sleeps already, and
/// needs no mutex: it may be done after the lock is let go, in one batch. Thread-safe.
class wake_flag {
 public:
  /// Waits until set() was called, and returns what with (never 0).
  std::uint32_t wait() noexcept;
  /// The waiter may be gone, and this object with it, as soon as this is called.
  void set(std::uint32_t value) noexcept;
  /// Only by the waiting thread, between two waits.
  void reset() noexcept { state_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t asleep = ~std::uint32_t{0};
  std::atomic<std::uint32_t> state_{0};
};

}  // namespace holdfast::store::redis
