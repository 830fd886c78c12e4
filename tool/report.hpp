#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::tool {

/// The outcome of a run, for --status-file. The exit code alone may also be the child's.
struct run_report {
  std::string lock;
  std::string store;
  /// exited, signalled, busy, stopped, lost, max_run, not_found, not_executable, failed
  std::string outcome = "failed";
  int exit_code = 0;
  std::string message;
  std::optional<int> child_exit_code;
  std::optional<int> child_signal;
  std::optional<std::uint64_t> fence;
  std::string owner;
  bool lost = false;
  bool killed = false;
  std::chrono::nanoseconds waited{};
  std::chrono::nanoseconds held{};
  std::chrono::system_clock::time_point began{};
  std::chrono::system_clock::time_point ended{};
};

}  // namespace holdfast::tool
