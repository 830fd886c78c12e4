#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <holdfast/lease.hpp>
#include <string>

#include "tool/dead_man.hpp"
#include "tool/escalation.hpp"
#include "tool/fd.hpp"
#include "tool/log.hpp"
#include "tool/sd_notify.hpp"
#include "tool/signals.hpp"

namespace holdfast::tool {

/// How the child ended.
struct ending {
  int wait_status = 0;
  escalation::cause why = escalation::cause::none;
  bool lost = false;                  ///< the lock was lost while the child ran
  bool killed = false;                ///< we sent KILL
  bool asked_to_stop = false;         ///< a signal asked us to end
  std::chrono::nanoseconds paused{};  ///< the longest single pause of this process
  std::size_t left_behind = 0;  ///< processes that outlive the child; counted for details only
};

/// Watches one child while a lease lasts: passes signals on, and makes sure that nothing of the
/// child is left when the lease ends. One use. On the main thread.
class supervisor {
 public:
  struct parts {
    lease& held;
    const signal_inbox& signals;
    tool::dead_man& dead_man;
    tool::log& log;
    const notifier& systemd;
    const run_options& options;
  };
  explicit supervisor(const parts& p);

  /// Call it before the child is started: from now on the dead man knows when the lease ends.
  void arm() noexcept { look(); }

  /// Returns when the child has ended, and, if it was told to end, everything it started as well.
  ending watch(pid_t child, bool own_group);

 private:
  void look() noexcept;
  void act();
  void reap() noexcept;
  void let_go() noexcept;
  bool finished();
  bool is_being_killed() const noexcept;
  void sleep() noexcept;
  void pass_on_signals();

  void terminate(escalation::cause why);
  void kill();
  bool deliver(int signal);
  bool deliver_also_to_stopped(int signal);
  bool sweep();
  void notice_loss();
  void say(level l, std::string_view event, const std::string& what, bool reached,
           std::chrono::nanoseconds left);

  parts p_;
  std::string name_;
  const std::chrono::nanoseconds length_;  ///< of the lease, after a renewal
  std::chrono::nanoseconds kill_after_;
  escalation escalation_;
  escalation::lease_view lease_;
  bell lost_bell_;
  alarm_clock alarm_;
  ending ending_;
  pid_t child_ = 0;
  bool own_group_ = false;
  bool child_ended_ = false;
  bool loss_noticed_ = false;
};

}  // namespace holdfast::tool
