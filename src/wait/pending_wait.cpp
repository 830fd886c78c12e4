#include "wait/pending_wait.hpp"

namespace holdfast::engine {

using std::chrono::milliseconds;

pending_wait::pending_wait(async_request o)
    : operation(o.session->runner()),
      session_(*o.session),
      config_(std::move(o.what)),
      time_(o.time),
      keeps_session_(std::move(o.session)),
      weak_session_(keeps_session_),
      operation_(o.operation),
      stop_(std::move(o.stop)),
      closing_(session_.runner().closing()) {}

// The session is kept until its runner has this operation, which it makes to give up when it goes.
void pending_wait::begin(std::stop_token stop) {
  const auto session = std::move(keeps_session_);
  receivers_stop_ = std::move(stop);
  auto can = ready(*session, *config_, asks_for());
  if (can) can = session->runner().start();
  waited_ = {session->now(), session->now()};
  limit_ = std::min(time_.limit(), call_limit::present());
  told_at_ = limit_;
  if (time_.is_try() && session->can().try_takes_ms > 0) {
    const milliseconds each(session->can().try_takes_ms);
    told_at_ = std::min(limit_, saturated_add(session->now(), each * commands_of_a_try()));
  }
  if (can && told_at_ != forever && can_be_left()) {
    can = session->runner().tell_at(told_at_, shared_from_this());
  }
  if (can) return wake();
  fail(session->located(std::move(can.error()), operation_, config_->name));
}

const std::stop_token& pending_wait::stop() const noexcept {
  if (stop_.stop_requested()) return stop_;
  return receivers_stop_.stop_requested() ? receivers_stop_ : closing_;
}

failure pending_wait::stopped() const {
  if (!closing_.stop_requested()) return waited_in_vain(errc::cancelled);
  return {errc::cancelled,
          "the session ended while this waited: keep the session, or something "
          "that uses it, for as long as you wait"};
}

operation::next pending_wait::step() {
  if (leaving_) return {};
  if (steps_) return ask();
  if (!std::exchange(begun_, true)) {
    if (stop_.stop_possible()) on_stop_.emplace(stop_, rouse{this});
    if (receivers_stop_.stop_possible()) on_receivers_stop_.emplace(receivers_stop_, rouse{this});
    if (stop().stop_requested()) return end(stopped());
  }
  return come_in();
}

operation::next pending_wait::at_store() {
  {
    const call_limit until{limit_};
    steps_ = std::make_unique<wait_steps>(session_, asked(), time_);
  }
  return ask();
}

operation::next pending_wait::ask() {
  if (stop().stop_requested()) return give_up(stopped());
  if (told_) return give_up({errc::cancelled, {}});  // nobody waits for it any more
  if (auto request = steps_->command()) return {.ask = request};
  return settle(steps_->ask());
}

operation::next pending_wait::answer(result<store::permits_reply> reply, boot_time sent) {
  if (!leaving_) return settle(steps_->answered(std::move(reply), sent));
  if (!reply) {
    abandon();
  } else if (const auto more = after_leaving(*reply)) {
    return {.ask = more};
  }
  return end(std::move(*leaving_));
}

operation::next pending_wait::settle(std::optional<status> ended) {
  if (ended) return *ended ? succeed() : give_up(std::move(ended->error()));
  until_ = steps_->until();
  if (std::exchange(told_early_, false)) {
    steps_->notified_before();
    wake();
  }
  return retry_after(until_);
}

// A grant may come before it is known here that somebody else has asked for us.
operation::next pending_wait::take(const store::notification& n) {
  if (leaving_) return {};
  if (steps_) {
    if (auto ended = steps_->notified(n)) return settle(std::move(ended));
    wake();
  } else {
    told_early_ = true;
  }
  return retry_after(until_);
}

operation::next pending_wait::retry_after(boot_time until) {
  heard_ = steps_ ? steps_->last_heard() : wait_steps::heard::waits;
  until_ = until;
  return {.until = until};
}

std::vector<std::string> pending_wait::watched() const {
  return steps_ ? steps_->watched() : std::vector<std::string>{};
}

operation::next pending_wait::succeed() {
  auto session = weak_session_.lock();
  if (!session) return give_up(stopped());
  if (!may_tell()) return give_up({errc::cancelled, {}});
  won(std::move(session));
  return over();
}

operation::next pending_wait::give_up(failure f) {
  const auto goodbye = leaving(f);
  if (!goodbye) return end(std::move(f));
  leaving_ = std::make_unique<failure>(std::move(f));
  return {.ask = goodbye};
}

operation::next pending_wait::end(failure f) {
  let_go();
  if (!may_tell()) return over();
  f = observed(std::move(f));
  fail(session_.located(std::move(f), operation_, config_->name));
  return over();
}

void pending_wait::abandon() noexcept {
  session_.keeper().abandon(config_->name, owner(), config_->lease);
}

std::optional<store::named_command> pending_wait::release_of(const failure& why) {
  if (left_to_keeper(why)) {
    abandon();
    return std::nullopt;
  }
  return store::named_command{config_->name, release_command(owner())};
}

operation::next pending_wait::over() {
  on_stop_.reset();
  on_receivers_stop_.reset();
  return {.over = true};
}

void pending_wait::overdue() noexcept {
  constexpr std::chrono::seconds looks_again{1};
  const boot_time now = session_.now();
  const auto steps = session_.runner().steps();
  // It was stopped, and is being ended: the runner has many to see to.
  if (now < told_at_ && steps_seen_.exchange(steps) != steps) {
    const boot_time again_at = std::min(told_at_, saturated_add(now, looks_again));
    (void)session_.runner().tell_at(again_at, shared_from_this());
    return;
  }
  if (told_.exchange(true)) return;
  try {
    told_overdue();
  } catch (...) {
    tell_no_memory();
  }
}

// The runner's thread sees to it, unless it is stuck in the store.
void pending_wait::stop_soon() noexcept {
  wake();
  if (!can_be_left()) return;
  steps_seen_ = session_.runner().steps();
  if (const auto self = weak_from_this().lock()) {
    (void)session_.runner().tell_at(saturated_add(session_.now(), last_answer_within), self);
  }
}

void pending_wait::told_overdue() {
  if (stop().stop_requested()) return fail_overdue(stopped());
  using heard = wait_steps::heard;
  const heard last = heard_;
  failure why = unanswered(session_, waited_.began, last != heard::nothing);
  const bool is_try = time_.is_try() && limit_ == forever;  // and not the rest of a longer call
  if (is_try || last == heard::in_vain) why.code = errc::unavailable;
  if (last == heard::in_vain) {
    why.what = "the store granted it in vain, and did not answer the last try in time";
  }
  fail_overdue(std::move(why));
}

bool pending_wait::broken() noexcept {
  if (!come_out()) return false;
  leave_to_keeper();
  let_go();
  (void)over();
  if (telling_ || may_tell()) tell_no_memory();
  return true;
}

status short_operation::begin() {
  if (auto can = session_->usable(); !can) return can;
  if (auto can = session_->runner().start(); !can) return can;
  wake();
  return done{};
}

}  // namespace holdfast::engine
