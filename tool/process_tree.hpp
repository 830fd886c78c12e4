#pragma once

#include <sys/types.h>

#include <vector>

namespace holdfast::tool {

/// Every living process below `root`, as /proc shows it now; zombies are not alive. As we are a
/// subreaper, nothing that the child started leaves this tree before it ends.
std::vector<pid_t> descendants_of(pid_t root, pid_t except);

/// The parent of a living process, its parent, and so on; empty if it is not alive.
std::vector<pid_t> ancestors_of(pid_t pid);

}  // namespace holdfast::tool
