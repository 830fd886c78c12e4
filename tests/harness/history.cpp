#include "harness/history.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace harness {

namespace {

using history = std::vector<hold_event>;
using complaints = std::vector<std::string>;

std::string describe(const hold_event& e) {
  return "worker " + std::to_string(e.worker) + " [" + std::to_string(e.begin) + ", " +
         std::to_string(e.end) + "] weight " + std::to_string(e.weight) + " fence " +
         std::to_string(e.fence);
}

/// Visits the beginnings and ends of all holds in the order in which they happened.
template <class Begin, class End>
void sweep(const history& events, Begin on_begin, End on_end) {
  std::multimap<std::uint64_t, std::pair<bool, const hold_event*>> moments;
  for (const auto& e : events) {
    moments.emplace(e.begin, std::pair{true, &e});
    moments.emplace(e.end, std::pair{false, &e});
  }
  for (const auto& [tick, what] : moments)
    what.first ? on_begin(*what.second) : on_end(*what.second);
}

void check_shape(const history& events, complaints& out) {
  for (const auto& e : events) {
    if (e.begin >= e.end) out.push_back("a hold ends before it begins: " + describe(e));
  }
}

void check_overlaps(const history& events, std::uint32_t capacity, complaints& out) {
  std::set<const hold_event*> inside;
  std::uint64_t weight = 0;
  sweep(
      events,
      [&](const hold_event& e) {
        weight += e.weight;
        if (weight > capacity) {
          std::string text = "overlap: " + describe(e);
          for (const auto* other : inside) text += " with " + describe(*other);
          out.push_back(std::move(text));
        }
        inside.insert(&e);
      },
      [&](const hold_event& e) {
        weight -= e.weight;
        inside.erase(&e);
      });
}

void check_fences_are_unique(const history& events, const history_rules& rules, complaints& out) {
  const auto may_share = [&](const hold_event& a, const hold_event& b) {
    return rules.readers_share && a.weight < rules.capacity && b.weight < rules.capacity;
  };
  std::map<std::uint64_t, const hold_event*> seen;
  for (const auto& e : events) {
    if (e.fence == 0) out.push_back("no fence: " + describe(e));
    const auto [at, fresh] = seen.emplace(e.fence, &e);
    if (!fresh && !may_share(*at->second, e))
      out.push_back("same fence: " + describe(*at->second) + " and " + describe(e));
  }
}

// Holds that may overlap may be granted in one order and begin in another.
void check_fences_grow(const history& events, std::uint32_t capacity, complaints& out) {
  std::map<std::uint32_t, std::uint64_t> greatest_ended;  // by weight
  sweep(
      events,
      [&](const hold_event& e) {
        for (const auto& [weight, fence] : greatest_ended) {
          if (std::uint64_t{weight} + e.weight > capacity && fence >= e.fence) {
            out.push_back("fence did not grow: " + describe(e) + " after one that ended with " +
                          std::to_string(fence));
          }
        }
      },
      [&](const hold_event& e) {
        auto& greatest = greatest_ended[e.weight];
        greatest = std::max(greatest, e.fence);
      });
}

void check_order(history events, complaints& out) {
  std::sort(events.begin(), events.end(),
            [](const auto& a, const auto& b) { return a.begin > b.begin; });
  std::uint64_t first_queued = std::numeric_limits<std::uint64_t>::max();
  for (const auto& e : events) {
    if (e.asked != 0 && first_queued < e.asked) {
      out.push_back("overtook one that was in the queue since " + std::to_string(first_queued) +
                    ": " + describe(e) + " asked at " + std::to_string(e.asked));
    }
    if (e.queued != 0) first_queued = std::min(first_queued, e.queued);
  }
}

}  // namespace

std::vector<std::string> violations(std::vector<hold_event> events, const history_rules& rules) {
  complaints out;
  check_shape(events, out);
  check_overlaps(events, rules.capacity, out);
  check_fences_are_unique(events, rules, out);
  check_fences_grow(events, rules.capacity, out);
  if (rules.fair) check_order(std::move(events), out);
  return out;
}

std::string summary(const std::vector<std::string>& violations) {
  constexpr std::size_t most = 10;
  std::string text = std::to_string(violations.size()) + " violations\n";
  for (std::size_t i = 0; i < std::min(most, violations.size()); ++i) text += violations[i] + "\n";
  return text;
}

}  // namespace harness
