// expect: (no member|has no member) .*lock_shared
#include <holdfast/holdfast.hpp>
#include <shared_mutex>

void work([[maybe_unused]] holdfast::mutex& m, [[maybe_unused]] holdfast::shared_mutex& s) {
#ifdef MISTAKE
  std::shared_lock guard{m};  // a mutex has no readers
#else
  std::shared_lock guard{s};
#endif
}
