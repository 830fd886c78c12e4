#include <algorithm>
#include <holdfast/timed.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "tool/commands.hpp"
#include "tool/died.hpp"
#include "tool/duration.hpp"
#include "tool/json.hpp"
#include "tool/lock_events.hpp"
#include "tool/open_store.hpp"
#include "tool/signal_exit.hpp"
#include "tool/survey/pace.hpp"
#include "tool/text.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::nanoseconds;
using std::chrono::system_clock;

/// The part of the time that goes into queries of the store.
constexpr double most_asked = 0.05;
/// A query that the end of -w cuts off earlier does not show that the store is away.
constexpr std::chrono::seconds enough_for_an_answer{1};

/// A hand-over is a release and a grant in one.
bool is_what_until_names(lock_event_kind kind, const std::string& until) {
  const bool both = kind == lock_event_kind::handover;
  return until == to_string(kind) || (both && (until == "granted" || until == "released"));
}

/// Polls one lock again and again, and prints the changes.
class watcher {
 public:
  watcher(const common_options& common, const watch_options& o, boot_time deadline, log& to)
      : common_(common), o_(o), deadline_(deadline), log_(to), opened_(open_to_read(common, to)) {
    to.write(level::detail, "watching",
             printable(o.name) + ": asks " + opened_.url + " every " + format_duration(o.interval) +
                 "; a change that is undone in between is not seen");
  }

  /// True if the event that --until names has happened.
  bool look() {
    const boot_time began = boot_clock::now();
    std::optional<name_info> info = ask(began);
    pace_.spent(began, boot_clock::now());
    again_ = std::max(began + o_.interval, pace_.rested_at());
    if (!info) return false;
    const auto now = system_clock::now();
    const auto events =
        last_ ? events_between(*last_, *info, began - looked_at_, leases_) : events_at_start(*info);
    bool came = false;
    for (const lock_event& e : events) {
      print(common_.json ? watch_json(o_.name, opened_.url, e, now) : event_text(e, now));
      came = came || is_what_until_names(e.kind, o_.until);
    }
    last_ = std::move(*info);
    leases_.note(last_->holders);
    looked_at_ = began;
    const bool is_held = !without_the_dead(*last_).holders.empty();
    return came || (o_.until == "free" && !is_held) || (o_.until == "held" && is_held);
  }

  boot_time next_look() const noexcept { return again_; }

 private:
  /// A store that is away is reported once, and again when it is back.
  std::optional<name_info> ask(boot_time began) {
    try {
      auto info = look_at(opened_.session, "watch", o_.name);
      if (std::exchange(away_, false))
        log_.write(level::warning, "store_back", "the store answers again");
      return info;
    } catch (const error& e) {
      if (!e.retryable()) throw;
      const bool cut_off = boot_clock::now() >= deadline_;
      if (cut_off && deadline_ - began < enough_for_an_answer) return std::nullopt;
      if (!std::exchange(away_, true))
        log_.write(level::warning, "store_away", std::string(unsigned_message(e.what())));
      return std::nullopt;
    }
  }

  const common_options& common_;
  const watch_options& o_;
  const boot_time deadline_;
  log& log_;
  const opened_store opened_;
  std::optional<name_info> last_{};
  leases_seen leases_;
  boot_time looked_at_ = boot_clock::now();
  pace pace_{most_asked, looked_at_};
  boot_time again_{};
  bool away_ = false;
};

}  // namespace

int watch(const common_options& common, const watch_options& o, log& to) {
  const signal_inbox signals;
  // Without --until a signal is the normal end; with it, the awaited event did not come.
  const auto stopped = o.until.empty() ? std::optional<int>{exit_code::ok} : std::nullopt;
  const exit_on_signal leaving{signals, stopped};
  const detail::time_frame frame{boot_clock::now(), o.wait};
  const detail::call_limit in_time{frame.limit()};
  watcher w{common, o, frame.deadline(), to};
  for (;;) {
    if (w.look()) return exit_code::ok;
    // Without closing the session: on a store that hangs, that would wait for its last answer.
    if (boot_clock::now() >= frame.deadline())
      leave_at_once(o.until.empty() ? exit_code::ok : o.busy_code);
    std::this_thread::sleep_until(std::min(w.next_look(), frame.deadline()));
  }
}

}  // namespace holdfast::tool
