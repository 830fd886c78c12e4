#include "tool/wait_graph.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "tool/died.hpp"
#include "tool/duration.hpp"
#include "tool/process_tree.hpp"
#include "tool/progress.hpp"
#include "tool/text.hpp"
#include "tool/wait_rings.hpp"

namespace holdfast::tool {

namespace {

/// Pairs of a waiter and a holder; beyond them each waiter is shown with one holder.
constexpr std::size_t shown_of_a_name = 1000;

class graph_maker {
 public:
  void add(const name_info& info) {
    for (const participant& h : info.holders) by_process_.emplace(key_of(h), h);
    if (info.holders.empty() || info.waiters.empty()) return;
    const std::size_t first = index_of(info.waiters.front());
    held_name held{info.name, info.capacity};
    for (const participant& h : info.holders) held.holders.push_back({index_of(h), h.weight});
    std::stable_sort(held.holders.begin(), held.holders.end(),
                     [](const auto& a, const auto& b) { return a.weight > b.weight; });
    for (const participant& w : info.waiters) {
      const std::size_t from = &w == info.waiters.data() ? first : index_of(w);
      waits_.push_back({from, names_.size(), w.weight, w.since});
    }
    names_.push_back(std::move(held));
  }

  void add_children(const pids_above& above) {
    std::set<std::size_t> waiters;
    for (const wait_at_name& w : waits_) waiters.insert(w.process);
    for (const std::size_t w : waiters) {
      for (const std::uint32_t pid : above(g_.processes[w])) {
        const auto holder = by_process_.find({g_.processes[w].host, pid, {}});
        if (holder == by_process_.end() || holder->second.program != "holdfast") continue;
        waits_.push_back({index_of(holder->second), names_.size()});
        names_.push_back({{}, 0, {{w}}});
      }
    }
  }

  wait_graph made() && {
    const auto rings = find_rings(g_.processes.size(), names_, waits_);
    std::vector<bool> seen(g_.processes.size());
    std::set<ring_step> in_rings;
    for (const wait_ring& ring : rings) {
      in_rings.insert(ring.begin(), ring.end());
      note(ring, seen);
    }
    std::vector<std::size_t> shown(names_.size());
    for (std::size_t i = 0; i < waits_.size(); ++i) show(i, in_rings, shown[waits_[i].name]);
    return std::move(g_);
  }

 private:
  using process_key = std::tuple<std::string, std::uint32_t, std::string>;

  static process_key key_of(const participant& p) {
    return {p.host, p.pid, p.pid != 0 ? std::string{} : p.short_id};
  }

  std::size_t index_of(const participant& p) {
    const auto [at, fresh] = indexes_.emplace(key_of(p), g_.processes.size());
    if (fresh) g_.processes.push_back({p.host, p.pid, p.program, p.pid != 0 ? "" : p.short_id});
    return at->second;
  }

  /// Adds a ring without a member of the rings before.
  void note(const wait_ring& ring, std::vector<bool>& seen) {
    std::vector<std::size_t> members;
    for (const ring_step& step : ring) members.push_back(waits_[step.wait].process);
    const bool known = std::any_of(members.begin(), members.end(), [&](auto p) { return seen[p]; });
    for (const std::size_t p : members) seen[p] = true;
    if (!known) g_.rings.push_back(std::move(members));
  }

  /// With as many holders as there is room for, at least one; and with those that are in a ring.
  void show(std::size_t wait, const std::set<ring_step>& in_rings, std::size_t& shown) {
    const wait_at_name& w = waits_[wait];
    const held_name& at = names_[w.name];
    const std::size_t must = at.in_the_way_of(w.weight);
    std::set<std::size_t> ring;
    for (auto step = in_rings.lower_bound({wait, 0}); step != in_rings.end() && step->wait == wait;
         ++step)
      ring.insert(step->to);
    const std::size_t before = g_.waits.size();
    const auto show_one = [&](std::size_t i) {
      const std::size_t to = at.holders[i].process;
      const bool is_must = i < must;
      g_.waits.push_back({w.process, to, at.name, w.since, is_must, is_must && ring.contains(to)});
    };
    const std::size_t room = shown < shown_of_a_name ? shown_of_a_name - shown : 1;
    const std::size_t first = std::min(room, at.holders.size());
    for (std::size_t i = 0; i < first; ++i) show_one(i);
    for (std::size_t i = first; i < must && !ring.empty(); ++i)
      if (ring.contains(at.holders[i].process)) show_one(i);
    shown += g_.waits.size() - before;
    g_.left_out += at.holders.size() - (g_.waits.size() - before);
  }

  wait_graph g_;
  std::map<process_key, std::size_t> indexes_;
  std::map<process_key, participant> by_process_;
  std::vector<held_name> names_;
  std::vector<wait_at_name> waits_;
};

std::string process_label(const graph_process& p) {
  if (p.pid == 0) return p.id.empty() ? "another program" : "owner " + printable(p.id);
  std::string label = printable(p.host) + ':' + std::to_string(p.pid);
  if (!p.program.empty()) label += " (" + printable(p.program) + ')';
  return label;
}

std::string wait_label(const graph_wait& w) {
  return w.name.empty() ? "the end of its command" : printable(w.name);
}

std::string left_out_label(const wait_graph& g) {
  return std::to_string(g.left_out) + " more waits are not shown; shown are the first " +
         std::to_string(shown_of_a_name) + " of each name, and then one for each waiter";
}

/// A DOT text between double quotes: a backslash and a quote must not have a meaning there.
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
  graph_maker maker;
  for (const name_info& info : names) maker.add(without_the_dead(info));
  maker.add_children(above);
  return std::move(maker).made();
}

std::vector<std::uint32_t> pids_above_here(const graph_process& p) {
  if (p.pid == 0 || p.host != who_we_are().host) return {};
  std::vector<std::uint32_t> pids;
  for (const pid_t pid : ancestors_of(static_cast<pid_t>(p.pid)))
    pids.push_back(static_cast<std::uint32_t>(pid));
  return pids;
}

std::string graph_text(const wait_graph& g, std::chrono::system_clock::time_point now,
                       std::string_view pattern) {
  if (g.waits.empty())
    return "no process waits for another" +
           (pattern == "*" ? "" : ", for a name that matches " + printable(pattern)) + '\n';
  std::string out;
  for (const graph_wait& w : g.waits) out += wait_line(g, w, now);
  if (g.left_out > 0) out += "  … " + left_out_label(g) + '\n';
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
  if (g.left_out > 0)
    out += "  left_out [shape=plaintext, label=" + dot_quoted(left_out_label(g)) + "];\n";
  return out + "}\n";
}

}  // namespace holdfast::tool
