#include "harness/threads_at_rest.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

namespace harness {

namespace {

/// How often each of the other threads has run. Nothing if one of them is not asleep.
using turns = std::map<std::string, std::string>;

std::optional<turns> while_all_sleep() {
  turns found;
  const std::string self = std::to_string(::gettid());
  std::error_code gone;  // a thread may end while it is read
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    const std::string id = task.path().filename();
    if (id == self) continue;
    std::string stat;
    std::getline(std::ifstream(task.path() / "stat"), stat);
    const auto name_ends = stat.rfind(") ");
    if (name_ends == stat.npos) continue;
    if (stat.at(name_ends + 2) != 'S') return std::nullopt;
    std::getline(std::ifstream(task.path() / "schedstat"), found[id]);
  }
  return found;
}

}  // namespace

bool until_threads_rest() {
  using clock = std::chrono::steady_clock;
  // Longer only while the whole process stood still, or had no processor: nobody ran then.
  constexpr std::chrono::nanoseconds longest_check = std::chrono::milliseconds(10);
  std::chrono::nanoseconds left = std::chrono::seconds(1);
  auto before = while_all_sleep();
  for (auto last = clock::now(); left > left.zero();) {
    auto after = while_all_sleep();
    if (before && before == after) return true;
    if (!after) ::poll(nullptr, 0, 1);
    before = std::move(after);
    const auto now = clock::now();
    left -= std::min<std::chrono::nanoseconds>(now - last, longest_check);
    last = now;
  }
  return false;
}

}  // namespace harness
