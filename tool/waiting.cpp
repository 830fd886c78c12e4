#include "tool/waiting.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <exception>

#include "tool/exit_code.hpp"
#include "tool/progress.hpp"

namespace holdfast::tool {

namespace {

constexpr int first_look_ms = 300;  // a lock that comes at once leaves no trace on the screen
constexpr int redraw_ms = 1000;

}  // namespace

waiting::waiting(const signal_inbox& signals, log& to, std::string name)
    : signals_(signals), log_(to), name_(std::move(name)), thread_([this] { serve(); }) {}

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

void waiting::serve() {
  int pause = log_.draws_progress() ? first_look_ms : -1;
  for (;;) {
    std::array<pollfd, 2> wait{{{over_.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
    const int n = ::poll(wait.data(), wait.size(), pause);
    if (wait[0].revents != 0) return;
    while (const auto s = signals_.next()) on_signal(static_cast<int>(s->ssi_signo));
    if (n != 0) continue;
    pause = redraw_ms;
    draw();
  }
}

void waiting::on_signal(int signal) {
  if (!asks_to_stop(signal)) return;
  if (!current() || stopped_by_ != 0) {
    log_.clear_progress();
    ::_exit(exit_code::of_signal(signal));
  }
  stopped_by_ = signal;
  stop_.request_stop();
}

void waiting::draw() {
  const auto s = current();
  if (!s) return;
  try {
    log_.progress(waiting_line(s->show(name_), who_we_are(), std::chrono::system_clock::now()));
  } catch (const std::exception&) {
    log_.progress("waiting: the store does not answer");
  }
}

}  // namespace holdfast::tool
