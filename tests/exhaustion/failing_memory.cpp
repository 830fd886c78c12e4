#include "exhaustion/failing_memory.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace exhaustion {

namespace {

std::atomic<bool> limited{false};
std::atomic<long> left{0};
std::atomic<of> limits{of::this_thread};
std::atomic<how> fails{how::once};
std::atomic<bool> one_failed{false};
thread_local bool has_limit = false;
thread_local int spared = 0;

bool is_limited() noexcept {
  if (!limited || spared > 0) return false;
  return limits == of::everybody || (limits == of::this_thread) == has_limit;
}

bool must_fail() noexcept {
  if (!is_limited()) return false;
  const long before = left.fetch_sub(1);
  const bool fail = fails == how::once ? before == 0 : before <= 0;
  if (fail) one_failed = true;
  return fail;
}

}  // namespace

no_memory_after::no_memory_after(long allocations, of whose, how often) {
  has_limit = true;
  one_failed = false;
  left = allocations;
  limits = whose;
  fails = often;
  limited = true;
}

no_memory_after::~no_memory_after() {
  limited = false;
  has_limit = false;
}

bool no_memory_after::failed() noexcept { return one_failed; }

enough_memory::enough_memory() noexcept { ++spared; }
enough_memory::~enough_memory() { --spared; }

}  // namespace exhaustion

[[gnu::noinline]] void* operator new(std::size_t size) {
  if (exhaustion::must_fail()) throw std::bad_alloc();
  if (void* const p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
