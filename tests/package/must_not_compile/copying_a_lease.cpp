// expect: deleted (function|constructor|copy)
#include <holdfast/holdfast.hpp>
#include <utility>

holdfast::lease twice(holdfast::lease held) {
#ifdef MISTAKE
  holdfast::lease copy =
      held;  // two owners of one acquisition: the first to go would release for both
#else
  holdfast::lease copy = std::move(held);
#endif
  return copy;
}
