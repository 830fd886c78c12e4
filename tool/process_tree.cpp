#include "tool/process_tree.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

namespace holdfast::tool {

namespace {

struct process {
  pid_t pid = 0;
  pid_t parent = 0;
};

std::optional<pid_t> as_pid(const std::string& text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return pid;
}

/// "pid (name) state parent …"; a name may hold blanks and brackets.
std::optional<process> read_process(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const auto name_end = line.rfind(") ");
  if (name_end == std::string::npos || line.size() < name_end + 5) return std::nullopt;
  if (line[name_end + 2] == 'Z' || line[name_end + 2] == 'X') return std::nullopt;
  process p{pid, 0};
  std::from_chars(line.data() + name_end + 4, line.data() + line.size(), p.parent);
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

std::vector<pid_t> descendants_of(pid_t root, pid_t except) {
  const auto all = all_processes();
  std::vector<pid_t> family{root};
  for (std::size_t i = 0; i < family.size(); ++i) {
    for (const process& p : all)
      if (p.parent == family[i] && p.pid != except) family.push_back(p.pid);
  }
  family.erase(family.begin());
  return family;
}

std::vector<pid_t> ancestors_of(pid_t pid) {
  std::vector<pid_t> line;
  for (auto p = read_process(pid); p && p->parent > 0; p = read_process(p->parent))
    line.push_back(p->parent);
  return line;
}

}  // namespace holdfast::tool
