#include "store/redis/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holdfast::store::redis {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

std::uint32_t wake_flag::wait() noexcept {
  std::uint32_t seen = 0;
  if (state_.compare_exchange_strong(seen, asleep, std::memory_order_acquire)) seen = asleep;
  while (seen == asleep) {
    ::syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, asleep, nullptr, nullptr, 0);
    seen = state_.load(std::memory_order_acquire);
  }
  return seen & ~asleep;
}

void wake_flag::set(std::uint32_t bits) noexcept {
  void* const address = &state_;
  if ((state_.fetch_or(bits, std::memory_order_release) & asleep) == 0) return;
  // From here on only the address is used: the object is not read.
  ::syscall(SYS_futex, address, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace holdfast::store::redis
