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
  /// A process group of its own. Without: our group, so that it can read from the terminal.
  bool own_group = true;
};

struct started_child {
  pid_t pid = 0;
  int exec_error = 0;  ///< errno; then there is no child
};

/// Starts the command with our stdin, stdout and stderr; returns when it runs or could not.
/// It is killed when the calling *thread* ends (PR_SET_PDEATHSIG): call it from the main thread.
/// It tells the dead man about itself before it becomes the command, so that there is no moment in
/// which nobody watches it. Throws std::system_error if there could be no new process.
started_child start_child(const child_plan& plan, const signal_inbox& signals, dead_man& watchman);

/// Our environment, with these variables of ours in place of those of a run around us, and without
/// systemd's: the child is not the one that reports.
std::vector<std::string> child_environment(const std::vector<std::string>& ours);

}  // namespace holdfast::tool
