#include "tool/supervisor.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <stop_token>
#include <utility>

#include "tool/duration.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

using namespace std::chrono_literals;

namespace {

/// A busy machine is late by less.
constexpr std::chrono::nanoseconds shortest_pause = 500ms;

escalation::terms terms_of(const run_options& o, std::chrono::nanoseconds lease) {
  return {o.on_lost, grace_of(o, lease), slack_for(lease),
          saturated_add(boot_clock::now(), o.max_run)};
}

}  // namespace

supervisor::supervisor(const parts& p)
    : p_(p),
      name_(printable(p.options.take.lock.name)),
      length_(certain_length(p.options.take.ttl, p.held.remaining())),
      kill_after_(grace_of(p.options, length_)),
      escalation_(terms_of(p.options, length_)),
      lease_{boot_clock::now(), false} {}

ending supervisor::watch(pid_t child, bool own_group) {
  child_ = child;
  own_group_ = own_group;
  const std::stop_callback on_loss{p_.held.lost(), [this] { lost_bell_.ring(); }};
  for (;;) {
    reap();
    look();
    if (finished()) break;
    act();
    sleep();
    pass_on_signals();
  }
  let_go();
  if (p_.log.shows_details() && !escalation_.told_to_go())
    ending_.left_behind = p_.dead_man.started_by_us().size();
  ending_.why = escalation_.why();
  ending_.killed = is_being_killed();
  ending_.lost = lease_.lost || p_.dead_man.has_struck() || ending_.why == escalation::cause::lost;
  return ending_;
}

/// Reads the present lease; a later end than before means that it was renewed.
void supervisor::look() noexcept {
  const boot_time ends = boot_clock::now() + p_.held.remaining();
  const bool renewed = ends > lease_.ends + length_ / 10;
  lease_.lost = p_.held.state() == lease_state::lost;
  if (renewed && !lease_.lost) p_.systemd.alive();
  lease_.ends = ends;
  p_.dead_man.kill_at(escalation_.backstop(lease_));
}

void supervisor::act() {
  if (lease_.lost) notice_loss();
  switch (escalation_.due(boot_clock::now(), lease_)) {
    case escalation::step::none:
      return;
    case escalation::step::terminate:
      return terminate(escalation_.why());
    case escalation::step::kill:
      return kill();
  }
}

/// The child itself is not reaped here. As long as nobody has reaped it, its number and that of its
/// group are not reused, and the dead man may kill the rest of the group.
void supervisor::reap() noexcept {
  siginfo_t ended{};
  // As a subreaper we get more than our own children; a container's first process gets all.
  while (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid > 0) {
    child_ended_ = ended.si_pid == child_;
    if (child_ended_) return;
    ::waitpid(ended.si_pid, nullptr, WNOHANG);
    ended = {};
  }
}

/// From now on its numbers may belong to other processes: they must not be used to kill any more.
void supervisor::let_go() noexcept {
  p_.dead_man.stand_down();
  ::waitpid(child_, &ending_.wait_status, 0);
}

bool supervisor::finished() {
  if (!child_ended_) return false;
  if (!escalation_.told_to_go() && !is_being_killed()) return true;
  if (p_.dead_man.started_by_us().empty()) return true;
  // A process that cannot be killed (another user's, say) must not delay us for ever.
  return is_being_killed() && !sweep();
}

bool supervisor::is_being_killed() const noexcept {
  return escalation_.killed() || p_.dead_man.has_struck();
}

void supervisor::sleep() noexcept {
  const boot_time now = boot_clock::now();
  // No event reports renewals: poll often enough to inform systemd and the dead man.
  boot_time until = std::min(escalation_.next(lease_), now + length_ / 6);
  // The killed processes may be children of others, whose end is not reported to us.
  if (is_being_killed() && child_ended_) until = now + 50ms;
  alarm_.set(until);
  std::array<pollfd, 3> wait{
      {{p_.signals.fd(), POLLIN, 0}, {lost_bell_.fd(), POLLIN, 0}, {alarm_.fd(), POLLIN, 0}}};
  ::poll(wait.data(), wait.size(), -1);
  lost_bell_.silence();
  const auto late = boot_clock::now() - until;
  if (late >= shortest_pause) ending_.paused = std::max(ending_.paused, late);
}

void supervisor::pass_on_signals() {
  while (const auto s = p_.signals.next()) {
    const int signal = static_cast<int>(s->ssi_signo);
    if (signal == SIGCHLD) continue;
    const bool hangs_up = signal == SIGHUP;  // or reloads, which ends nothing
    ending_.asked_to_stop |= asks_to_stop(signal) && !hangs_up;
    // A signal typed at the terminal has reached everyone in its foreground group; a hang-up
    // reaches only the leader of its session.
    if (!own_group_ && s->ssi_code == SI_KERNEL && !hangs_up) continue;
    p_.log.write(level::detail, "forwarded",
                 name_ + ": passed " + std::string(signal_name(signal)) + " on",
                 {{"signal", std::string(signal_name(signal))}});
    asks_to_stop(signal) && !hangs_up ? deliver_also_to_stopped(signal) : deliver(signal);
  }
}

void supervisor::notice_loss() {
  if (std::exchange(loss_noticed_, true) || p_.options.on_lost != on_lost::warn) return;
  p_.log.write(level::error, "unprotected",
               name_ + ": the command goes on without the lock (--on-lost=warn)");
}

void supervisor::terminate(escalation::cause why) {
  const auto left = std::max(lease_.ends - boot_clock::now(), 0ns);
  const std::string reason = why == escalation::cause::max_run
                                 ? "it has run for as long as --max-run allows"
                             : lease_.lost ? "the lock is lost"
                                           : "the lease ends in " + format_duration(left);
  const bool reached = deliver_also_to_stopped(SIGTERM);
  say(level::warning, "terminated",
      "TERM to the command, KILL follows in " + format_duration(kill_after_) +
          " at the latest: " + reason,
      reached, left);
}

void supervisor::kill() {
  // A process that has ended accepts every signal without effect.
  const bool reached = deliver(SIGKILL) && !child_ended_;
  const auto left = p_.held.remaining();
  say(level::error, "killed", "KILL to the command", sweep() || reached, left);
}

void supervisor::say(level l, std::string_view event, const std::string& what, bool reached,
                     std::chrono::nanoseconds left) {
  p_.log.write(l, event, name_ + (reached ? ": sent " : ": was not permitted to send ") + what,
               {{"pid", static_cast<std::int64_t>(child_)},
                {"reached", reached},
                {"lease_remaining_seconds", seconds_of(left)}});
}

/// False if there was no process to which we may send it.
bool supervisor::deliver(int signal) {
  if (own_group_) return ::kill(-child_, signal) == 0;
  // Its group is ours too, and our caller's.
  bool reached = false;
  for (const auto& p : p_.dead_man.started_by_us()) reached |= ::kill(p.pid, signal) == 0;
  return reached;
}

/// A stopped process would not see the signal.
bool supervisor::deliver_also_to_stopped(int signal) {
  const bool reached = deliver(signal);
  deliver(SIGCONT);
  return reached;
}

/// Kills also the processes that left the group. False if there is none to kill.
bool supervisor::sweep() {
  bool reached = false;
  for (const auto& p : p_.dead_man.started_by_us()) reached |= ::kill(p.pid, SIGKILL) == 0;
  return reached;
}

}  // namespace holdfast::tool
