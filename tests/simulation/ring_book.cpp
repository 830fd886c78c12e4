#include "simulation/ring_book.hpp"

#include <algorithm>
#include <utility>

namespace simulation {

namespace {

/// A wait counts as older than another only if it began earlier by more than this: two that are
/// recorded within one poll have any order.
constexpr nanos surely_older = 400 * millisecond;

}  // namespace

void ring_book::waits(const process& of, const std::string& name, bool shared, bool limited) {
  const nanos now = world_.now();
  began_[++last_] = now;
  if (limited) limited_.insert(last_);
  waits_[world::self()] = {last_, &of, name, shared, now};
  look();
}

void ring_book::waits_no_longer() {
  waits_.erase(world::self());
  look();
}

void ring_book::has(const process& of, const std::string& name, bool shared, std::stop_token lost) {
  holds_.emplace(name, hold{world::self(), &of, shared, std::move(lost)});
}

void ring_book::lets_go(const std::string& name) {
  const auto [first, last] = holds_.equal_range(name);
  const auto mine =
      std::find_if(first, last, [](const auto& h) { return h.second.by == world::self(); });
  if (mine != last) holds_.erase(mine);
  look();
}

void ring_book::told(bool calm) {
  look();
  const wait& mine = waits_.at(world::self());
  if (mine.ring.empty()) {
    return judge_.violated("a thread that gets a deadlock error was in a deadlock",
                           "P" + std::to_string(mine.of->number) + " at " + mine.name);
  }
  // Otherwise it may have been told of an earlier ring, long before its call returned; or a thread
  // is in several rings, each of which has a thread to end it.
  if (is_the_only_one(mine.ring) && !told_.insert(mine.ring).second && calm) {
    return judge_.violated("one thread of a deadlock gets the error", describe(mine.ring));
  }
  if (!calm || !exclusive_) return;
  const bool is_limited = limited_.contains(mine.number);
  for (const int other : mine.ring) {
    const bool other_is = limited_.contains(other);
    if (other_is < is_limited) continue;
    if (other_is == is_limited && began_.at(other) - surely_older <= mine.began) continue;
    return judge_.violated(
        "the thread of a deadlock that began to wait last gets the error, and one with a limit "
        "before the others",
        describe(mine.ring));
  }
}

void ring_book::died(const process& of) {
  std::erase_if(waits_, [&](const auto& w) { return w.second.of == &of; });
  std::erase_if(holds_, [&](const auto& h) { return h.second.of == &of; });
  look();
}

bool ring_book::is_in_the_way(const hold& h, const fiber* who, const wait& w) {
  return h.by != who && !(w.shared && h.shared) && !h.lost.stop_requested();
}

/// Whether each of its waits is for one thread only.
bool ring_book::is_the_only_one(const std::set<int>& ring) const {
  return std::all_of(waits_.begin(), waits_.end(), [&](const auto& one) {
    const auto& [who, w] = one;
    if (!ring.contains(w.number)) return true;
    const auto [first, last] = holds_.equal_range(w.name);
    return 1 == std::count_if(first, last,
                              [&](const auto& h) { return is_in_the_way(h.second, who, w); });
  });
}

bool ring_book::leads_to(const fiber* from, const fiber* to, std::set<const fiber*>& seen,
                         std::set<int>& ring) const {
  const auto waiting = waits_.find(from);
  if (waiting == waits_.end() || !seen.insert(from).second) return false;
  const auto& w = waiting->second;
  const auto [first, last] = holds_.equal_range(w.name);
  for (auto at = first; at != last; ++at) {
    const hold& h = at->second;
    if (!is_in_the_way(h, from, w)) continue;
    if (h.by != to && !leads_to(h.by, to, seen, ring)) continue;
    ring.insert(w.number);
    return true;
  }
  return false;
}

std::set<int> ring_book::ring_of(const fiber* who) const {
  std::set<int> ring;
  std::set<const fiber*> seen;
  (void)leads_to(who, who, seen, ring);
  return ring;
}

void ring_book::look() {
  for (auto& [who, w] : waits_) {
    auto ring = ring_of(who);
    if (ring.empty()) {
      w.ring_since = never;
    } else if (w.ring_since == never || ring != w.ring) {
      w.ring = std::move(ring);
      w.ring_since = world_.now();
    }
  }
}

void ring_book::look(nanos calm_since, nanos bound) {
  look();
  for (const auto& [who, w] : waits_) {
    if (w.ring_since == never) continue;
    longest_ = std::max(longest_, world_.now() - w.ring_since);
    if (world_.now() - std::max(w.ring_since, calm_since) <= bound) continue;
    return judge_.violated("a deadlock is found", describe(w.ring));
  }
}

std::string ring_book::describe(const std::set<int>& ring) const {
  std::string text;
  for (const auto& [who, w] : waits_) {
    if (!ring.contains(w.number)) continue;
    text += (text.empty() ? "" : ", ") + std::string("P") + std::to_string(w.of->number) + "." +
            who->name + " waits for " + w.name + " since " + std::to_string(w.began / millisecond) +
            " ms";
  }
  return text;
}

}  // namespace simulation
