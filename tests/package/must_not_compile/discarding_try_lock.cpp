// expect: (unused-result|nodiscard)
#include <holdfast/holdfast.hpp>

void work(holdfast::mutex& m) {
#ifdef MISTAKE
  m.try_lock();  // works on, whether it got the lock or not
#else
  if (m.try_lock()) m.unlock();
#endif
}
