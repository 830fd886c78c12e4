#include "session/forks.hpp"

#include <pthread.h>

#include "session/owner_ids.hpp"

namespace holdfast::engine {

std::atomic<unsigned> maker::forks{0};

maker::maker() noexcept {
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    forks.fetch_add(1, std::memory_order_relaxed);
    forget_jitter();  // otherwise all children would draw the same pauses
  });
  (void)registered;
  made_after_ = forks.load(std::memory_order_relaxed);
}

}  // namespace holdfast::engine
