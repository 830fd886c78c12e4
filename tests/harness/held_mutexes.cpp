#include "harness/held_mutexes.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

#if defined(__SANITIZE_THREAD__)
#define HOLDFAST_COUNTS_MUTEXES 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HOLDFAST_COUNTS_MUTEXES 0
#endif
#endif
#ifndef HOLDFAST_COUNTS_MUTEXES
#define HOLDFAST_COUNTS_MUTEXES 1
#endif

namespace {

thread_local int held = 0;

}  // namespace

namespace harness {

int held_mutexes() noexcept { return held; }

bool counts_held_mutexes() noexcept { return HOLDFAST_COUNTS_MUTEXES; }

}  // namespace harness

#if HOLDFAST_COUNTS_MUTEXES

namespace {

using operation = int (*)(pthread_mutex_t*);

// Finds the C library's own function. A condition variable's use of the mutex during a wait does
// not pass here, so the mutex counts as held throughout.
operation next(std::atomic<operation>& known, const char* name) noexcept {
  operation found = known.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = reinterpret_cast<operation>(::dlsym(RTLD_NEXT, name));
    known.store(found, std::memory_order_relaxed);
  }
  return found;
}

std::atomic<operation> lock_it{nullptr}, try_it{nullptr}, unlock_it{nullptr};

}  // namespace

extern "C" int pthread_mutex_lock(pthread_mutex_t* m) noexcept {
  const int failed = next(lock_it, "pthread_mutex_lock")(m);
  held += failed == 0 ? 1 : 0;
  return failed;
}

extern "C" int pthread_mutex_trylock(pthread_mutex_t* m) noexcept {
  const int failed = next(try_it, "pthread_mutex_trylock")(m);
  held += failed == 0 ? 1 : 0;
  return failed;
}

extern "C" int pthread_mutex_unlock(pthread_mutex_t* m) noexcept {
  const int failed = next(unlock_it, "pthread_mutex_unlock")(m);
  held -= failed == 0 ? 1 : 0;
  return failed;
}

#endif
