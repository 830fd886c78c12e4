#include "observe/counters.hpp"

namespace holdfast::observe {

unsigned part_of_this_thread() noexcept {
  static std::atomic<unsigned> next{0};
  constexpr unsigned none = parts;
  thread_local unsigned mine = none;
  if (mine == none) mine = next.fetch_add(1, std::memory_order_relaxed) % parts;
  return mine;
}

}  // namespace holdfast::observe
