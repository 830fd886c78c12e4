// expect: deleted (function|constructor|copy)
#include <holdfast/holdfast.hpp>

void work(holdfast::mutex& m) {
#ifdef MISTAKE
  holdfast::mutex copy{m};  // as std::mutex: pass a reference
#else
  holdfast::mutex& copy{m};
#endif
  copy.lock();
  copy.unlock();
}
