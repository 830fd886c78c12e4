#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace holdfast::tool {

/// One process: its number alone may be given to another one when it has ended.
struct process_id {
  pid_t pid = 0;
  std::uint64_t started = 0;  ///< in the kernel's ticks since the boot

  bool operator==(const process_id&) const = default;
};

/// Every living process below `root`, as /proc shows it now; zombies are not alive. As we are a
/// subreaper, nothing that the child started leaves this tree before it ends. Left out is what is
/// in `except`, and below it.
std::vector<process_id> descendants_of(pid_t root, const std::vector<process_id>& except = {});

/// Of a living process.
process_id identified(pid_t pid);

/// The parent of a living process, its parent, and so on; empty if it is not alive.
std::vector<pid_t> ancestors_of(pid_t pid);

}  // namespace holdfast::tool
