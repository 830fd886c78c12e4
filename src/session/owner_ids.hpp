#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <holdfast/store/command.hpp>
#include <mutex>

namespace holdfast::engine {

/// Owner ids: 128 bits each from the kernel's random source, fetched many at a time because a
/// system call for each would cost more than the rest of an uncontended lock. Thread-safe.
class owner_ids {
 public:
  store::owner_id next();

 private:
  void refill();
  std::mutex mutex_;
  std::array<std::uint64_t, 64> random_{};
  std::size_t used_ = random_.size();
};

/// A number from 0 up to (not including) `below`, for jitter only.
std::uint64_t jitter(std::uint64_t below) noexcept;
/// To be called in the child of a fork(), which would otherwise draw the same numbers as its
/// siblings.
void forget_jitter() noexcept;
/// A random time from three quarters of `d` up to `d`, so that waiters do not poll all at once.
std::chrono::nanoseconds jittered(std::chrono::nanoseconds d) noexcept;

}  // namespace holdfast::engine
