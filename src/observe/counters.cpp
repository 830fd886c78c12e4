#include "observe/counters.hpp"

namespace holdfast::observe {

namespace {

/// One bit for each part that is used by a single thread. Acquire and release make the counts of
/// one thread visible to the part's next thread.
std::atomic<unsigned> taken{0};

unsigned take_part() noexcept {
  unsigned now = taken.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < shared_part;) {
    if ((now & (1U << i)) != 0) {
      ++i;
    } else if (taken.compare_exchange_weak(now, now | (1U << i), std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
      return i;
    }
  }
  return shared_part;
}

/// A thread that counts after the destruction of its thread-local variables uses the shared part.
struct own_part {
  own_part() noexcept : index(take_part()) {}
  own_part(const own_part&) = delete;
  ~own_part() {
    part_here = shared_part;
    if (index != shared_part) taken.fetch_and(~(1U << index), std::memory_order_release);
  }
  const unsigned index;
};

}  // namespace

unsigned find_part() noexcept {
  static thread_local own_part mine;
  return part_here = mine.index;
}

}  // namespace holdfast::observe
