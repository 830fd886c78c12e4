#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace holdfast::tool {

/// One process; its number alone may be reused when it has ended.
struct process_id {
  pid_t pid = 0;
  std::uint64_t started = 0;  ///< in the kernel's ticks since the boot

  bool operator==(const process_id&) const = default;
};

/// Every living process below `root`, as /proc shows it now; zombies are not alive. We are a
/// subreaper, so no process that the child started leaves this tree before it ends. Excluded are
/// the processes in `except`, and those below them.
std::vector<process_id> descendants_of(pid_t root, const std::vector<process_id>& except = {});

/// The id of a living process.
process_id identified(pid_t pid);

/// The parent of a living process, its parent, and so on; empty if the process is not alive.
std::vector<pid_t> ancestors_of(pid_t pid);

}  // namespace holdfast::tool
