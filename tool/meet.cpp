#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <holdfast/async.hpp>
#include <holdfast/barrier.hpp>
#include <holdfast/latch.hpp>
#include <holdfast/timed.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

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

/// The outcome, for people and programs.
struct meeting_end {
  std::string_view outcome;
  bool good = true;
  std::optional<std::uint32_t> remaining{};
};

/// Waits until `limit`, but no longer than a moment. Nothing if no answer comes.
template <class T>
std::optional<T> answer_to(pending<T> question, boot_time limit) {
  const boot_time until = std::min(saturated_add(boot_clock::now(), a_moment), limit);
  auto asked = std::move(question).future();
  if (asked.wait_for(until - boot_clock::now()) != std::future_status::ready) return std::nullopt;
  auto answer = asked.get();
  return answer ? std::optional(std::move(*answer)) : std::nullopt;
}

/// How many have not arrived at the barrier. This one has.
std::optional<std::uint32_t> missing_at(const session& s, const meet_options& o, boot_time limit) {
  const auto found = answer_to(async_show(s, o.name), limit);
  if (!found || found->waiters.empty() || found->waiters.size() > o.count) return std::nullopt;
  return o.count - static_cast<std::uint32_t>(found->waiters.size());
}

meeting_end at_barrier(const session& s, const meet_options& o, const detail::time_frame& frame,
                       std::stop_token stop) {
  barrier b{s, o.name, o.count, {.lease = o.ttl}};
  auto came = async_arrive_and_wait(b, time_left(frame.deadline()), std::move(stop)).future().get();
  const errc why = came ? errc{} : came.error().code;
  if (why == errc::cancelled) return {"timed_out", false};
  if (why == errc::busy || why == errc::timed_out)
    return {"timed_out", false, missing_at(s, o, frame.limit())};
  std::move(came).value();
  return {"arrived"};
}

std::optional<std::uint32_t> remaining_at(const latch& l, boot_time limit) {
  return answer_to(async_remaining(l), limit);
}

/// Also unknown if the latch was removed since: the store then answers with the full count.
std::optional<std::uint32_t> left_after_counting(const latch& l, const meet_options& o) {
  const auto left = remaining_at(l, forever);
  return left == o.count ? std::nullopt : left;
}

/// Fails if the store does not report in time how many are left.
meeting_end peek(const latch& l, boot_time limit) {
  {
    const detail::call_limit in_time{limit};
    if (l.try_wait()) return {"open", true, 0};
  }
  const auto left = limit == forever ? std::optional(l.remaining()) : remaining_at(l, limit);
  if (!left)
    throw failure_exit(exit_code::unavailable,
                       printable(l.name()) + ": the store did not answer in time");
  return {*left == 0 ? "open" : "closed", *left == 0, left};
}

/// The library knows the stored count, but not how the command is written: the message adds that.
void count_down(latch& l, const meet_options& o) {
  try {
    l.count_down(o.down);
  } catch (const error& e) {
    if (e.reason() != errc::invalid_argument) throw;
    const auto now = remaining_at(l, forever);
    if (!now) throw;
    const std::string left = std::to_string(*now);
    throw failure_exit(exit_code::usage,
                       printable(o.name) + ": cannot count down by " + std::to_string(o.down) +
                           ": " + left + " of " + std::to_string(o.count) + " are left; " +
                           (left == "0" ? "--remove frees the name for a new latch"
                                        : "give --down " + left + " or less"));
  }
}

meeting_end at_latch(const session& s, const meet_options& o, const detail::time_frame& frame,
                     std::stop_token stop) {
  latch l{s, o.name, o.count};
  if (o.what == action::remove) return l.remove(), meeting_end{"removed"};
  if (o.what == action::count_down) {
    count_down(l, o);
    return {"counted", true, left_after_counting(l, o)};
  }
  if (o.what == action::peek) return peek(l, frame.limit());
  const bool open = l.wait_for(time_left(frame.deadline()), stop);
  if (open) return {"open", true, 0};
  if (stop.stop_requested()) return {"closed", false};
  return {"closed", false, remaining_at(l, frame.limit())};
}

std::string for_people(const meet_options& o, const meeting_end& e) {
  std::string line = printable(o.name) + ": " + std::string(e.outcome);
  std::replace(line.end() - static_cast<std::ptrdiff_t>(e.outcome.size()), line.end(), '_', ' ');
  const bool arrives = o.what == action::arrive_and_wait;
  if (e.remaining) {
    line += ", " + std::to_string(arrives ? o.count - *e.remaining : *e.remaining) + " of " +
            std::to_string(o.count) + (arrives ? " had arrived" : " left");
  }
  return line + '\n';
}

/// A latch's queue entry ends by itself, and a peek has none.
bool has_to_say_farewell(action what) { return what != action::wait && what != action::peek; }

/// One meeting, from the opened store to the exit code.
class meeting {
 public:
  meeting(const common_options& common, const meet_options& o, log& to)
      : common_(common), o_(o), room_(std::in_place, signals_, to, o.name) {
    store_.emplace(open_store(common, to, frame_.deadline()));
    url_ = store_->url;
    room_->in_line_at(store_->session);
  }

  int come_together() {
    const auto go = o_.what == action::arrive_and_wait ? at_barrier : at_latch;
    meeting_end e{"timed_out", false};
    try {
      e = go(store_->session, o_, frame_, room_->stop());
    } catch (const std::exception&) {
      if (room_->stopped_by() == 0) throw;
    }
    const int stopped_by = room_->stopped_by(e.good);
    if (has_to_say_farewell(o_.what)) store_.reset();
    room_.reset();
    if (stopped_by != 0) return exit_code::of_signal(stopped_by);
    signals_.close();
    print(common_.json ? meet_json(o_.name, url_, e.outcome, o_.count, e.remaining)
                       : for_people(o_, e));
    return e.good ? exit_code::ok : o_.busy_code;
  }

 private:
  const common_options& common_;
  const meet_options& o_;
  signal_inbox signals_;
  const detail::time_frame frame_{boot_clock::now(), o_.wait};
  std::string url_;
  std::optional<waiting> room_;
  std::optional<opened_store> store_;
};

}  // namespace

int meet(const common_options& common, const meet_options& o, log& to) {
  meeting m{common, o, to};
  if (has_to_say_farewell(o.what)) return m.come_together();
  // Closing the session on a store that hangs would wait for its last answer.
  leave_at_once(reported(to, [&] { return m.come_together(); }));
}

}  // namespace holdfast::tool
