#include "tool/waiting.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <holdfast/async.hpp>
#include <utility>

#include "tool/exit_code.hpp"
#include "tool/progress.hpp"

namespace holdfast::tool {

namespace {

constexpr int first_look_ms = 300;  // a lock that is acquired at once leaves no trace on the screen
constexpr int redraw_ms = 1000;
constexpr const char* no_answer = "waiting: the store does not answer";

}  // namespace

waiting::waiting(const signal_inbox& signals, log& to, std::string name,
                 std::function<void(int)> before_leaving)
    : signals_(signals),
      log_(to),
      name_(std::move(name)),
      before_leaving_(std::move(before_leaving)),
      thread_([this] { serve(); }) {}

waiting::~waiting() {
  over_.ring();
  thread_.join();
  log_.clear_progress();
}

void waiting::in_line_at(session s) {
  const std::lock_guard guard{mutex_};
  session_ = std::move(s);
}

std::optional<session> waiting::current() const {
  const std::lock_guard guard{mutex_};
  return session_;
}

// This thread reads the signals, so it waits for neither the store nor the terminal.
void waiting::serve() {
  int pause = log_.draws_progress() ? first_look_ms : -1;
  for (;;) {
    std::array<pollfd, 3> wait{
        {{over_.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}, {view_->come.fd(), POLLIN, 0}}};
    const int n = ::poll(wait.data(), wait.size(), pause);
    if (wait[0].revents != 0) return;
    while (const auto s = signals_.next()) on_signal(static_cast<int>(s->ssi_signo));
    if (wait[2].revents != 0) draw();
    if (n != 0) continue;
    pause = redraw_ms;
    look();
  }
}

void waiting::on_signal(int signal) {
  if (!asks_to_stop(signal)) return;
  if (!current() || stopped_by_ != 0) {
    log_.clear_progress();
    if (before_leaving_) before_leaving_(signal);
    ::_exit(exit_code::of_signal(signal));
  }
  stopped_by_ = signal;
  stop_.request_stop();
}

void waiting::look() {
  const auto s = current();
  if (!s) return;
  if (std::exchange(looks_, true)) return log_.progress(no_answer);
  async_show(*s, name_).start([to = view_](result<name_info> found) {
    const std::lock_guard guard{to->mutex};
    to->found = std::move(found);
    to->come.ring();
  });
}

void waiting::draw() {
  looks_ = false;
  view_->come.silence();
  const std::lock_guard guard{view_->mutex};
  const auto& found = view_->found;
  log_.progress(*found ? waiting_line(**found, who_we_are(), std::chrono::system_clock::now())
                       : no_answer);
}

}  // namespace holdfast::tool
