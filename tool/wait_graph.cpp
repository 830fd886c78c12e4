#include "tool/wait_graph.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "tool/duration.hpp"
#include "tool/process_tree.hpp"
#include "tool/progress.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

class graph_maker {
 public:
  explicit graph_maker(wait_graph& g) : g_(g) {}

  void add(const name_info& info) {
    for (const participant& w : info.waiters) {
      for (const participant& h : info.holders) {
        // A wait for one permit of several may end by another holder's release.
        const bool must = std::uint64_t{h.weight} + w.weight > info.capacity;
        g_.waits.push_back({index_of(w), index_of(h), info.name, w.since, must});
      }
    }
    for (const participant& h : info.holders) holders_.insert(index_of(h));
  }

  void add_children(const pids_above& above) {
    std::set<std::size_t> waiters;
    for (const graph_wait& w : g_.waits) waiters.insert(w.from);
    for (const std::size_t w : waiters) {
      for (const std::uint32_t pid : above(g_.processes[w])) {
        const auto at = indexes_.find({g_.processes[w].host, pid, {}});
        if (at == indexes_.end() || !holders_.contains(at->second)) continue;
        if (g_.processes[at->second].program == "holdfast") g_.waits.push_back({at->second, w, {}});
      }
    }
  }

 private:
  using process_key = std::tuple<std::string, std::uint32_t, std::string>;

  std::size_t index_of(const participant& p) {
    const bool known = p.pid != 0;
    const process_key key{p.host, p.pid, known ? std::string{} : p.short_id};
    const auto [at, fresh] = indexes_.emplace(key, g_.processes.size());
    if (fresh) g_.processes.push_back({p.host, p.pid, p.program, known ? "" : p.short_id});
    return at->second;
  }

  wait_graph& g_;
  std::map<process_key, std::size_t> indexes_;
  std::set<std::size_t> holders_;
};

/// For each process the waits that begin there and must end by the other's going. A process that
/// waits for itself is two threads at one lock, which is no ring.
std::vector<std::vector<std::size_t>> waits_by_process(const wait_graph& g) {
  std::vector<std::vector<std::size_t>> all(g.processes.size());
  for (std::size_t i = 0; i < g.waits.size(); ++i) {
    const graph_wait& w = g.waits[i];
    if (w.must && w.from != w.to) all[w.from].push_back(i);
  }
  return all;
}

/// The shortest way from a process back to itself, as waits; empty if there is none.
std::vector<std::size_t> way_back(const wait_graph& g,
                                  const std::vector<std::vector<std::size_t>>& next,
                                  std::size_t start) {
  std::map<std::size_t, std::size_t> came_by;  // process: wait
  std::vector<std::size_t> reached{start};
  for (std::size_t at = 0; at < reached.size(); ++at) {
    for (const std::size_t wait : next[reached[at]]) {
      const std::size_t to = g.waits[wait].to;
      if (!came_by.emplace(to, wait).second) continue;
      if (to != start) {
        reached.push_back(to);
        continue;
      }
      std::vector<std::size_t> way{wait};
      while (g.waits[way.back()].from != start) way.push_back(came_by[g.waits[way.back()].from]);
      std::reverse(way.begin(), way.end());
      return way;
    }
  }
  return {};
}

void mark_rings(wait_graph& g) {
  const auto next = waits_by_process(g);
  std::vector<bool> seen(g.processes.size());
  for (std::size_t p = 0; p < g.processes.size(); ++p) {
    if (seen[p]) continue;
    const auto way = way_back(g, next, p);
    if (way.empty()) continue;
    std::vector<std::size_t> ring;
    bool known = false;
    for (const std::size_t wait : way) {
      g.waits[wait].in_ring = true;
      ring.push_back(g.waits[wait].from);
      known = known || seen[g.waits[wait].from];
    }
    for (const std::size_t member : ring) seen[member] = true;
    if (!known) g.rings.push_back(std::move(ring));
  }
}

std::string process_label(const graph_process& p) {
  if (p.pid == 0) return p.id.empty() ? "another program" : "owner " + printable(p.id);
  std::string label = printable(p.host) + ':' + std::to_string(p.pid);
  if (!p.program.empty()) label += " (" + printable(p.program) + ')';
  return label;
}

std::string wait_label(const graph_wait& w) {
  return w.name.empty() ? "the end of its command" : printable(w.name);
}

/// What is between double quotes in DOT: a backslash and a quote must not mean anything there.
std::string dot_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string wait_line(const wait_graph& g, const graph_wait& w,
                      std::chrono::system_clock::time_point now) {
  std::string line = w.in_ring ? "* " : "  ";
  line += process_label(g.processes[w.from]);
  line += w.must ? " waits for " : " may wait for ";
  line += process_label(g.processes[w.to]) + ": " + wait_label(w);
  if (is_known(w.since)) line += ", for " + format_duration(now - w.since);
  return line + '\n';
}

}  // namespace

wait_graph make_wait_graph(std::span<const name_info> names, const pids_above& above) {
  wait_graph g;
  graph_maker maker{g};
  for (const name_info& info : names) maker.add(info);
  maker.add_children(above);
  mark_rings(g);
  return g;
}

std::vector<std::uint32_t> pids_above_here(const graph_process& p) {
  if (p.pid == 0 || p.host != who_we_are().host) return {};
  std::vector<std::uint32_t> pids;
  for (const pid_t pid : ancestors_of(static_cast<pid_t>(p.pid)))
    pids.push_back(static_cast<std::uint32_t>(pid));
  return pids;
}

std::string graph_text(const wait_graph& g, std::chrono::system_clock::time_point now) {
  if (g.waits.empty()) return "no process waits for another\n";
  std::string out;
  for (const graph_wait& w : g.waits) out += wait_line(g, w, now);
  for (const auto& ring : g.rings) {
    out += "\nring: ";
    for (const std::size_t p : ring) out += process_label(g.processes[p]) + " -> ";
    out += process_label(g.processes[ring.front()]) + '\n';
  }
  if (!g.rings.empty())
    out +=
        "A ring of processes that have one thread each never ends. The store does not tell the\n"
        "threads of a process apart: if another thread holds the lock, the ring may end.\n";
  return out;
}

std::string graph_dot(const wait_graph& g) {
  std::string out = "digraph waits {\n  node [shape=box];\n";
  for (std::size_t i = 0; i < g.processes.size(); ++i)
    out +=
        "  p" + std::to_string(i) + " [label=" + dot_quoted(process_label(g.processes[i])) + "];\n";
  for (const graph_wait& w : g.waits) {
    out += "  p" + std::to_string(w.from) + " -> p" + std::to_string(w.to) +
           " [label=" + dot_quoted(wait_label(w));
    if (!w.must) out += ", style=dashed";
    if (w.in_ring) out += ", color=red, penwidth=2";
    out += "];\n";
  }
  return out + "}\n";
}

}  // namespace holdfast::tool
