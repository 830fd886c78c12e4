#include "wait/pending_wait.hpp"

#include <algorithm>

namespace holdfast::engine {

using std::chrono::milliseconds;

pending_wait::pending_wait(async_request o, engine::runner* by)
    : operation(by != nullptr ? *by : o.session->runner()),
      session_(*o.session),
      config_(std::move(o.what)),
      how_(o.how),
      time_(o.time),
      stop_(std::move(o.stop)),
      keeps_session_(std::move(o.session)),
      weak_session_(keeps_session_),
      operation_(o.operation),
      closing_(its_runner().closing()) {}

// Keeps the session until its runner knows this operation. When the session ends, the runner makes
// the operation give up.
void pending_wait::begin(std::stop_token stop) {
  const auto session = std::move(keeps_session_);
  receivers_stop_ = std::move(stop);
  auto can = ready(*session, *config_, how_);
  if (can) can = its_runner().start();
  waited_ = {session->now(), session->now()};
  limit_ = std::min(time_.limit(), call_limit::present());
  ends_by_ = limit_;
  if (time_.is_try() && session->can().try_takes_ms > 0) {
    const milliseconds each(session->can().try_takes_ms);
    ends_by_ = std::min(limit_, saturated_add(session->now(), each * commands_of_a_try()));
  }
  if (can && ends_by_ != forever) can = its_runner().end_by(ends_by_, shared_from_this());
  if (!can) return fail(session->located(std::move(can.error()), operation_, config_->name));
  // Set up here, and not in the first step, which may come late: the runner's thread may be stuck
  // in the store.
  wake_after([this] {
    if (stop_.stop_possible()) on_stop_.emplace(stop_, rouse{this});
    if (receivers_stop_.stop_possible()) on_receivers_stop_.emplace(receivers_stop_, rouse{this});
  });
}

const std::stop_token& pending_wait::stop() const noexcept {
  if (stop_.stop_requested()) return stop_;
  return receivers_stop_.stop_requested() ? receivers_stop_ : closing_;
}

failure pending_wait::stopped() const {
  if (!closing_.stop_requested()) return asked_to_stop();
  return {errc::cancelled,
          "the session ended during this wait: keep the session, or something "
          "that uses it, for as long as you wait"};
}

operation::next pending_wait::step() {
  if (leaving_) return {};
  if (steps_) return ask();
  if (!std::exchange(begun_, true)) {
    if (asked().known()) return succeed();
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
  if (session_.now() >= ends_by_) return overdue();
  if (auto request = steps_->command()) {
    unanswered_ = true;
    return {.ask = request};
  }
  const call_limit until{ends_by_};
  return settle(steps_->ask());
}

operation::next pending_wait::answer(result<store::permits_reply> reply, boot_time sent) {
  unanswered_ = false;
  if (!leaving_) return settle(steps_->answered(std::move(reply), sent));
  if (!reply) {
    left_unanswered();
  } else if (reply->outcome == store::permits_outcome::absent && !owed_) {
    owed_ = owed();
    if (owed_) return {.ask = store::named_command{config_->name, *owed_}};
  }
  return end(std::move(*leaving_));
}

// If a try got no answer in time, no holder was found in its way: the failure is not "busy".
operation::next pending_wait::settle(std::optional<status> ended) {
  if (ended && *ended) return succeed();
  if (ended) {
    failure& why = ended->error();
    if (is_try() && why.outcome_unknown && why.code == errc::timed_out) return give_up(in_vain());
    return give_up(std::move(why));
  }
  until_ = steps_->until();
  if (std::exchange(told_early_, false)) {
    steps_->notified_before();
    wake();
  }
  return retry_after(until_);
}

// Before the steps exist, only remembers the notification: a grant may arrive before this thread
// knows that another thread has requested the lock for it.
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
  until_ = until;
  return {.until = until};
}

std::vector<std::string> pending_wait::watched() const {
  return steps_ ? steps_->watched() : std::vector<std::string>{};
}

operation::next pending_wait::succeed() {
  auto session = weak_session_.lock();
  if (!session) return give_up(stopped());
  won(std::move(session));
  return over();
}

operation::next pending_wait::give_up(failure f) {
  const auto goodbye = asked().was_asked() ? leaving(f) : std::nullopt;
  if (!goodbye) return end(std::move(f));
  leaving_ = std::make_unique<failure>(std::move(f));
  // The limit set by stop_soon() may have passed while another thread was asking on behalf of this
  // operation.
  if (stop().stop_requested()) {
    (void)its_runner().end_by(saturated_add(session_.now(), last_answer_within),
                              shared_from_this());
  }
  return {.ask = goodbye};
}

// let_go() may send a release to the store, so it gets a time limit.
operation::next pending_wait::end(failure f) {
  {
    const bool called_off = stop().stop_requested();
    const call_limit until{called_off ? saturated_add(session_.now(), last_answer_within) : limit_};
    let_go();
  }
  f = observed(std::move(f));
  fail(session_.located(std::move(f), operation_, config_->name));
  return over();
}

void pending_wait::abandon() noexcept {
  session_.keeper().abandon(config_->name, owner(), config_->lease, owed());
}

void pending_wait::left_unanswered() noexcept {
  if (!owed_) return abandon();
  session_.keeper().send_again(config_->name, *owed_);
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

// Asks the store nothing more, and does not wait for a release: the store may hang, and an
// operation that was stopped may have no limit of its own.
operation::next pending_wait::overdue() {
  const call_limit until{std::min(limit_, session_.now())};
  if (leaving_) {
    left_unanswered();
    return end(std::move(*leaving_));
  }
  if (!steps_) return step();
  failure why = stop().stop_requested() ? stopped() : in_vain();
  if (unanswered_) (void)asked().learn(failure{errc::unavailable, why.what, true}, {});
  if (asked().was_asked()) leave_to_keeper();
  return end(std::move(why));
}

bool pending_wait::is_try() const noexcept {
  return time_.is_try() && limit_ == forever;  // not a try that is the rest of a longer call
}

failure pending_wait::in_vain() {
  failure why = steps_->left_at_deadline(waited_.began);
  if (is_try()) why.code = errc::unavailable;
  return why;
}

// Wakes the operation so that it ends, and sets a limit in case the runner's thread is stuck in the
// store.
void pending_wait::stop_soon() noexcept {
  wake();
  if (const auto self = weak_from_this().lock()) {
    (void)its_runner().end_by(saturated_add(session_.now(), last_answer_within), self);
  }
}

bool pending_wait::broken() noexcept {
  if (!come_out()) return false;
  leave_to_keeper();
  let_go();
  (void)over();
  tell_no_memory();
  return true;
}

status short_operation::begin() {
  if (auto can = session_->usable(); !can) return can;
  if (auto can = its_runner().start(); !can) return can;
  wake();
  return done{};
}

}  // namespace holdfast::engine
