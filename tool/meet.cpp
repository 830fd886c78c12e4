#include <algorithm>
#include <holdfast/barrier.hpp>
#include <holdfast/latch.hpp>
#include <stop_token>

#include "tool/commands.hpp"
#include "tool/failure.hpp"
#include "tool/json.hpp"
#include "tool/open_store.hpp"
#include "tool/signals.hpp"
#include "tool/text.hpp"
#include "tool/waiting.hpp"

namespace holdfast::tool {

namespace {

using action = meet_options::action;

/// What came of it, as people and programs read it.
struct meeting_end {
  std::string_view outcome;
  bool good = true;
  std::optional<std::uint32_t> remaining{};
};

meeting_end at_barrier(const session& s, const meet_options& o, boot_time deadline,
                       std::stop_token stop) {
  barrier b{s, o.name, o.count, {.lease = o.ttl}};
  auto mine = b.arrive();
  if (b.wait_for(mine, time_left(deadline), std::move(stop))) return {"arrived"};
  return {"timed_out", false};
}

/// The library knows what the store counts, and not how a command is written.
void count_down(latch& l, const meet_options& o) {
  try {
    l.count_down(o.down);
  } catch (const error& e) {
    if (e.reason() != errc::invalid_argument) throw;
    throw failure_exit(exit_code::usage, printable(o.name) + ": cannot count down by " +
                                             std::to_string(o.down) + ": " +
                                             std::to_string(l.remaining()) + " of " +
                                             std::to_string(o.count) + " are left");
  }
}

meeting_end at_latch(const session& s, const meet_options& o, boot_time deadline,
                     std::stop_token stop) {
  latch l{s, o.name, o.count};
  if (o.what == action::remove) return l.remove(), meeting_end{"removed"};
  if (o.what == action::count_down) {
    count_down(l, o);
    return {"counted", true, l.remaining()};
  }
  const bool open =
      o.what == action::peek ? l.try_wait() : l.wait_for(time_left(deadline), std::move(stop));
  if (open) return {"open", true, 0};
  return {"closed", false, l.remaining()};
}

std::string for_people(const meet_options& o, const meeting_end& e) {
  std::string line = printable(o.name) + ": " + std::string(e.outcome);
  std::replace(line.end() - static_cast<std::ptrdiff_t>(e.outcome.size()), line.end(), '_', ' ');
  if (e.remaining) {
    line += ", " + std::to_string(*e.remaining) + " of " + std::to_string(o.count) + " left";
  }
  return line + '\n';
}

}  // namespace

int meet(const common_options& common, const meet_options& o, log& to) {
  signal_inbox signals;
  const boot_time deadline = saturated_add(boot_clock::now(), o.wait);
  meeting_end e{};
  std::string url;
  int stopped_by = 0;
  {
    waiting room{signals, to, o.name};
    const opened_store s = open_store(common, to, deadline);
    url = s.url;
    room.in_line_at(s.session);
    const auto go = o.what == action::arrive_and_wait ? at_barrier : at_latch;
    e = go(s.session, o, deadline, room.stop());
    stopped_by = room.stopped_by(e.good);
  }
  if (stopped_by != 0) return exit_code::of_signal(stopped_by);
  signals.close();
  print(common.json ? meet_json(o.name, url, e.outcome, o.count, e.remaining) : for_people(o, e));
  return e.good ? exit_code::ok : o.busy_code;
}

}  // namespace holdfast::tool
