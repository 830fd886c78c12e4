// expect: (cannot convert|could not convert|no viable)
#include <holdfast/holdfast.hpp>
// The precompiled header is read only where it comes first.
#include <chrono>

bool work(holdfast::mutex& m) {
#ifdef MISTAKE
  return m.try_lock_for(500);  // 500 of what?
#else
  return m.try_lock_for(std::chrono::milliseconds{500});
#endif
}
