// expect: (no matching|could not convert|no viable)
#include <holdfast/holdfast.hpp>

void work([[maybe_unused]] holdfast::session& s) {
#ifdef MISTAKE
  holdfast::mutex m{"order:1"};  // between whom? A name means something only on a store
#else
  holdfast::mutex m{s, "order:1"};
#endif
}
