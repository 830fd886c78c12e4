#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tool/dead_man.hpp"
#include "tool/signals.hpp"

namespace holdfast::tool {

struct child_plan {
  std::vector<std::string> command;
  std::vector<std::string> environment;
  /// A process group of its own. Otherwise the child is in our group, so that it can read from the
  /// terminal.
  bool own_group = true;
};

struct started_child {
  pid_t pid = 0;
  int exec_error = 0;  ///< errno; if set, there is no child
};

/// Starts the command with our stdin, stdout and stderr; returns when it runs or could not be
/// started. It is killed when the calling *thread* ends (PR_SET_PDEATHSIG), so call this from the
/// main thread. It registers with the dead man before it becomes the command, so that it is watched
/// at any moment. Throws std::system_error if no process could be created.
started_child start_child(const child_plan& plan, const signal_inbox& signals, dead_man& watchman);

/// Our environment, with `ours` in place of the variables of a surrounding run, and without
/// systemd's: the child does not report to systemd.
std::vector<std::string> child_environment(const std::vector<std::string>& ours);

}  // namespace holdfast::tool
