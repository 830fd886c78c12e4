// expect: (unused-result|nodiscard)
#include <holdfast/holdfast.hpp>

void work(holdfast::mutex& m) {
#ifdef MISTAKE
  async_acquire(m);  // was never begun
#else
  async_acquire(m).start([](holdfast::result<holdfast::lease>) {});
#endif
}
