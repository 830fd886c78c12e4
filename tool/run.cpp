#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <future>
#include <holdfast/async.hpp>
#include <memory>
#include <stop_token>
#include <system_error>
#include <utility>

#include "tool/acquire.hpp"
#include "tool/child.hpp"
#include "tool/commands.hpp"
#include "tool/dead_man.hpp"
#include "tool/duration.hpp"
#include "tool/failure.hpp"
#include "tool/json.hpp"
#include "tool/leader_page.hpp"
#include "tool/loss_story.hpp"
#include "tool/open_store.hpp"
#include "tool/output_file.hpp"
#include "tool/sd_notify.hpp"
#include "tool/supervisor.hpp"
#include "tool/text.hpp"
#include "tool/waiting.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds longest_wait_for_the_story{1};
/// How long to wait for the store to take back a suspect lease.
constexpr std::chrono::seconds a_moment{2};
/// Between two campaigns while the store is away.
constexpr std::chrono::seconds shortest_rest{1};
constexpr std::chrono::seconds longest_rest{10};

/// A terminal stops a command that reads from it in a group of its own, and `fg` continues only our
/// group. stdin may be anything: a command may open /dev/tty.
bool is_job_of_a_terminal() {
  if (::isatty(STDIN_FILENO) == 1) return true;
  const unique_fd terminal{::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)};
  return terminal && ::tcgetpgrp(terminal.get()) == ::getpgrp();
}

/// One `holdfast run`, from the first check to the exit code.
class job {
 public:
  /// `rest`: a pause before it begins.
  job(const common_options& common, const run_options& o, log& to, const signal_inbox& signals,
      nanoseconds rest)
      : common_(common),
        o_(o),
        log_(to),
        signals_(signals),
        name_(printable(o.take.lock.name)),
        rest_(rest) {
    report_.lock = o.take.lock.name;
    report_.began = std::chrono::system_clock::now();
  }

  int go();
  bool lost() const noexcept { return report_.outcome == "lost"; }
  bool store_was_away() const noexcept { return store_was_away_; }
  bool was_asked_to_stop() const noexcept { return asked_to_stop_; }
  /// The lock was lost: no request to the store is needed any more, and the store may be away.
  bool nothing_to_give_back() const noexcept { return nothing_to_give_back_ || unclosed_; }

 private:
  int work();
  /// The signal that ended the pause; 0 if none did.
  int rest();
  int with_lock();
  int after_child(const ending& e);

  void refuse_impossible_times() const;
  bool take();
  bool claim(const std::stop_token& stop, boot_time limit);
  [[noreturn]] void not_confirmed() const;
  void say_acquired();
  std::string fence_phrase() const;
  void open_page(const session& s);
  int stopped(int signal);
  int not_started(int exec_error);
  void write_fence() const;
  int code_of(const ending& e);
  void say_lost();
  std::string why_lost(const ending& e) const;
  /// True if the child ended before the minimum hold time was over.
  bool wait_out_min_hold();
  bool give_back();
  void give_back_in_a_moment();
  void say_given_back();
  child_plan plan(bool own_group) const;
  void fail(int code, const char* message);
  run_report as_stopped(run_report report, int signal) const;
  void write_status(run_report report) const;

  const common_options& common_;
  const run_options& o_;
  log& log_;
  const signal_inbox& signals_;
  const std::string name_;
  const nanoseconds rest_;
  run_report report_;
  notifier systemd_;
  std::optional<tool::dead_man> dead_man_;
  std::optional<leader_page> page_;
  store_for_child for_child_;
  const std::shared_ptr<loss_story> story_ = std::make_shared<loss_story>();
  lease held_;
  boot_time acquired_at_{};
  bool nothing_to_give_back_ = false;
  std::optional<session> unclosed_;  ///< of a store that hangs, where nothing is held
  bool asked_to_stop_ = false;
  bool store_was_away_ = false;
};

int job::go() {
  try {
    report_.exit_code = work();
  } catch (const failure_exit& e) {
    fail(e.code(), e.what());
  } catch (const error& e) {
    store_was_away_ = e.retryable();
    fail(exit_code::of(e.reason()), e.what());
  } catch (const std::exception& e) {
    fail(exit_code::own_failure, e.what());
  }
  write_status(report_);
  return report_.exit_code;
}

int job::work() {
  refuse_impossible_times();
  dead_man_.emplace();  // before there is a session, or a connection to inherit
  if (const int signal = rest(); signal != 0) return stopped(signal);
  systemd_.status("waiting for " + name_);
  if (!take()) return report_.exit_code;
  if (held_.fence() != 0) report_.fence = held_.fence();
  report_.owner = held_.short_id();
  say_acquired();
  return with_lock();
}

int job::rest() {
  if (rest_ <= nanoseconds::zero()) return 0;
  log_.write(level::warning, "campaigns_again",
             name_ + ": campaigns again in " + format_duration(rest_));
  const alarm_clock over;
  over.set(boot_clock::now() + rest_);
  std::array<pollfd, 2> wait{{{signals_.fd(), POLLIN, 0}, {over.fd(), POLLIN, 0}}};
  while (wait[1].revents == 0) {
    ::poll(wait.data(), wait.size(), -1);
    while (const auto s = signals_.next())
      if (asks_to_stop(static_cast<int>(s->ssi_signo))) return static_cast<int>(s->ssi_signo);
  }
  return 0;
}

void job::say_acquired() {
  fields facts{{"lock", report_.lock},
               {"owner", report_.owner},
               {"waited_seconds", seconds_of(report_.waited)}};
  if (report_.fence) facts.push_back({"fence", std::to_string(*report_.fence)});
  log_.write(level::detail, "acquired",
             name_ + ": acquired after " + format_duration(report_.waited) + fence_phrase(), facts);
  if (report_.fence) return;
  log_.write(level::warning, "no_fence",
             name_ +
                 ": the store has no fences, so HOLDFAST_FENCE is not set: what the "
                 "command writes to cannot refuse a holder whose lock was lost");
}

std::string job::fence_phrase() const {
  return report_.fence ? ", fence " + std::to_string(*report_.fence) : std::string{};
}

void job::refuse_impossible_times() const {
  const std::string why = impossible_times(o_, systemd_.watchdog());
  if (!why.empty()) throw failure_exit(exit_code::config, why);
}

/// False if the lock was not acquired; the report has the reason.
bool job::take() {
  const boot_time began = boot_clock::now();
  const detail::time_frame frame{began, o_.take.wait};
  const boot_time deadline = frame.deadline();
  busy_news busy;
  int stopped_by = 0;
  {
    // A copy of the present report: later the original belongs to this thread.
    waiting room{signals_, log_, o_.take.lock.name,
                 [this, early = report_](int signal) { write_status(as_stopped(early, signal)); }};
    const opened_store s = open_store(common_, log_, deadline, story_);
    report_.store = s.url;
    for_child_ = pass_on(common_);
    open_page(s.session);
    room.in_line_at(s.session);
    do {
      auto got = acquire(s, o_.take, deadline, room.stop());
      held_ = got ? std::move(*got) : lease{};
    } while (held_ && !claim(room.stop(), frame.limit()));
    acquired_at_ = boot_clock::now();
    stopped_by = room.stopped_by();
    if (!held_ && stopped_by == 0) {
      busy = tell_busy(s.session, o_.take, log_, frame.limit());
      if (busy.hangs) unclosed_ = s.session;
    }
  }
  report_.waited = acquired_at_ - began;
  if (stopped_by != 0) {
    report_.exit_code = stopped(stopped_by);
    return false;
  }
  if (held_) return true;
  report_.outcome = "busy";
  report_.message = busy.text;
  report_.exit_code = o_.take.busy_code;
  log_.write(level::detail, "busy", report_.message);
  return false;
}

/// A lock that a notification handed over has a shorter certain lease than the command would need
/// to end, until it has been renewed. False if the lock is not held: the renewal came too late.
/// Waits for the store until the limit; throws errc::unavailable then.
bool job::claim(const std::stop_token& stop, boot_time limit) {
  if (held_.remaining() >= o_.take.ttl - o_.take.ttl / 3) return true;
  struct outcome {
    std::atomic<bool> renewed{false};
    bell told;
  };
  const auto how = std::make_shared<outcome>();
  async_extend(held_).start([how](const result<done>& r) {
    how->renewed = static_cast<bool>(r);
    how->told.ring();
  });
  const std::stop_callback on_stop{stop, [&] { how->told.ring(); }};
  const alarm_clock over;
  over.set(limit);
  std::array<pollfd, 2> wait{{{how->told.fd(), POLLIN, 0}, {over.fd(), POLLIN, 0}}};
  while (::poll(wait.data(), wait.size(), -1) < 0) {
  }
  if (how->renewed || stop.stop_requested()) return true;
  const auto given_back = async_release(std::move(held_)).future();
  if (limit == forever) {
    given_back.wait();
  } else {
    given_back.wait_for(limit - boot_clock::now());
  }
  if (boot_clock::now() >= limit) not_confirmed();
  return false;
}

void job::not_confirmed() const {
  log_.write(
      level::warning, "not_confirmed",
      name_ + ": the lock was handed over, but the store did not confirm it before the deadline");
  throw error({errc::unavailable,
               "the store had not answered at the deadline: is it stopped, or the network cut?",
               true, "lock", o_.take.lock.name, report_.store});
}

void job::open_page(const session& s) {
  if (o_.http.empty()) return;
  page_.emplace(o_.http, s, o_.take.lock.name);
  log_.write(level::detail, "http",
             name_ + ": the leader is shown on port " + std::to_string(page_->port()),
             {{"port", static_cast<std::int64_t>(page_->port())}});
}

int job::stopped(int signal) {
  (void)held_.release();  // the observer reports a failure
  report_ = as_stopped(report_, signal);
  log_.write(level::detail, "stopped", report_.message);
  return report_.exit_code;
}

run_report job::as_stopped(run_report report, int signal) const {
  report.outcome = "stopped";
  report.message = name_ + ": stopped by " + std::string(signal_name(signal)) +
                   " before the command was started";
  report.exit_code = exit_code::of_signal(signal);
  return report;
}

int job::with_lock() {
  write_fence();
  systemd_.ready("holding " + name_ + fence_phrase());
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // A signal that arrived at the moment of the acquisition ends the run as well.
  while (const auto s = signals_.next())
    if (asks_to_stop(static_cast<int>(s->ssi_signo)))
      return stopped(static_cast<int>(s->ssi_signo));
  const bool own_group = !is_job_of_a_terminal();
  supervisor watcher{{held_, signals_, *dead_man_, log_, systemd_, o_}};
  watcher.arm();
  const started_child child = start_child(plan(own_group), signals_, *dead_man_);
  if (child.exec_error != 0) return not_started(child.exec_error);
  log_.write(level::detail, "started", name_ + ": started " + printable(o_.command.front()),
             {{"pid", static_cast<std::int64_t>(child.pid)}});
  return after_child(watcher.watch(child.pid, own_group));
}

int job::after_child(const ending& e) {
  report_.held = boot_clock::now() - acquired_at_;
  report_.lost = e.lost;
  report_.killed = e.killed;
  asked_to_stop_ = e.asked_to_stop;
  const int code = code_of(e);
  if (e.left_behind > 0)
    log_.write(level::detail, "left_behind",
               name_ + ": " + std::to_string(e.left_behind) +
                   (e.left_behind == 1 ? " process of the command continues, without the lock"
                                       : " processes of the command continue, without the lock"),
               {{"processes", static_cast<std::int64_t>(e.left_behind)}});
  if (e.lost) say_lost();
  const bool waited = !e.lost && wait_out_min_hold();
  systemd_.stopping();
  const lease_state now = held_.state();
  nothing_to_give_back_ = e.lost && now != lease_state::held;
  // Others would have to wait until that lease ends.
  if (nothing_to_give_back_ && now == lease_state::suspect) give_back_in_a_moment();
  if (nothing_to_give_back_) return code;
  // If the release finds the lock gone, it was gone while the child ran: nothing happened in
  // between.
  if (give_back() || waited || e.lost) return code;
  report_.lost = true;
  ending late = e;
  late.lost = true;
  const int code_of_loss = code_of(late);
  say_lost();
  return code_of_loss;
}

void job::say_lost() {
  const std::string what_to_do =
      "the command may be half done, or may have overlapped with the next holder. Check its work";
  log_.write(level::error, "ran_unprotected",
             report_.message + "; " +
                 (o_.again ? what_to_do
                           : "exit code " + std::to_string(o_.lost_code) + ": " + what_to_do +
                                 ", then run it again"),
             {{"lock", report_.lock}});
}

int job::code_of(const ending& e) {
  if (WIFSIGNALED(e.wait_status)) report_.child_signal = WTERMSIG(e.wait_status);
  if (WIFEXITED(e.wait_status)) report_.child_exit_code = WEXITSTATUS(e.wait_status);
  if (e.lost) {
    report_.outcome = "lost";
    report_.message = name_ + ": the lock was lost while the command ran: " + why_lost(e);
    return o_.lost_code;
  }
  if (e.why == escalation::cause::max_run) {
    report_.outcome = "max_run";
    return exit_code::max_run;
  }
  report_.outcome = report_.child_signal ? "signalled" : "exited";
  return exit_code::of_child(e.wait_status);
}

std::string job::why_lost(const ending& e) const {
  // By the clock the lease may have ended a moment before the library reports it.
  if (held_.state() == lease_state::lost) story_->wait_for_loss(longest_wait_for_the_story);
  return story_->why(e.paused);
}

bool job::wait_out_min_hold() {
  const boot_time until = saturated_add(acquired_at_, o_.min_hold);
  if (boot_clock::now() >= until) return false;
  log_.write(level::detail, "min_hold",
             name_ + ": kept for --min-hold " + format_duration(o_.min_hold));
  const bell lost;
  const std::stop_callback on_loss{held_.lost(), [&] { lost.ring(); }};
  const alarm_clock over;
  over.set(until);
  std::array<pollfd, 3> wait{
      {{signals_.fd(), POLLIN, 0}, {lost.fd(), POLLIN, 0}, {over.fd(), POLLIN, 0}}};
  while (wait[1].revents == 0 && wait[2].revents == 0) {
    ::poll(wait.data(), wait.size(), -1);
    while (const auto s = signals_.next())
      if (asks_to_stop(static_cast<int>(s->ssi_signo))) return true;
  }
  return true;
}

/// False if the lock was lost. The observer has reported that, or another failure.
bool job::give_back() {
  report_.held = boot_clock::now() - acquired_at_;
  const auto problem = held_.release();
  if (!problem) say_given_back();
  return problem != errc::lost;
}

/// The store may be away.
void job::give_back_in_a_moment() {
  log_.write(level::detail, "giving_back", name_ + ": tries to give the lock back, for a moment");
  const nanoseconds limit = std::min<nanoseconds>(held_.remaining(), a_moment);
  auto told = async_release(std::move(held_)).future();
  if (told.wait_for(limit) != std::future_status::ready) {
    log_.write(
        level::warning, "release_failed",
        name_ + ": could not give the lock back; its lease ends by itself: no answer so far");
  } else if (told.get()) {
    say_given_back();
  }
}

void job::say_given_back() {
  log_.write(level::detail, "released",
             name_ + ": released after " + format_duration(report_.held));
}

int job::not_started(int exec_error) {
  (void)held_.release();  // the observer reports a failure
  const int code = exit_code::of_exec(exec_error);
  report_.outcome = code == exit_code::not_found ? "not_found" : "not_executable";
  report_.message =
      "cannot run " + printable(o_.command.front()) + ": " + std::strerror(exec_error);
  const std::string& word = o_.command.front();
  const auto blank = word.find(' ');
  if (o_.command.size() == 1 && blank != word.npos && word.find('/') > blank)
    report_.message += "; for a shell command, write -c in place of --";
  log_.write(level::error, report_.outcome, report_.message);
  return code;
}

void job::write_fence() const {
  if (o_.fence_file.empty()) return;
  if (!report_.fence)
    throw failure_exit(exit_code::config, "--fence-file: the store has no fences");
  const std::string why = replace_file(o_.fence_file, std::to_string(*report_.fence) + '\n');
  if (!why.empty())
    throw failure_exit(exit_code::own_failure,
                       "cannot write --fence-file " + printable(o_.fence_file) + ": " + why);
}

child_plan job::plan(bool own_group) const {
  std::vector<std::string> ours{"HOLDFAST_LOCK=" + report_.lock, "HOLDFAST_OWNER=" + report_.owner,
                                "HOLDFAST_STORE=" + for_child_.url};
  if (report_.fence) {
    const std::string fence = std::to_string(*report_.fence);
    ours.push_back("HOLDFAST_FENCE=" + fence);
    ours.push_back("HOLDFAST_TOKEN=" + fence);  // its older name
  }
  return {o_.command, child_environment(ours), own_group};
}

void job::fail(int code, const char* message) {
  report_.exit_code = code;
  report_.message = unsigned_message(message);
  log_.write(level::error, "failed", o_.typed + ": " + report_.message,
             {{"exit_code", static_cast<std::int64_t>(code)}});
}

void job::write_status(run_report report) const {
  if (o_.status_file.empty()) return;
  report.ended = std::chrono::system_clock::now();
  const std::string why = replace_file(o_.status_file, status_json(report));
  if (!why.empty())
    log_.write(level::warning, "status_file",
               "cannot write --status-file " + printable(o_.status_file) + ": " + why);
}

}  // namespace

int run(const common_options& common, const run_options& o, log& to) {
  if (!o.status_file.empty()) remove_output(o.status_file);
  // Kept also between two campaigns: as process 1 of a container this program would not receive the
  // signals otherwise.
  signal_inbox signals;
  bool has_led = false;
  nanoseconds rest{};
  for (;;) {
    job j{common, o, to, signals, rest};
    const int code = j.go();
    bool asked_to_stop = j.was_asked_to_stop();
    while (const auto s = signals.next())
      asked_to_stop = asked_to_stop || asks_to_stop(static_cast<int>(s->ssi_signo));
    has_led = has_led || j.lost();
    // A first campaign that fails may have a wrong URL; a later failure is how the leadership was
    // lost.
    const bool store_left = has_led && j.store_was_away();
    if (o.again && (j.lost() || store_left) && !asked_to_stop) {
      rest = store_left ? std::clamp<nanoseconds>(rest * 2, shortest_rest, longest_rest)
                        : nanoseconds::zero();
      continue;
    }
    if (j.nothing_to_give_back()) leave_at_once(code);
    signals.close();
    return code;
  }
}

}  // namespace holdfast::tool
