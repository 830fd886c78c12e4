#include "tool/demo_board.hpp"

#include <algorithm>

namespace holdfast::tool::demo {

static_assert(std::atomic<std::uint8_t>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<phase>::is_always_lock_free);
static_assert(max_workers < 255);

std::optional<std::size_t> board::claim(std::size_t worker) {
  for (std::size_t i = counts_[0].first_open; i < claims_.size(); ++i) {
    std::uint8_t open = 0;
    if (!claims_[i].compare_exchange_strong(open, mark(worker))) continue;
    std::size_t first = counts_[0].first_open;
    while (first < i + 1 && !counts_[0].first_open.compare_exchange_weak(first, i + 1)) {
    }
    return i;
  }
  return {};
}

std::optional<std::size_t> board::unfinished(std::size_t worker) const {
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    if (claims_[i] == mark(worker)) return i;
  }
  return {};
}

void board::finish(std::size_t order, std::uint32_t wait_us) {
  wait_us_[order] = wait_us;
  claims_[order] = done;
  ++counts_[0].finished;
  counts_[0].last_finish = std::chrono::steady_clock::now().time_since_epoch().count();
}

bool board::all_finished() const {
  for (std::size_t i = 0; i < claims_.size(); ++i) {
    if (claims_[i] != done) return false;
  }
  return true;
}

std::chrono::steady_clock::time_point board::last_finish() const {
  using clock = std::chrono::steady_clock;  // the same for all processes of a machine
  return clock::time_point{clock::duration{counts_[0].last_finish}};
}

void board::give_up(std::size_t worker, std::string_view problem) {
  char* const out = desks_[worker].problem;
  const std::size_t n = std::min(problem.size(), sizeof(desk::problem) - 1);
  std::copy_n(problem.data(), n, out);
  out[n] = 0;
}

}  // namespace holdfast::tool::demo
