#include "tool/process_tree.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

namespace holdfast::tool {

namespace {

struct process {
  process_id id;
  pid_t parent = 0;
};

/// Fields of /proc/PID/stat after the state.
constexpr int from_state_to_start = 19;

std::optional<pid_t> as_pid(const std::string& text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return pid;
}

/// Parses "pid (name) state parent …"; a name may contain blanks and brackets.
std::optional<process> read_process(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const auto name_end = line.rfind(") ");
  if (name_end == std::string::npos || line.size() < name_end + 5) return std::nullopt;
  if (line[name_end + 2] == 'Z' || line[name_end + 2] == 'X') return std::nullopt;
  process p{{pid, 0}, 0};
  std::istringstream fields(line.substr(name_end + 4));
  fields >> p.parent;
  std::string skipped;
  for (int i = 2; i < from_state_to_start; ++i) fields >> skipped;
  fields >> p.id.started;
  return p;
}

std::vector<process> all_processes() {
  std::vector<process> all;
  std::error_code error;
  std::filesystem::directory_iterator at("/proc", error);
  for (; !error && at != std::filesystem::directory_iterator{}; at.increment(error)) {
    const auto pid = as_pid(at->path().filename());
    if (const auto p = pid ? read_process(*pid) : std::nullopt) all.push_back(*p);
  }
  return all;
}

}  // namespace

std::vector<process_id> descendants_of(pid_t root, const std::vector<process_id>& except) {
  const auto all = all_processes();
  std::vector<process_id> family{{root, 0}};
  for (std::size_t i = 0; i < family.size(); ++i) {
    for (const process& p : all) {
      const bool left_out = std::find(except.begin(), except.end(), p.id) != except.end();
      if (p.parent == family[i].pid && !left_out) family.push_back(p.id);
    }
  }
  family.erase(family.begin());
  return family;
}

process_id identified(pid_t pid) {
  const auto p = read_process(pid);
  return p ? p->id : process_id{pid, 0};
}

std::vector<pid_t> ancestors_of(pid_t pid) {
  std::vector<pid_t> line;
  for (auto p = read_process(pid); p && p->parent > 0; p = read_process(p->parent))
    line.push_back(p->parent);
  return line;
}

}  // namespace holdfast::tool
