#include "tool/wait_rings.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace holdfast::tool {

namespace {

constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

/// The processes and the holds as one graph, and its groups whose members all reach one another. A
/// process has an edge to the last hold that is in its way; a hold has an edge to its process and
/// to the hold before it. So a waiter reaches all of them by one edge.
class grouping {
 public:
  grouping(std::size_t processes, std::span<const held_name> names,
           std::span<const wait_at_name> waits)
      : next_(processes) {
    std::vector<std::size_t> first_hold;
    for (const held_name& n : names) {
      first_hold.push_back(next_.size());
      for (const name_holder& h : n.holders) {
        next_.push_back({h.process});
        if (&h != n.holders.data()) next_.back().push_back(next_.size() - 2);
      }
    }
    for (const wait_at_name& w : waits) {
      const std::size_t in_the_way = names[w.name].in_the_way_of(w.weight);
      if (in_the_way > 0) next_[w.process].push_back(first_hold[w.name] + in_the_way - 1);
    }
    group_.assign(next_.size(), none);
    processes_in_.assign(next_.size(), 0);
    met_.assign(next_.size(), none);
    low_.assign(next_.size(), none);
    for (std::size_t i = 0; i < processes; ++i)
      if (met_[i] == none) visit(i);
    for (std::size_t i = 0; i < processes; ++i) ++processes_in_[group_[i]];
  }

  bool together(std::size_t a, std::size_t b) const { return group_[a] == group_[b]; }
  bool is_alone(std::size_t process) const { return processes_in_[group_[process]] == 1; }

 private:
  /// Tarjan's algorithm, with a stack of its own: chains are long.
  void visit(std::size_t start) {
    struct place {
      std::size_t node;
      std::size_t next;
    };
    std::vector<place> way;
    const auto enter = [&](std::size_t node) {
      met_[node] = low_[node] = count_++;
      open_.push_back(node);
      way.push_back({node, 0});
    };
    enter(start);
    while (!way.empty()) {
      const std::size_t node = way.back().node;
      if (way.back().next < next_[node].size()) {
        const std::size_t to = next_[node][way.back().next++];
        if (met_[to] == none)
          enter(to);
        else if (group_[to] == none)
          low_[node] = std::min(low_[node], met_[to]);
        continue;
      }
      way.pop_back();
      if (!way.empty()) low_[way.back().node] = std::min(low_[way.back().node], low_[node]);
      if (low_[node] == met_[node]) close(node);
    }
  }

  void close(std::size_t node) {
    std::size_t member = none;
    do {
      member = open_.back();
      open_.pop_back();
      group_[member] = node;
    } while (member != node);
  }

  std::vector<std::vector<std::size_t>> next_;
  std::vector<std::size_t> group_, processes_in_, met_, low_, open_;
  std::size_t count_ = 0;
};

/// Finds the shortest way from a process back to itself, within its group.
class way_back {
 public:
  way_back(std::size_t processes, std::span<const held_name> names,
           std::span<const wait_at_name> waits)
      : names_(names), waits_(waits), groups_(processes, names, waits), by_process_(processes) {
    for (std::size_t i = 0; i < waits.size(); ++i) by_process_[waits[i].process].push_back(i);
  }

  wait_ring of(std::size_t start) const {
    if (groups_.is_alone(start)) return {};
    std::map<std::size_t, step_here> came_by;  // process: how it was reached first
    std::map<std::size_t, std::size_t> seen;   // name: the number of holders seen
    std::vector<std::size_t> reached{start};
    for (std::size_t at = 0; at < reached.size(); ++at) {
      const std::size_t from = reached[at];
      for (const std::size_t wait : by_process_[from]) {
        const held_name& name = names_[waits_[wait].name];
        const std::size_t in_the_way = name.in_the_way_of(waits_[wait].weight);
        // The start's own waits do not count as seen: they omit the start itself.
        std::size_t own = 0;
        std::size_t& next = from == start ? own : seen[waits_[wait].name];
        for (; next < in_the_way; ++next) {
          const std::size_t to = name.holders[next].process;
          if (to == from || !groups_.together(to, start)) continue;
          if (to == start) return way(came_by, {wait, to});
          if (came_by.emplace(to, step_here{from, {wait, to}}).second) reached.push_back(to);
        }
      }
    }
    return {};
  }

 private:
  struct step_here {
    std::size_t from = 0;
    ring_step step{};
  };

  wait_ring way(const std::map<std::size_t, step_here>& came_by, ring_step last) const {
    wait_ring all{last};
    for (auto at = came_by.find(waits_[last.wait].process); at != came_by.end();
         at = came_by.find(at->second.from))
      all.push_back(at->second.step);
    std::reverse(all.begin(), all.end());
    return all;
  }

  const std::span<const held_name> names_;
  const std::span<const wait_at_name> waits_;
  const grouping groups_;
  std::vector<std::vector<std::size_t>> by_process_;
};

}  // namespace

std::size_t held_name::in_the_way_of(std::uint64_t weight) const {
  const auto end = std::partition_point(holders.begin(), holders.end(), [&](const name_holder& h) {
    return h.weight + weight > capacity;
  });
  return static_cast<std::size_t>(end - holders.begin());
}

std::vector<wait_ring> find_rings(std::size_t processes, std::span<const held_name> names,
                                  std::span<const wait_at_name> waits) {
  const way_back back{processes, names, waits};
  std::vector<wait_ring> all;
  std::vector<bool> seen(processes);
  for (std::size_t p = 0; p < processes; ++p) {
    if (seen[p]) continue;
    wait_ring ring = back.of(p);
    for (const ring_step& step : ring) seen[step.to] = true;
    if (!ring.empty()) all.push_back(std::move(ring));
  }
  return all;
}

}  // namespace holdfast::tool
