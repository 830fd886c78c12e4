#include <holdfast/latch.hpp>

#include "primitive/common.hpp"
#include "wait/async_forms.hpp"

namespace holdfast {

using namespace std::chrono_literals;
using primitive::subject;
using store::countdown_outcome;
using store::countdown_verb;

namespace {

constexpr std::uint32_t max_count = 1'000'000;
/// The time that an arrival may be under way, beyond the time for which the session keeps trying.
constexpr std::chrono::microseconds on_its_way = 60s;

// The time for which an arrival without an answer is repeated.
std::chrono::milliseconds tries_for(const engine::session_impl& session) {
  return std::min<std::chrono::milliseconds>(session.options().store_timeout, max_lease);
}

failure other_count(const store::countdown_reply& reply, std::uint32_t count) {
  return {errc::capacity_mismatch, "the latch was made with a count of " +
                                       std::to_string(reply.found.count) + ", not " +
                                       std::to_string(count) + ": use the same count everywhere"};
}

failure mismatch(const store::countdown_reply& reply, std::uint32_t count) {
  if (reply.outcome != countdown_outcome::kind_mismatch) return other_count(reply, count);
  return primitive::in_use_as(reply.found_kind);
}

result<std::uint32_t> left_of(const store::countdown_reply& reply, std::uint32_t count) {
  if (reply.found.count == 0) return count;
  if (reply.found.count == count) return reply.found.remaining;
  return other_count(reply, count);
}

bool is_mismatch(const store::countdown_reply& reply) {
  return reply.outcome == countdown_outcome::kind_mismatch ||
         reply.outcome == countdown_outcome::capacity_mismatch;
}

/// One command of one latch, repeated unchanged if its reply is lost.
class countdown_request final : public engine::request {
 public:
  countdown_request(engine::session_impl& session, const std::string& name,
                    const store::countdown_command& c)
      : session_(session), name_(name), command_(c) {}

  std::string in_vain() const override { return "the latch was still closed"; }
  answer ask(bool last) override {
    if (command_.verb == countdown_verb::arrive && session_.now() > repeat_until_)
      return too_late();
    const boot_time sent = session_.now();
    if (last) command_.queue_lease_us = 0;
    auto replied = session_.countdown(name_, command_);
    if (!replied) return note_unknown(std::move(replied.error()), sent);
    reply = std::move(*replied);
    if (is_mismatch(reply)) return mismatch(reply, command_.count);
    if (command_.verb != countdown_verb::wait || reply.outcome == countdown_outcome::open) {
      return settled();
    }
    return ask_again({std::chrono::microseconds(reply.retry_after_us), {}});
  }

  /// Ends a wait that was cancelled. The caller does not wait for a store that hangs: a queue entry
  /// that stays behind expires within seconds.
  void leave(const failure& why) {
    if (why.code != errc::cancelled || command_.verb != countdown_verb::wait) return;
    const engine::call_limit until{saturated_add(session_.now(), engine::last_answer_within)};
    auto c = command_;
    c.verb = countdown_verb::leave;
    (void)session_.countdown(name_, c);
  }

  store::countdown_reply reply;

 private:
  // Limits the time for repetitions: a process that was suspended must not repeat the arrival when
  // the store has forgotten it.
  failure note_unknown(failure f, boot_time sent) {
    if (f.outcome_unknown && repeat_until_ == forever) {
      repeat_until_ = saturated_add(sent, tries_for(session_) + on_its_way / 2);
    }
    return f;
  }
  static failure too_late() {
    return {errc::unavailable,
            "the reply to a count_down was lost too long ago for it to be repeated: "
            "remaining() shows whether it counted",
            true};
  }

  engine::session_impl& session_;
  const std::string& name_;
  store::countdown_command command_;
  boot_time repeat_until_ = forever;
};

/// The result of a count_down(n).
status counted(std::uint32_t n, const store::countdown_reply& reply) {
  if (reply.outcome != countdown_outcome::too_many) return done{};
  return failure{errc::invalid_argument, "count_down(" + std::to_string(n) + ") of a latch with " +
                                             std::to_string(reply.remaining) + " left to count"};
}

void check_count(const subject& of, std::uint32_t count) {
  if (count >= 1 && count <= max_count) return;
  of.fail({errc::invalid_argument,
           "a latch counts down from 1 to 1,000,000, not " + std::to_string(count)});
}

void check_keep(const subject& of, std::chrono::seconds keep) {
  // Compares in seconds: the longest durations overflow in milliseconds.
  if (keep >= 1s && keep <= std::chrono::floor<std::chrono::seconds>(max_lease)) return;
  of.fail({errc::invalid_argument,
           "a latch is kept for 1 s to 31 days, not " + std::to_string(keep.count()) + " s"});
}

}  // namespace

struct latch::state {
  subject of;
  std::uint32_t count;
  std::chrono::seconds keep;

  store::countdown_command command(countdown_verb verb, std::uint32_t drop = 0) const {
    return {.verb = verb,
            .owner = of.session->new_owner(),
            .count = count,
            .drop = drop,
            .queue_lease_us = engine::queue_lease.count(),
            .keep_us = std::chrono::microseconds(keep).count(),
            .repeats_us = (tries_for(*of.session) + on_its_way).count(),
            .peer = of.session->peer(),
            .note = of.config->note};
  }

  /// Returns the reply, or nothing if none came in time. Throws any failure.
  std::optional<store::countdown_reply> run(const store::countdown_command& c, wait_time wait,
                                            std::stop_token stop) const {
    auto& session = *of.session;
    countdown_request q(session, of.config->name, c);
    const engine::timed_call call(session.now(), wait);
    auto ended = engine::wait_until_settled(session, c.owner, q, call, std::move(stop));
    if (!ended && q.was_asked()) q.leave(ended.error());
    if (!of.settled(std::move(ended))) return std::nullopt;
    return std::move(q.reply);
  }

  /// Returns how many arrivals are missing, or nothing if no answer came in time.
  std::optional<std::uint32_t> left(wait_time wait) const {
    const auto reply = run(command(countdown_verb::inspect), wait, {});
    if (!reply) return std::nullopt;
    auto counted = left_of(*reply, count);
    if (!counted) of.fail(std::move(counted.error()));
    return *counted;
  }

  /// A command without a thread.
  template <class T, class Outcome>
  pending<T> run_later(countdown_verb verb, std::uint32_t drop, Outcome outcome,
                       wait_limit limit = {}, std::stop_token stop = {}) const {
    const auto c = command(verb, drop);
    return engine::async_ask<T>(
        of.request(limit, std::move(stop)), c.owner,
        std::make_unique<countdown_request>(*of.session, of.config->name, c), outcome);
  }
};

latch::latch(session s, std::string name, std::uint32_t count, latch_options options)
    : state_(new state{
          subject(s, "latch", name, {}, store::kind::latch, count, &store::capabilities::latch),
          count, options.keep}) {
  check_count(state_->of, count);
  check_keep(state_->of, options.keep);
}

latch::~latch() = default;

void latch::count_down(std::uint32_t n) {
  const auto reply = state_->run(state_->command(countdown_verb::arrive, n), no_limit, {});
  if (auto ok = counted(n, *reply); !ok) state_->of.fail(std::move(ok.error()));
}

pending<done> async_count_down(latch& l, std::uint32_t n) {
  return detail::access::of(l)->run_later<done>(countdown_verb::arrive, n,
                                                [n](auto q) { return counted(n, q->reply); });
}

bool latch::try_wait() const { return state_->left(one_try) == 0u; }

pending<done> async_wait(const latch& l, wait_limit limit, std::stop_token stop) {
  return detail::access::of(l)->run_later<done>(countdown_verb::wait, 0, engine::nothing_more,
                                                limit, std::move(stop));
}

bool latch::wait_within(wait_time wait, std::stop_token stop) const {
  return state_->run(state_->command(countdown_verb::wait), wait, std::move(stop)).has_value();
}

std::uint32_t latch::remaining() const { return *state_->left(no_limit); }

pending<std::uint32_t> async_remaining(const latch& l) {
  const auto& s = *detail::access::of(l);
  return s.run_later<std::uint32_t>(countdown_verb::inspect, 0,
                                    [count = s.count](auto q) { return left_of(q->reply, count); });
}

void latch::remove() { (void)state_->run(state_->command(countdown_verb::remove), no_limit, {}); }

pending<done> async_remove(latch& l) {
  return detail::access::of(l)->run_later<done>(countdown_verb::remove, 0, engine::nothing_more);
}

const std::string& latch::name() const noexcept { return state_->of.config->name; }

}  // namespace holdfast
