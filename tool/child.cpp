#include "tool/child.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>

#include "tool/exit_code.hpp"
#include "tool/fd.hpp"

namespace holdfast::tool {

namespace {

constexpr std::array<std::string_view, 8> not_inherited{
    "HOLDFAST_LOCK=",  "HOLDFAST_FENCE=", "HOLDFAST_TOKEN=", "HOLDFAST_OWNER=",
    "HOLDFAST_STORE=", "NOTIFY_SOCKET=",  "WATCHDOG_USEC=",  "WATCHDOG_PID="};

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  // exec takes char* and changes nothing.
  for (const auto& t : texts) out.push_back(const_cast<char*>(t.c_str()));
  out.push_back(nullptr);
  return out;
}

struct surroundings {
  const signal_inbox& signals;
  dead_man& watchman;
  pid_t parent;
  int report;
};

/// After fork in a process with threads: only system calls, and nothing that takes a lock.
[[noreturn]] void become(char* const* argv, char* const* environment, bool own_group,
                         const surroundings& s) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != s.parent) ::_exit(exit_code::own_failure);  // the parent died before prctl
  if (own_group) ::setpgid(0, 0);
  s.watchman.watch(own_group ? -::getpid() : ::getpid());
  s.signals.restore();
  close_others_on_exec();
  ::execvpe(argv[0], argv, environment);
  const int error = errno;
  (void)!::write(s.report, &error, sizeof error);
  ::_exit(exit_code::not_found);
}

}  // namespace

started_child start_child(const child_plan& plan, const signal_inbox& signals, dead_man& watchman) {
  const auto argv = pointers_to(plan.command);
  const auto environment = pointers_to(plan.environment);
  pipe_ends report = make_pipe();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0)
    become(argv.data(), environment.data(), plan.own_group,
           {signals, watchman, parent, report.write.get()});
  // Both processes do it, so that nobody signals the group before it exists.
  if (plan.own_group) ::setpgid(pid, pid);
  report.write.reset();
  started_child child{pid, 0};
  ssize_t n = 0;
  do {
    n = ::read(report.read.get(), &child.exec_error, sizeof child.exec_error);
  } while (n < 0 && errno == EINTR);
  if (child.exec_error != 0) {
    watchman.stand_down();
    ::waitpid(pid, nullptr, 0);
  }
  return child;
}

std::vector<std::string> child_environment(const std::vector<std::string>& ours) {
  std::vector<std::string> out;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable = *at;
    const bool dropped =
        std::any_of(not_inherited.begin(), not_inherited.end(),
                    [&](std::string_view name) { return variable.starts_with(name); });
    if (!dropped) out.emplace_back(variable);
  }
  out.insert(out.end(), ours.begin(), ours.end());
  return out;
}

}  // namespace holdfast::tool
