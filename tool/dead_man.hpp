#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <holdfast/clock.hpp>
#include <vector>

#include "tool/fd.hpp"
#include "tool/process_tree.hpp"

namespace holdfast::tool {

/// A dead man's handle: the watchdog of docs/cli.md. PR_SET_PDEATHSIG kills the child when we die,
/// but only the child itself: processes that a shell had started would continue, beside the next
/// holder. And it does not act when we are stopped instead of dead. So a small process of ours
/// waits beside us. When we are gone, or a lease ends on which we should have acted, it kills the
/// child's whole group.
///
/// It shares only a page and a pipe with us, and takes no signal but KILL. At a terminal the child
/// has no group of its own. The dead man then finds the child's processes as long as we are alive
/// as their ancestor. So it covers our being stopped, and after our death only the child itself.
class dead_man {
 public:
  /// Forks: call it while there is no session, and no thread but one that writes messages. Throws
  /// std::system_error. The commands did not start the processes that are below this process now:
  /// they are left alone.
  dead_man();
  dead_man(const dead_man&) = delete;
  dead_man& operator=(const dead_man&) = delete;
  /// Kills nothing; the process ends.
  ~dead_man();

  /// `target` as for kill(2): a process, or a negated group. May be called in a forked child: one
  /// store.
  void watch(pid_t target) noexcept;
  /// The dead man kills at this time, unless a later time is set before.
  void kill_at(boot_time at) noexcept;
  /// Call it when nothing of the target must be killed any more, and before the child is reaped:
  /// after that its number, and that of its group, may belong to another process.
  void stand_down() noexcept;

  /// Whether it had to kill in our place.
  bool has_struck() const noexcept { return shared_->struck; }

  /// Every living process that our commands have started.
  std::vector<process_id> started_by_us() const;

 private:
  struct page {
    std::atomic<pid_t> target{0};
    std::atomic<bool> struck{false};
    std::atomic<std::int64_t> kill_at{forever.time_since_epoch().count()};
  };
  [[noreturn]] static void serve(page& shared, int pipe, pid_t tool,
                                 std::vector<process_id> others) noexcept;
  static void strike(page& shared, pid_t tool, const std::vector<process_id>& others) noexcept;

  page* shared_;
  pipe_ends pipe_;
  pid_t pid_;
  /// The processes that existed before us, as in `sidecar & exec holdfast run …`; and the dead man.
  std::vector<process_id> others_;
};

}  // namespace holdfast::tool
