#include <algorithm>
#include <chrono>
#include <future>
#include <holdfast/async.hpp>
#include <holdfast/barrier.hpp>
#include <holdfast/latch.hpp>
#include <optional>
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

constexpr std::chrono::seconds a_moment{1};

/// What came of it, as people and programs read it.
struct meeting_end {
  std::string_view outcome;
  bool good = true;
  std::optional<std::uint32_t> remaining{};
};

meeting_end at_barrier(const session& s, const meet_options& o, boot_time deadline,
                       std::stop_token stop) {
  barrier b{s, o.name, o.count, {.lease = o.ttl}};
  auto came = async_arrive_and_wait(b, time_left(deadline), std::move(stop)).future().get();
  const bool over =
      !came && (came.error().code == errc::timed_out || came.error().code == errc::cancelled);
  if (over) return {"timed_out", false};
  std::move(came).value();
  return {"arrived"};
}

/// Unknown if the store does not say so in a moment: the time is over, or a signal has come.
std::optional<std::uint32_t> remaining_at(const latch& l) {
  auto asked = async_remaining(l).future();
  if (asked.wait_for(a_moment) != std::future_status::ready) return std::nullopt;
  const auto answer = asked.get();
  return answer ? std::optional(*answer) : std::nullopt;
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
  const bool peeks = o.what == action::peek;
  const bool open = peeks ? l.try_wait() : l.wait_for(time_left(deadline), stop);
  if (open) return {"open", true, 0};
  if (stop.stop_requested()) return {"closed", false};
  return {"closed", false, peeks ? l.remaining() : remaining_at(l)};
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
  meeting_end e{"timed_out", false};
  std::string url;
  int stopped_by = 0;
  {
    waiting room{signals, to, o.name};
    const opened_store s = open_store(common, to, deadline);
    url = s.url;
    room.in_line_at(s.session);
    const auto go = o.what == action::arrive_and_wait ? at_barrier : at_latch;
    try {
      e = go(s.session, o, deadline, room.stop());
    } catch (const error&) {
      if (room.stopped_by() == 0) throw;
    }
    stopped_by = room.stopped_by(e.good);
  }
  if (stopped_by != 0) return exit_code::of_signal(stopped_by);
  signals.close();
  print(common.json ? meet_json(o.name, url, e.outcome, o.count, e.remaining) : for_people(o, e));
  return e.good ? exit_code::ok : o.busy_code;
}

}  // namespace holdfast::tool
