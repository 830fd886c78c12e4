#include <algorithm>

#include "base/everlasting.hpp"
#include "primitive/rate_limiter_state.hpp"
#include "wait/async_forms.hpp"

namespace holdfast {

using primitive::decision;
using primitive::rate_rules;
using primitive::subject;
using std::chrono::microseconds;
using store::rate_outcome;
using store::rate_verb;

namespace {

constexpr microseconds longest_ahead = max_lease;
/// The shortest pause after which a waiter for tokens checks the clock again.
constexpr microseconds shortest_look{200};
/// The due time of tokens that were not taken: so long ago that none of them come back.
constexpr std::int64_t never_due = -store::most_units;
/// From this number of keys on, the process removes expired pools when it adds another.
constexpr std::size_t many_pools = 1024;

microseconds ahead_of(wait_time wait) {
  return std::min<microseconds>(std::chrono::floor<microseconds>(wait), longest_ahead);
}

/// One command, repeated unchanged if its reply is lost. Tokens that were taken, but not passed to
/// the caller, are refunded.
class rate_request final : public engine::request {
 public:
  rate_request(engine::session_impl& session, const std::string& name,
               rate_limiter::state::request about, rate_verb verb, std::uint64_t n,
               microseconds ahead)
      : session_(session),
        name_(name),
        about_(std::move(about)),
        command_(about_.command(verb, session.new_owner(), n, ahead)) {}
  rate_request(const rate_request&) = delete;
  rate_request& operator=(const rate_request&) = delete;
  ~rate_request() override { give_back(); }
  const store::owner_id& owner() const noexcept { return command_.owner; }

  answer ask(bool) override {
    if (command_.verb == rate_verb::refund && session_.now() > repeat_until_) return too_late();
    const boot_time sent = session_.now();
    auto reply = session_.rate(name_, command_);
    if (!reply) return note_unknown(std::move(reply.error()), sent);
    reply_ = std::move(*reply);
    took_ = command_.verb == rate_verb::take && reply_.outcome == rate_outcome::granted;
    return settled();
  }
  result<rate_decision> decided() const {
    return decision(about_, reply_, static_cast<std::uint64_t>(command_.tokens));
  }

  void give_back() noexcept {
    if (!std::exchange(took_, false)) return;
    store::keep_due(about_.choices, reply_);
    session_.refund(name_, command_);
  }
  /// The caller has the tokens.
  void heard_of() noexcept { took_ = false; }

 private:
  failure note_unknown(failure f, boot_time sent) {
    repeat_until_ = std::min(repeat_until_, engine::refund_repeated_until(f, sent));
    return f;
  }
  static failure too_late() {
    return {errc::unavailable,
            "the reply to a refund was lost too long ago for it to be repeated: peek() "
            "shows whether the tokens came back",
            true};
  }

  engine::session_impl& session_;
  const std::string& name_;
  rate_limiter::state::request about_;
  const store::rate_command command_;
  store::rate_reply reply_{};
  boot_time repeat_until_ = forever;
  bool took_ = false;
};

}  // namespace

const rate_state& rate_decision::tightest() const noexcept {
  if (rules.empty()) return base::everlasting<rate_state>();
  return *std::min_element(rules.begin(), rules.end(), [](const auto& a, const auto& b) {
    return a.wait != b.wait ? a.wait > b.wait : a.remaining < b.remaining;
  });
}

namespace {

failure refusal(const rate_limiter::state::request& r, const store::rate_reply& reply,
                std::uint64_t n) {
  const std::string& rule = r.rules->name_of(reply.which);
  switch (reply.outcome) {
    case rate_outcome::kind_mismatch:
      return primitive::in_use_as(reply.found_kind);
    case rate_outcome::capacity_mismatch:
      return {errc::capacity_mismatch,
              "the rule '" + rule + "' is in use with another rate or burst and the same version " +
                  std::to_string(r.rules->version()) +
                  ": use the same rules in every program, or give the new rules a greater version"};
    default:
      return {errc::invalid_argument,
              std::to_string(n) +
                  " tokens can never be taken at once: they are more than the burst of the rule '" +
                  rule + "', which another program has changed"};
  }
}

}  // namespace

result<rate_decision> primitive::decision(const rate_limiter::state::request& r,
                                          const store::rate_reply& reply, std::uint64_t n) {
  if (reply.outcome >= rate_outcome::too_many && reply.outcome != rate_outcome::done) {
    return refusal(r, reply, n);
  }
  rate_decision d;
  d.taken = reply.outcome == rate_outcome::granted;
  d.wait = microseconds(reply.wait_us);
  if (d.taken) d.tokens = n;
  d.rules.reserve(reply.buckets.size());
  for (std::size_t i = 0; i < reply.buckets.size(); ++i) {
    const auto& b = reply.buckets[i];
    d.rules.push_back({r.rules->name_of(i), static_cast<std::uint64_t>(b.limit),
                       static_cast<std::uint64_t>(b.remaining), microseconds(b.wait_us),
                       microseconds(b.full_us), microseconds(store::due_at(reply, i))});
  }
  return d;
}

namespace {

/// The time frame of a wait for tokens. The wait may last until its limit, a little beyond the
/// deadline, because the tokens' time counts from the store's answer.
engine::time_frame time_of(const engine::session_impl& session, wait_time wait) {
  return engine::time_frame(session.now(), wait).to_the_last();
}

/// Takes tokens ahead, and is settled when they are available. If they are due in time, but later
/// than tokens can be taken ahead, asks again when they can.
class reservation final : public engine::request {
 public:
  reservation(engine::session_impl& session, const std::string& name,
              rate_limiter::state::request r, std::uint64_t n, wait_time wait)
      : session_(session),
        began_(session.now()),
        deadline_(saturated_add(began_, wait)),
        take_(session, name, std::move(r), rate_verb::take, n, ahead_of(wait)) {}
  const store::owner_id& owner() const noexcept { return take_.owner(); }

  answer ask(bool last) override {
    if (!made_ || too_early_) {
      if (auto asked = take_.ask(last); !asked) return asked;
      auto d = take_.decided();
      if (!d) return std::move(d.error());
      made_ = std::move(*d);
      too_early_ = !made_->taken && made_->wait > longest_ahead &&
                   saturated_add(session_.now(), made_->wait) <= deadline_;
      if (too_early_) return ask_again({made_->wait - longest_ahead, {}});
      // Counts from now, not from when the request was sent: the store's answer was not earlier.
      ready_ = session_.now() + (made_->taken ? made_->wait : microseconds::zero());
    }
    const auto left = std::chrono::ceil<microseconds>(ready_ - session_.now());
    if (left <= microseconds::zero()) return settled();
    return ask_again({std::max(left, shortest_look), {}});
  }

  rate_decision outcome() {
    if (made_->taken) made_->wait = std::chrono::ceil<microseconds>(session_.now() - began_);
    take_.heard_of();
    return std::move(*made_);
  }
  /// The result of a wait that ended before the tokens were available. They are refunded.
  rate_decision refused() {
    if (!made_) return {};
    give_back();
    made_->tokens = 0;
    return std::move(*made_);
  }
  void give_back() noexcept {
    if (made_ && std::exchange(made_->taken, false)) {
      made_->wait = std::chrono::ceil<microseconds>(ready_ - session_.now());
    }
    take_.give_back();
  }

 private:
  engine::session_impl& session_;
  const boot_time began_;
  const boot_time deadline_;
  rate_request take_;
  std::optional<rate_decision> made_;
  bool too_early_ = false;
  boot_time ready_{};
};

/// The asynchronous form. Running out of time is a decision, not a failure.
class pending_take final : public engine::telling_wait<engine::pending_wait, rate_decision> {
 public:
  pending_take(engine::async_request o, rate_limiter::state::request r, std::uint64_t n,
               wait_time wait)
      : telling_wait(std::move(o)), reservation_(session_, config_->name, std::move(r), n, wait) {}
  const store::owner_id& owner() const noexcept override { return reservation_.owner(); }

 private:
  engine::request& asked() override { return reservation_; }
  void won(std::shared_ptr<engine::session_impl>) override { tell(reservation_.outcome()); }
  std::optional<store::named_command> leaving(const failure&) override {
    leave_to_keeper();
    return std::nullopt;
  }
  void leave_to_keeper() noexcept override { reservation_.give_back(); }
  void fail(failure f) override {
    if (engine::is_in_vain(f.code)) return tell(reservation_.refused());
    tell(std::move(f));
  }

  reservation reservation_;
};

}  // namespace

rate_limiter::state::request rate_limiter::state::about(const rate_key& key,
                                                        std::uint64_t n) const {
  of.require_usable();
  request r{current(), {}, {}};
  auto buckets = r.rules->buckets_of(key);
  if (!buckets) of.fail(std::move(buckets.error()));
  r.buckets = std::move(*buckets);
  r.choices = r.rules->choices(r.buckets);
  if (n >= 1 && n <= r.rules->smallest_burst()) return r;
  of.fail({errc::invalid_argument,
           "a request is for 1 to " + std::to_string(r.rules->smallest_burst()) +
               " tokens (the smallest burst of the rules), not for " + std::to_string(n)});
}

rate_limiter::state::request rate_limiter::state::about_taken(const rate_key& key,
                                                              const rate_decision& taken) const {
  if (!taken || taken.tokens == 0) {
    of.fail({errc::invalid_argument, "this decision took no tokens, so there are none to refund"});
  }
  if (taken.tokens > static_cast<std::uint64_t>(store::most_units)) {
    of.fail({errc::invalid_argument,
             std::to_string(taken.tokens) +
                 " tokens are more than a limiter can count, so no decision took them: refund the "
                 "decision as it was returned"});
  }
  request r = about(key, 1);
  for (std::size_t i = 0; i < r.choices.size(); ++i) {
    const auto rule = std::find_if(taken.rules.begin(), taken.rules.end(), [&](const auto& one) {
      return one.rule == r.rules->name_of(i);
    });
    if (rule == taken.rules.end()) {  // it came with a change of rules
      r.choices[i].due_at = never_due;
      continue;
    }
    r.choices[i].due_at = std::max<std::int64_t>(rule->due.count(), 0);
  }
  return r;
}

rate_decision rate_limiter::state::decide(request about, rate_verb verb, std::uint64_t n,
                                          microseconds ahead, wait_time wait) const {
  auto d = ask(std::move(about), verb, n, ahead, wait);
  if (!d) of.fail(std::move(d.error()));
  return std::move(*d);
}

result<rate_decision> rate_limiter::state::ask(request about, rate_verb verb, std::uint64_t n,
                                               microseconds ahead, wait_time wait,
                                               const kept& keep) const {
  auto& session = *of.session;
  rate_request q(session, of.config->name, std::move(about), verb, n, ahead);
  auto settled = engine::wait_until_settled(session, q.owner(), q, {session.now(), wait});
  if (!settled) return std::move(settled.error());
  auto d = q.decided();
  if (!d) return d;
  if (keep && *d) keep(*d);
  q.heard_of();
  return d;
}

// Threads that find the pool empty at the same time each fill it. The pool adds up their tokens, so
// none are lost.
rate_decision rate_limiter::state::take_locally(request r, std::uint64_t n) {
  std::string id = std::to_string(r.rules->version());
  for (const auto& b : r.buckets) (id += ' ') += b;
  const boot_time now = of.session->now();
  {
    const std::lock_guard guard{mutex};
    const auto found = pools.find(id);
    if (found != pools.end() && found->second.until > now && found->second.left >= n) {
      rate_decision d = found->second.last;
      d.tokens = n;
      found->second.left -= n;
      return d;
    }
  }
  const auto keep = [&](const rate_decision& many) {
    auto last = many;
    const std::lock_guard guard{mutex};
    drop_old_pools(now);
    auto& p = pools[id];  // takes no memory from here on
    if (p.until <= now) p.left = 0;
    p.left += options.local_tokens - n;
    p.until = now + options.local_time;
    p.last = std::move(last);
  };
  auto d = ask(r, rate_verb::take, options.local_tokens, {}, one_try, keep);
  // Another program may have made the burst smaller than local_tokens.
  const bool too_many = !d && d.error().code == errc::invalid_argument;
  if (too_many || (d && !*d)) return decide(std::move(r), rate_verb::take, n, {}, one_try);
  if (!d) of.fail(std::move(d.error()));
  d->tokens = n;
  return std::move(*d);
}

void rate_limiter::state::drop_old_pools(boot_time now) {
  if (pools.size() < many_pools) return;
  std::erase_if(pools, [&](const auto& p) { return p.second.until <= now; });
}

void rate_limiter::state::replace_rules(std::vector<rate_rule> with, std::uint32_t version) {
  of.require_usable();
  auto checked = rate_rules::check(std::move(with), version);
  if (!checked) of.fail(std::move(checked.error()));
  if (options.local_tokens > (*checked)->smallest_burst()) {
    of.fail({errc::invalid_argument, "local_tokens of " + std::to_string(options.local_tokens) +
                                         " are more than the smallest burst of the rules, " +
                                         std::to_string((*checked)->smallest_burst())});
  }
  const std::lock_guard guard{mutex};
  if (rules && rules->version() >= version) {
    of.fail({errc::invalid_argument,
             "changed rules need a version greater than " + std::to_string(rules->version())});
  }
  rules = std::move(*checked);
}

rate_limiter::rate_limiter(session s, std::string name, std::vector<rate_rule> rules,
                           rate_limiter_options options)
    : state_(new state{subject(s, "rate_limiter", name, {}, store::kind::rate_limiter, 1,
                               &store::capabilities::rate_limiter),
                       options}) {
  if (options.local_time < std::chrono::milliseconds(1) || options.local_time > max_lease) {
    state_->of.fail({errc::invalid_argument, "local_time goes from 1 ms to 31 days"});
  }
  state_->replace_rules(std::move(rules), options.version);
}

rate_limiter::~rate_limiter() = default;

rate_decision rate_limiter::try_take(std::uint64_t n, const rate_key& key) {
  auto r = state_->about(key, n);
  if (state_->options.local_tokens > n) return state_->take_locally(std::move(r), n);
  return state_->decide(std::move(r), rate_verb::take, n, {}, one_try);
}

rate_decision rate_limiter::take_within(std::uint64_t n, const rate_key& key, wait_time wait,
                                        std::stop_token stop) {
  const auto& of = state_->of;
  auto& session = *of.session;
  auto r = state_->about(key, n);
  const engine::timed_call call(time_of(session, wait));
  reservation mine(session, of.config->name, std::move(r), n, wait);
  auto settled = engine::wait_until_settled(session, mine.owner(), mine, call, std::move(stop));
  if (settled) return mine.outcome();
  if (engine::was_given_up(settled.error().code)) return mine.refused();
  mine.give_back();
  of.fail(std::move(settled.error()));
}

pending<rate_decision> async_take(rate_limiter& of, std::uint64_t n, const rate_key& key,
                                  wait_limit limit, std::stop_token stop) {
  const auto& state = *detail::access::of(of);
  return state.begin([&] {
    auto r = state.about(key, n);
    auto o = state.of.request(limit, std::move(stop));
    o.time = time_of(*o.session, limit.wait());
    return pending<rate_decision>(
        std::make_shared<pending_take>(std::move(o), std::move(r), n, limit.wait()));
  });
}

namespace {

/// One command without a thread.
template <class T, class Outcome>
pending<T> decide_later(const rate_limiter::state& s, rate_limiter::state::request about,
                        rate_verb verb, std::uint64_t n, microseconds ahead, wait_limit limit,
                        Outcome outcome) {
  auto asks = std::make_unique<rate_request>(*s.of.session, s.of.config->name, std::move(about),
                                             verb, n, ahead);
  const auto owner = asks->owner();
  return engine::async_ask<T>(s.of.request(limit, {}), owner, std::move(asks),
                              [outcome](auto q) -> result<T> {
                                auto d = q->decided();
                                if (!d) return std::move(d.error());
                                q->heard_of();
                                return outcome(std::move(*d));
                              });
}

pending<done> refund_later(const rate_limiter::state& s, rate_limiter::state::request about,
                           std::uint64_t n) {
  return decide_later<done>(s, std::move(about), rate_verb::refund, n, {}, {},
                            [](const rate_decision&) { return done{}; });
}

microseconds reserved_ahead(microseconds longest_wait) {
  return std::clamp(longest_wait, microseconds::zero(), longest_ahead);
}

rate_decision looked_at(rate_decision d) {
  d.taken = d.wait == microseconds::zero();
  return d;
}

}  // namespace

pending<rate_decision> async_reserve(rate_limiter& of, std::uint64_t n, microseconds longest_wait,
                                     const rate_key& key) {
  const auto& s = *detail::access::of(of);
  return s.begin([&] {
    return decide_later<rate_decision>(s, s.about(key, n), rate_verb::take, n,
                                       reserved_ahead(longest_wait), one_try,
                                       [](rate_decision d) { return d; });
  });
}

pending<done> async_refund(rate_limiter& of, std::uint64_t n, const rate_key& key) {
  const auto& s = *detail::access::of(of);
  return s.begin([&] { return refund_later(s, s.about(key, n), n); });
}

pending<done> async_refund(rate_limiter& of, const rate_decision& taken, const rate_key& key) {
  const auto& s = *detail::access::of(of);
  return s.begin([&] { return refund_later(s, s.about_taken(key, taken), taken.tokens); });
}

pending<rate_decision> async_peek(const rate_limiter& of, std::uint64_t n, const rate_key& key) {
  const auto& s = *detail::access::of(of);
  return s.begin([&] {
    return decide_later<rate_decision>(s, s.about(key, n), rate_verb::inspect, n, {}, {},
                                       looked_at);
  });
}

rate_decision rate_limiter::reserve(std::uint64_t n, microseconds longest_wait,
                                    const rate_key& key) {
  return state_->decide(state_->about(key, n), rate_verb::take, n, reserved_ahead(longest_wait),
                        one_try);
}

void rate_limiter::refund(std::uint64_t n, const rate_key& key) {
  (void)state_->decide(state_->about(key, n), rate_verb::refund, n, {}, no_limit);
}

void rate_limiter::refund(const rate_decision& taken, const rate_key& key) {
  (void)state_->decide(state_->about_taken(key, taken), rate_verb::refund, taken.tokens, {},
                       no_limit);
}

rate_decision rate_limiter::peek(std::uint64_t n, const rate_key& key) const {
  return looked_at(state_->decide(state_->about(key, n), rate_verb::inspect, n, {}, no_limit));
}

void rate_limiter::change_rules(std::vector<rate_rule> rules, std::uint32_t version) {
  state_->replace_rules(std::move(rules), version);
}

const std::string& rate_limiter::name() const noexcept { return state_->of.config->name; }

}  // namespace holdfast
