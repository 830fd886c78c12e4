// expect: belongs to a thread
#include <holdfast/holdfast.hpp>

void work(holdfast::session& s) {
#ifdef MISTAKE
  holdfast::recursive_mutex m{s, "orders"};  // a coroutine has no thread that could lock it again
#else
  holdfast::mutex m{s, "orders"};
#endif
  (void)async_acquire(m).future();
}
