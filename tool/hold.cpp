#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <holdfast/timed.hpp>
#include <optional>
#include <utility>

#include "tool/acquire.hpp"
#include "tool/commands.hpp"
#include "tool/duration.hpp"
#include "tool/json.hpp"
#include "tool/open_store.hpp"
#include "tool/text.hpp"
#include "tool/waiting.hpp"

namespace holdfast::tool {

namespace {

/// A shell gives /dev/null to a command that it starts with `&`: its end means nothing.
bool stdin_can_end() {
  struct stat s{};
  if (::fstat(STDIN_FILENO, &s) != 0) return false;
  return !(S_ISCHR(s.st_mode) && s.st_rdev == ::makedev(1, 3));
}

/// A terminal stops background jobs that read from it: a stopped hold would lose the lock.
bool may_read_stdin() {
  const pid_t foreground = ::tcgetpgrp(STDIN_FILENO);
  return foreground < 0 || foreground == ::getpgrp();
}

/// The bytes have no meaning; only the end of stdin counts.
bool stdin_has_ended() {
  std::array<char, 4096> ignored{};
  const ssize_t n = ::read(STDIN_FILENO, ignored.data(), ignored.size());
  // A terminal returns EIO to a job that has just been put into the background.
  if (n < 0 && errno == EIO && ::isatty(STDIN_FILENO) == 1) return false;
  return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

/// No signal reports that a job is in the foreground again.
constexpr int foreground_check_ms = 1000;

enum class end { asked, lost };

end wait_for_end(const lease& held, const signal_inbox& signals) {
  const bell lost;
  const std::stop_callback on_loss{held.lost(), [&] { lost.ring(); }};
  const bool can_end = stdin_can_end();
  ::signal(SIGTTIN, SIG_IGN);  // it may be put into the background between the check and the read
  for (;;) {
    const bool reads = can_end && may_read_stdin();
    std::array<pollfd, 3> wait{{{signals.fd(), POLLIN, 0},
                                {lost.fd(), POLLIN, 0},
                                {reads ? STDIN_FILENO : -1, POLLIN, 0}}};
    ::poll(wait.data(), wait.size(), can_end && !reads ? foreground_check_ms : -1);
    if (wait[1].revents != 0) return end::lost;
    while (const auto s = signals.next())
      if (asks_to_stop(static_cast<int>(s->ssi_signo))) return end::asked;
    if (wait[2].revents != 0 && stdin_has_ended()) return end::asked;
  }
}

std::string for_people(const held_facts& f) {
  const std::string fence = f.fence == 0 ? "no fence" : "fence " + std::to_string(f.fence);
  return "holding " + printable(f.lock) + " (" + fence + ", owner " + f.owner +
         ") until ^C or the end of stdin\n";
}

void say_end(bool lost, const held_facts& facts, const common_options& common) {
  if (common.json)
    print(hold_end_json(lost ? "lost" : "released", facts, std::chrono::system_clock::now()));
}

// The observer reports a failure.
int give_back(lease& held, const held_facts& facts, const common_options& common) {
  const bool lost = held.release() == errc::lost;
  say_end(lost, facts, common);
  return lost ? exit_code::lost : exit_code::ok;
}

}  // namespace

int hold(const common_options& common, const hold_options& o, log& to) {
  signal_inbox signals;
  const boot_time began = boot_clock::now();
  const detail::time_frame frame{began, o.take.wait};
  lease held;
  held_facts facts{o.take.lock.name, {}, {}, 0, o.take.ttl, {}};
  busy_news busy;
  std::optional<session> unclosed;
  int stopped_by = 0;
  {
    waiting room{signals, to, o.take.lock.name};
    const opened_store s = open_store(common, to, frame.deadline());
    facts.store = s.url;
    room.in_line_at(s.session);
    if (auto got = acquire(s, o.take, frame.deadline(), room.stop())) held = std::move(*got);
    stopped_by = room.stopped_by();
    if (!held && stopped_by == 0) {
      busy = tell_busy(s.session, o.take, to, frame.limit());
      if (busy.hangs) unclosed = s.session;
    }
  }
  if (stopped_by != 0) return exit_code::of_signal(stopped_by);
  if (!held) {
    to.write(level::detail, "busy", busy.text);
    if (unclosed) leave_at_once(o.take.busy_code);
    return o.take.busy_code;
  }
  facts.waited = boot_clock::now() - began;
  facts.owner = held.short_id();
  facts.fence = held.fence();
  print(common.json ? hold_json(facts, std::chrono::system_clock::now()) : for_people(facts));
  if (wait_for_end(held, signals) == end::lost) {
    say_end(true, facts, common);
    leave_at_once(exit_code::lost);
  }
  const int code = give_back(held, facts, common);
  signals.close();
  return code;
}

}  // namespace holdfast::tool
