#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/fd.hpp"
#include "tool/json.hpp"
#include "tool/open_store.hpp"
#include "tool/screen.hpp"
#include "tool/signal_exit.hpp"
#include "tool/signals.hpp"
#include "tool/survey/board.hpp"
#include "tool/survey/pace.hpp"
#include "tool/survey/scanner.hpp"
#include "tool/tables.hpp"
#include "tool/text.hpp"
#include "tool/top_view.hpp"

namespace holdfast::tool {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::system_clock;

/// The shortest time between two drawings of news, and the longest time without one, for the ages.
constexpr milliseconds between_drawings{250};
constexpr milliseconds longest_still{1000};
/// The part of the time that goes into queries of the store.
constexpr double most_asked = 0.05;

/// ^Z from elsewhere, as something to poll: otherwise the shell would get a terminal in our mode.
class stop_inbox {
 public:
  stop_inbox() {
    sigset_t stop;
    ::sigemptyset(&stop);
    ::sigaddset(&stop, SIGTSTP);
    ::sigprocmask(SIG_BLOCK, &stop, nullptr);
    fd_ = unique_fd{::signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK)};
    if (!fd_) throw std::system_error(errno, std::generic_category(), "signalfd");
  }
  int fd() const noexcept { return fd_.get(); }
  bool came() const noexcept {
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof info) == sizeof info;
  }

 private:
  unique_fd fd_;
};

/// Only the holders that were shown to the person who said yes: not one that has come since.
std::string unlock(const session* s, const top_request& asked) try {
  if (s == nullptr) return "the store is away: nothing was changed";
  std::size_t removed = 0;
  for (const auto& owner : asked.owners) removed += s->force_release(asked.name, owner);
  const std::string name = printable(asked.name);
  if (removed == 0) return name + " has another holder by now, or is free: nothing was changed";
  return name + ": taken away from " + std::to_string(removed) +
         (removed == 1 ? " holder" : " holders");
} catch (const error& e) {
  return std::string(unsigned_message(e.what()));
}

/// The terminal, the scanner and the view together.
class live_table {
 public:
  live_table(const signal_inbox& signals, const stop_inbox& stops, const opened_store& s,
             const top_options& o, bool color)
      : signals_(signals),
        stops_(stops),
        board_(0, s.url),
        scanner_(
            board_, [opened = s.session] { return opened; }, [this] { news_.ring(); },
            {.share = most_asked,
             .first_share = 1,
             .pattern = o.which.pattern,
             .interval = o.interval}),
        view_(s.url, o.which, color) {}

  /// Returns the exit code, after the terminal was restored.
  int run() {
    while (!over_) {
      scanner_.viewed();
      if (std::exchange(news_came_, false)) update();
      if (!unlisted_.empty()) break;
      if (!screen_.draw(view_.lines(screen::size(), system_clock::now()))) break;
      await();
    }
    screen_.restore();
    if (!unlisted_.empty()) throw failure_exit(exit_code::config, unlisted_);
    return code_;
  }

 private:
  void update() {
    snapshot seen = board_.take(system_clock::now());
    unlisted_ = seen.health.note;
    view_.update(std::move(seen));
    const std::lock_guard guard{mutex_};
    if (!note_.empty()) view_.say(std::exchange(note_, {}));
  }

  /// Waits until there is something to draw.
  void await() {
    const boot_time drawn = boot_clock::now();
    while (!over_) {
      const nanoseconds passed = boot_clock::now() - drawn;
      const nanoseconds left = (news_came_ ? between_drawings : longest_still) - passed;
      if (left <= nanoseconds::zero()) return;
      std::array<pollfd, 4> wait{{{STDIN_FILENO, POLLIN, 0},
                                  {signals_.fd(), POLLIN, 0},
                                  {stops_.fd(), POLLIN, 0},
                                  {news_.fd(), POLLIN, 0}}};
      ::poll(wait.data(), wait.size(),
             static_cast<int>(std::chrono::ceil<milliseconds>(left).count()));
      if (wait[3].revents != 0) news_.silence();
      news_came_ = news_came_ || wait[3].revents != 0;
      if (wait[0].revents != 0) return read_keys();
      if (wait[1].revents != 0) return read_signals();
      if (wait[2].revents != 0 && stops_.came()) return screen_.suspend();
    }
  }

  void read_keys() {
    std::array<char, 4096> bytes{};
    const ssize_t n = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (n <= 0 && errno != EINTR && errno != EAGAIN) over_ = true;  // the terminal is gone
    if (n <= 0) return;
    for (const key& k : keys_of({bytes.data(), static_cast<std::size_t>(n)})) {
      carry_out(view_.on_key(k, screen::size()));
      if (over_) return;
    }
  }

  void carry_out(const top_request& r) {
    if (r.kind == top_request::what::quit) over_ = true;
    if (r.kind == top_request::what::suspend) screen_.suspend();
    if (r.kind == top_request::what::unlock)
      scanner_.perform(r.name, [this, r](const session* s) { note(unlock(s, r)); });
  }

  void note(std::string came) {
    const std::lock_guard guard{mutex_};
    note_ = std::move(came);
    news_.ring();
  }

  void read_signals() {
    while (const auto s = signals_.next()) {
      const int signal = static_cast<int>(s->ssi_signo);
      if (signal == SIGCONT) screen_.take();
      if (!asks_to_stop(signal)) continue;
      over_ = true;
      code_ = exit_code::of_signal(signal);
    }
  }

  const signal_inbox& signals_;
  const stop_inbox& stops_;
  const bell news_;
  std::mutex mutex_;
  std::string note_;  ///< the result of the last request, until it is shown
  board board_;
  scanner scanner_;
  top_view view_;
  screen screen_;
  std::string unlisted_;  ///< why the store lists no names: there is nothing to show
  bool news_came_ = true;
  bool over_ = false;
  int code_ = exit_code::ok;
};

/// The table as text, or as JSON, once or again and again.
int print_tables(const common_options& common, const top_options& o, const opened_store& s) {
  pace bounded{most_asked, boot_clock::now()};
  for (;;) {
    const boot_time began = boot_clock::now();
    const auto names = look_up(s.session, o.which);
    const auto now = system_clock::now();
    print(common.json ? list_json(names, s.url, now) : top_text(names, o.which, now));
    if (o.once) return reading_code(names);
    bounded.spent(began, boot_clock::now());
    std::this_thread::sleep_until(std::max(began + o.interval, bounded.rested_at()));
  }
}

}  // namespace

int top(const common_options& common, const top_options& o, log& to) {
  const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  const bool lines = o.once || common.json;
  if (!lines && !terminal)
    throw failure_exit(exit_code::usage,
                       "there is no terminal to draw on; --once prints the table once, --json "
                       "prints it as one line a round");
  const signal_inbox signals;
  if (lines) {
    const exit_on_signal leaving{signals, std::nullopt};
    return print_tables(common, o, open_existing(common, to));
  }
  const stop_inbox stops;
  const opened_store s = open_existing(common, to);
  live_table table{signals, stops, s, o, use_color(common.color, STDOUT_FILENO)};
  // Without closing the session: on a store that is away, that would wait for the last answer.
  leave_at_once(table.run());
}

}  // namespace holdfast::tool
