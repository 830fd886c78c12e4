#include "simulation/local_order.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace simulation {

void local_order::asks(request r) {
  waiter mine{std::move(r), ++last_number_};
  for (const auto& other : all_) {
    const bool waits = other.is.by_its_thread && other.is.who->sleeps;
    if (!waits || !same_queue(other, mine)) continue;
    mine.behind.push_back(other.number);
    if (is_first(other)) mine.first = other.number;
  }
  all_.push_back(std::move(mine));
}

bool local_order::is_behind(const waiter& one, const waiter& other) noexcept {
  return std::find(one.behind.begin(), one.behind.end(), other.number) != one.behind.end();
}

// Whether all other waiters came after it.
bool local_order::is_first(const waiter& one) const noexcept {
  return std::all_of(all_.begin(), all_.end(), [&](const waiter& other) {
    return other.number == one.number || !same_queue(other, one) || is_behind(other, one);
  });
}

// The thread may have had the lock for a while.
void local_order::got(const fiber* who, nanos now) {
  const auto mine =
      std::find_if(all_.begin(), all_.end(), [&](const waiter& w) { return w.is.who == who; });
  if (mine == all_.end()) return;
  for (auto& other : all_) {
    if (other.number != mine->first || now >= other.is.until) continue;
    if (++other.bypassed <= other.is.max_bypass) continue;
    judge_.violated(
        "no thread passes the first waiter of its process more often than max_bypass says",
        "P" + std::to_string(other.is.of->number) + "." + other.is.who->name + " at " +
            other.is.name + ": " + std::to_string(other.bypassed) + " times, of " +
            std::to_string(other.is.max_bypass));
  }
}

void local_order::ends(const fiber* who) {
  std::erase_if(all_, [&](const waiter& w) { return w.is.who == who; });
}

namespace {
// A thread that asked so long ago is certainly queued.
constexpr nanos surely = 300 * millisecond;
}  // namespace

void shared_grants::reads(const fiber* who, const process* of, const std::string& name, nanos now,
                          bool behind) {
  std::erase_if(all_, [&](const reader& r) { return r.who == who; });
  all_.push_back({who, of, name, now, behind, std::numeric_limits<std::uint64_t>::max()});
}

void shared_grants::writes(const process* of, nanos now) {
  for (auto& r : all_) r.behind = r.behind || (r.of == of && now < r.asked + surely);
}

void shared_grants::got(const fiber* who, std::uint64_t fence, nanos now, bool for_all) {
  const auto at =
      std::find_if(all_.begin(), all_.end(), [&](const reader& r) { return r.who == who; });
  if (at == all_.end()) return;
  const reader mine = *at;
  all_.erase(at);
  if (fence > mine.latest) {
    judge_.violated("readers of a process that wait together get the lock together",
                    "P" + std::to_string(mine.of->number) + "." + who->name + " at " + mine.name +
                        ": fence " + std::to_string(fence) + ", another one had " +
                        std::to_string(mine.latest));
  }
  if (for_all) told_of(mine, fence, now);
}

void shared_grants::told_of(const reader& got, std::uint64_t fence, nanos now) {
  for (auto& r : all_) {
    const bool with_it = r.of == got.of && r.name == got.name && r.asked + surely <= now;
    if (with_it && !r.behind) r.latest = std::min(r.latest, fence);
  }
}

}  // namespace simulation
