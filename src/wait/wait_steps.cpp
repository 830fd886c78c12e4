#include "wait/wait_steps.hpp"

#include <algorithm>

#include "session/no_memory.hpp"

namespace holdfast::engine {

using namespace std::chrono_literals;

namespace {

/// The first pause between attempts to reach a store that is away, and the longest.
constexpr std::chrono::nanoseconds first_pause = 5ms;
constexpr std::chrono::nanoseconds longest_pause = 1s;
constexpr std::chrono::nanoseconds longest_sleep = 24h;

/// Whether the failure is the store's decision on a request that it understood.
bool is_an_answer(const failure& f) {
  return f.code == errc::kind_mismatch || f.code == errc::capacity_mismatch || f.code == errc::lost;
}

// The failure of a wait that lasted `waited`, and that the store had not answered by its deadline.
// Within a second the store may only be slow, and a late answer is no failure of the store.
// `waited` ends at the time limit at the latest, because the process itself may have been suspended
// until later.
failure unanswered(std::chrono::nanoseconds waited, bool answered_before) {
  constexpr auto is_away = 1s;
  const bool slow = answered_before || waited < is_away;
  return {slow ? errc::timed_out : errc::unavailable,
          "the store had not answered in time: is it stopped, or the network cut?", true};
}

}  // namespace

failure asked_to_stop() { return {errc::cancelled, "the wait was stopped"}; }

failure waited_in_vain(bool is_try, std::string_view what) {
  if (is_try) return {errc::busy, std::string(what)};
  return {errc::timed_out, std::string(what) + " at the deadline"};
}

std::optional<store::named_command> request::command(bool) { return std::nullopt; }

request::answer request::learn(result<store::permits_reply>, boot_time) {
  return failure{errc::internal, "the store answered another request than the one that was sent"};
}

request::answer request::ask(bool) {
  return failure{errc::internal, "this request has no command for the store"};
}

wait_steps::wait_steps(store_client& session, request& q, const time_frame& time)
    : session_(session),
      request_(q),
      time_(time),
      began_(session.now()),
      limit_(std::min(time.limit(), call_limit::present())),
      until_(time.deadline()),
      pause_(first_pause) {}

bool wait_steps::at_deadline() const noexcept {
  return time_.deadline() != forever && session_.now() >= time_.deadline();
}

// Leaves the poll to other waiters of the session, if they poll anyway.
bool wait_steps::left_to_others() {
  const boot_time now = session_.now();
  const boot_time until = last_ ? now : request_.put_off(now);
  if (until <= now) return false;
  until_ = std::min(time_.deadline(), until + jittered(250ms));
  return true;
}

std::optional<status> wait_steps::ask() {
  last_ = at_deadline();
  if (left_to_others()) return std::nullopt;
  const call_limit until{limit_};
  left_a_call() = false;
  const boot_time sent = session_.now();
  request_.was_asked_ = true;
  const auto what = request_.command(last_);
  if (!what) return judge(request_.ask(last_), sent);
  return judge(request_.learn(session_.permits(what->name, what->command), sent), sent);
}

std::optional<store::named_command> wait_steps::command() {
  last_ = at_deadline();
  if (left_to_others()) return std::nullopt;
  request_.was_asked_ = true;
  return request_.command(last_);
}

std::optional<status> wait_steps::answered(result<store::permits_reply> reply, boot_time sent) {
  left_a_call() = false;
  return judge(request_.learn(std::move(reply), sent), sent);
}

// A waiter that polls alone (wait_hint::alone) asks when the lease in its way ends. The pause
// counts from when the request was sent, because the next request takes as long to reach the store.
std::optional<status> wait_steps::judge(request::answer answer, boot_time sent) {
  if (!answer) return judge_failure(std::move(answer.error()), sent);
  unknown_ = false;
  if (!*answer) return done{};
  if (last_) return waited_in_vain(time_.is_try(), request_.in_vain());
  answered_ = true;
  in_vain_.reset();
  give_up_ = forever;
  pause_ = first_pause;
  watched_ = std::move((*answer)->watch);
  if ((*answer)->at) {
    until_ = std::min(time_.deadline(), *(*answer)->at);
    return std::nullopt;
  }
  // A record of another program may contain any number, so the pause is bounded.
  const auto pause = std::min(saturated_nanoseconds((*answer)->retry_after), longest_sleep);
  const boot_time now = session_.now();
  // Never immediately: a store that takes longer to answer than the pause is busy enough.
  const auto least = std::min(pause / 4, (now - sent) / 2);
  until_ =
      (*answer)->alone ? std::max(saturated_add(sent, pause), now + least) : now + jittered(pause);
  until_ = std::min(time_.deadline(), until_);
  return std::nullopt;
}

std::optional<status> wait_steps::judge_failure(failure f, boot_time sent) {
  // A driver reports `busy` if other clients were faster each time. Here `busy` would say that the
  // lock is held.
  if (f.code == errc::busy) f.code = errc::unavailable;
  const bool hopeless = !went_unanswered(f);
  if (!is_an_answer(f)) unknown_ = f.outcome_unknown = f.outcome_unknown || unknown_;
  const boot_time now = session_.now();
  const boot_time give_up = gives_up_at(f, sent, now);
  if (!hopeless && left_a_call()) return left_at_deadline(began_);
  if (f.ack_missing) in_vain_ = f;
  if (hopeless || last_ || at_deadline() || (time_.deadline() == forever && now >= give_up))
    return status(std::move(f));
  pause_ = std::min(pause_ * 2, longest_pause);
  until_ = std::min(time_.deadline(), now + jittered(pause_));
  return std::nullopt;
}

// The time to give up counts from the call, or from when another waiter of the session found the
// store away: a waiter queued behind that one in this process has waited for the same store.
//
// After a grant that could not be made sure of, an answer "wait" may be followed by another such
// grant. Such a wait gives up as if the store had been away since the first of them, unless the
// last one is long ago.
boot_time wait_steps::gives_up_at(const failure& f, boot_time sent, boot_time now) {
  const auto patience = saturated_nanoseconds(session_.options().store_timeout);
  const bool away = f.code == errc::unavailable && !f.ack_missing;
  const boot_time since = away ? session_.outage().failed(sent, now) : now;
  if (give_up_ == forever) give_up_ = saturated_add(std::max(since, time_.began()), patience);
  if (!f.ack_missing) return give_up_;
  if (!last_in_vain_ || now > saturated_add(*last_in_vain_, patience)) in_vain_since_ = now;
  last_in_vain_ = now;
  return std::min(give_up_, saturated_add(in_vain_since_, patience));
}

// If the store last reported a grant that it could not make sure of, no other holder is in the way,
// and the reason is known: making sure of a grant may take longer than the last answer is waited
// for.
failure wait_steps::left_at_deadline(boot_time began) {
  if (!in_vain_) return unanswered(std::min(session_.now(), limit_) - began, answered_);
  failure f = std::move(*in_vain_);
  f.what += "; the store did not answer the last try in time";
  f.outcome_unknown = true;
  return f;
}

status wait_until_settled(store_client& session, dispatcher::registration& slot, request& q,
                          const timed_call& call, std::stop_token stop) {
  const std::stop_callback on_stop{stop, [&] { slot.wake(); }};
  wait_steps steps(session, q, call);
  while (!stop.stop_requested()) {
    if (auto end = steps.ask()) return std::move(*end);
    slot.watch(steps.watched());
    const auto news = slot.wait(steps.until());
    if (!news) {
      session.tell_gap();  // not before a grant, which must be confirmed in time
      continue;
    }
    if (auto end = steps.notified(*news)) return std::move(*end);
  }
  return asked_to_stop();
}

}  // namespace holdfast::engine
