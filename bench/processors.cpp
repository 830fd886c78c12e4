#include "bench/processors.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace bench {
namespace {

// A thread may have ended since it was found.
void move(pid_t thread, const cpu_set_t& to) {
  if (sched_setaffinity(thread, sizeof to, &to) == 0 || errno == ESRCH) return;
  throw std::system_error{errno, std::generic_category(), "sched_setaffinity"};
}

// Also its child processes: PostgreSQL has one for each connection, and some for itself.
void move_all_threads(pid_t process, const cpu_set_t& to) {
  std::error_code ended;
  const auto threads = "/proc/" + std::to_string(process) + "/task";
  for (const auto& each : std::filesystem::directory_iterator{threads, ended}) {
    move(std::stoi(each.path().filename().string()), to);
    std::ifstream children{each.path() / "children"};
    for (pid_t child = 0; children >> child;) move_all_threads(child, to);
  }
}

cpu_set_t allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return set;
  throw std::system_error{errno, std::generic_category(), "sched_getaffinity"};
}

/// The processor of the set that comes after `skip` others.
cpu_set_t only(const cpu_set_t& of, int skip) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &of) || skip-- > 0) continue;
    CPU_SET(i, &set);
    return set;
  }
  throw std::runtime_error{"it has too few processors"};
}

}  // namespace

int processors_allowed() {
  const auto set = allowed();
  return CPU_COUNT(&set);
}

own_processors::own_processors(std::span<const pid_t> servers)
    : servers_(servers.begin(), servers.end()), all_(allowed()) {
  const auto ours = only(all_, 0), theirs = only(all_, 1);
  for (const auto server : servers_) move_all_threads(server, theirs);
  move(0, ours);
}

own_processors::~own_processors() {
  try {
    move(0, all_);
    // Also the threads that the server has started meanwhile.
    for (const auto server : servers_) move_all_threads(server, all_);
  } catch (const std::exception& e) {
    std::cerr << "what follows is measured on some of the processors only: " << e.what() << '\n';
  }
}

}  // namespace bench
