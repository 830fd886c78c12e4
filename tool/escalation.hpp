#pragma once

#include <chrono>
#include <holdfast/clock.hpp>
#include <string>

#include "tool/options.hpp"

namespace holdfast::tool {

/// When a child gets TERM and when it is killed. Pure: the time is an argument.
///
///     last renewal            TERM                    KILL      the lease ends
///          │  renewals fail …   │◀──── kill_after ────▶│◀─slack─▶│
///
///     runs ──max_run is over──────────────▶ gets TERM ───kill_after──▶ killed
///     runs ──lease ends in kill_after──────▶ gets TERM ───lease ends──▶ killed
///     runs ──another one holds the lock────▶ gets TERM ───kill_after──▶ killed
class escalation {
 public:
  enum class step { none, terminate, kill };
  enum class cause { none, lost, max_run };

  struct terms {
    tool::on_lost on_lost = tool::on_lost::term;
    std::chrono::nanoseconds kill_after{};
    std::chrono::nanoseconds slack{};  ///< before the end of the lease, for KILL to take effect
    boot_time max_run_at = forever;
  };

  /// The known state of the lease.
  struct lease_view {
    boot_time ends = forever;
    bool lost = false;
  };

  explicit escalation(const terms& t) noexcept : terms_(t) {}

  /// The step due at `now`; each step is returned once.
  step due(boot_time now, const lease_view& lease) noexcept;
  /// When to ask again, if the lease is not renewed until then.
  boot_time next(const lease_view& lease) const noexcept;
  /// When the dead man should kill the child because we did not: between our own KILL and the end.
  boot_time backstop(const lease_view& lease) const noexcept;

  cause why() const noexcept { return why_; }
  bool told_to_go() const noexcept { return told_at_ != forever; }
  bool killed() const noexcept { return killed_; }

 private:
  boot_time kill_time(const lease_view& lease) const noexcept;
  boot_time loss_time(const lease_view& lease) const noexcept;
  step tell(boot_time now, cause why) noexcept;

  terms terms_;
  cause why_ = cause::none;
  boot_time told_at_ = forever;
  bool killed_ = false;
};

/// How long before the end of the lease KILL is sent.
std::chrono::nanoseconds slack_for(std::chrono::nanoseconds lease) noexcept;

/// The default of --kill-after.
std::chrono::nanoseconds default_kill_after(std::chrono::nanoseconds lease) noexcept;

/// How long the lease is after a renewal: where the store's session ends sooner, what was left of
/// it. Call it when the lease has just been renewed.
std::chrono::nanoseconds certain_length(std::chrono::nanoseconds ttl,
                                        std::chrono::nanoseconds remaining) noexcept;

/// From TERM to KILL. If a lost lock leads to TERM, at most a third of the lease: two thirds are
/// for renewals.
std::chrono::nanoseconds grace_of(const run_options& o, std::chrono::nanoseconds lease) noexcept;

/// Empty if these times can be kept, otherwise the problem, with the nearest possible times.
/// `watchdog` is systemd's time-out for a keep-alive; zero if there is none.
std::string impossible_times(const run_options& o, std::chrono::nanoseconds watchdog);

}  // namespace holdfast::tool
