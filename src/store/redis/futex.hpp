#pragma once

#include <atomic>
#include <cstdint>

namespace holdfast::store::redis {

/// One thread waits here for bits that others set. Waking costs a system call only if that thread
/// sleeps already, and needs no mutex: it may be done in a batch after the mutex is released.
class wake_flag {
 public:
  /// Waits until bits are set, and returns them.
  std::uint32_t wait() noexcept;
  /// The waiting thread, and this object with it, may be gone as soon as the bits are set. `bits`
  /// below 1 << 31.
  void set(std::uint32_t bits) noexcept;
  /// Called by the waiting thread.
  void clear(std::uint32_t bits) noexcept {
    state_.fetch_and(~(bits | asleep), std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t asleep = std::uint32_t{1} << 31;
  std::atomic<std::uint32_t> state_{0};
};

}  // namespace holdfast::store::redis
