// expect: (unused-result|nodiscard)
#include <holdfast/holdfast.hpp>

void work(holdfast::mutex& m) {
#ifdef MISTAKE
  m.acquire();  // released again at the semicolon
#else
  auto held = m.acquire();
#endif
}
