#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <holdfast/session.hpp>
#include <span>
#include <string>
#include <vector>

/// Which process waits for which: what `holdfast graph` shows.
namespace holdfast::tool {

/// A process, or a participant whose process the store does not know.
struct graph_process {
  std::string host;
  std::uint32_t pid = 0;
  std::string program;
  std::string id;  ///< of a participant without host and pid; otherwise empty
};

struct graph_wait {
  std::size_t from = 0;  ///< index of the process that waits
  std::size_t to = 0;    ///< index of the process it waits for
  std::string name;      ///< the lock; empty: `from` waits until `to`, its child, has ended
  std::chrono::system_clock::time_point since{};
  /// The wait cannot end before that hold does. False for one of several holders of permits.
  bool must = true;
  bool in_ring = false;
};

struct wait_graph {
  std::vector<graph_process> processes;
  std::vector<graph_wait> waits;
  /// Processes that wait in a ring, each in the order of the waits. At most one ring for each group
  /// of processes that all wait for one another.
  std::vector<std::vector<std::size_t>> rings;
  /// Pairs of a waiter and a holder that are not in `waits`. None of them is in a ring.
  std::size_t left_out = 0;
};

/// The processes above one, the nearest first, where they are known.
using pids_above = std::function<std::vector<std::uint32_t>(const graph_process&)>;

/// Makes the graph from a store's names. Its size grows as waiters + holders: where many wait for
/// many, most pairs are left out. `holdfast run` waits for the command that it has started: if a
/// process below such a holder waits, the holder waits, too.
wait_graph make_wait_graph(std::span<const name_info> names, const pids_above& above);

/// From /proc, for processes on this host.
std::vector<std::uint32_t> pids_above_here(const graph_process& p);

/// `pattern`: which names were looked at.
std::string graph_text(const wait_graph& g, std::chrono::system_clock::time_point now,
                       std::string_view pattern = "*");
/// For Graphviz.
std::string graph_dot(const wait_graph& g);

}  // namespace holdfast::tool
