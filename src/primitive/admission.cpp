#include <holdfast/admission.hpp>

#include "primitive/multi_member.hpp"
#include "primitive/rate_limiter_state.hpp"
#include "wait/acquire_many.hpp"

namespace holdfast {

using namespace std::chrono_literals;
using store::permits_outcome;
using store::rate_outcome;

namespace {

constexpr std::string_view operation = "admission";
/// The shortest pause between two requests of a waiter for tokens.
constexpr std::chrono::microseconds shortest_look = 1ms;

/// The permit and the tokens, as one request. Tokens that it took are given back if the caller was
/// not told of them.
class entry final : public engine::request {
 public:
  entry(const engine::wanted& permits, const engine::lock_config& limiter,
        rate_limiter::state::request r, std::uint64_t n, const engine::time_frame& time)
      : session_(*permits.session),
        what_(permits.what),
        how_(permits.how),
        limiter_(limiter.name),
        request_(std::move(r)),
        time_(time),
        owner_(session_.new_owner()),
        take_(request_.command(store::rate_verb::take, owner_, n)) {}
  entry(const entry&) = delete;
  entry& operator=(const entry&) = delete;
  ~entry() override { give_back_tokens(); }

  answer ask(bool last) override {
    const bool waits = !last || waited_;
    if (given_back_) take_.owner = session_.new_owner(), given_back_ = false;
    const auto asks = engine::acquire_command(session_, *what_, how_, owner(), waits);
    waited_ = waits;
    const boot_time sent = session_.now();
    auto both = session_.admit({what_->name, asks}, limiter_, take_);
    if (!both) return std::move(both.error());
    if (both->permits.outcome != permits_outcome::granted) return on_no_permit(both->permits);
    store::keep_due(request_.choices, *both->tokens);
    took_ = both->tokens->outcome == rate_outcome::granted;
    auto tokens = primitive::decision(request_, *both->tokens, count());
    if (!tokens) return std::move(tokens.error());
    found.rate = std::move(*tokens);
    if (!found.rate) return on_no_tokens();
    return on_both(both->permits, sent);
  }

  std::string in_vain() const override {
    if (found.why == refused_by::tokens) return "there are not enough tokens";
    return request::in_vain();
  }
  const store::owner_id& owner() const noexcept { return owner_; }

  /// Refunds the tokens that were taken. A store counts one refund for each id, so the next try
  /// takes its tokens under another id.
  void give_back_tokens() noexcept {
    if (!std::exchange(took_, false)) return;
    found.rate.taken = false;
    session_.refund(limiter_, take_);
    given_back_ = true;
  }

  /// Whether it may be in the queue for the permits, or have been granted from there.
  bool waited() const noexcept { return waited_; }

  admitted given(std::shared_ptr<engine::session_impl> session, const engine::waits& waited) {
    found.permit = engine::begin_lease(std::move(session), what_, how_, grant_, waited);
    took_ = false;
    return std::move(found);
  }

  /// The result so far, with the reason for waiting.
  admitted found{{}, refused_by::permits, {}};

 private:
  std::uint64_t count() const noexcept { return static_cast<std::uint64_t>(take_.tokens); }

  answer on_no_permit(store::permits_reply& reply) {
    if (reply.outcome != permits_outcome::queued && reply.outcome != permits_outcome::busy) {
      return engine::mismatch_of(reply, *what_);
    }
    found.why = refused_by::permits;
    found.rate = {};
    return ask_again(engine::hint_of(session_, reply));
  }

  answer on_no_tokens() {
    found.why = refused_by::tokens;
    // A try has no deadline.
    if (!time_.is_try() && saturated_add(session_.now(), found.rate.wait) > time_.deadline()) {
      return failure{errc::timed_out, "the tokens would have come after the deadline"};
    }
    return ask_again({std::max(found.rate.wait, shortest_look), {}});
  }

  answer on_both(const store::permits_reply& reply, boot_time sent) {
    grant_ = engine::granted_to(owner(), reply, sent);
    if (grant_.valid_until <= session_.now()) {
      give_back_tokens();  // the next try takes its own
      return failure{errc::unavailable, "the store's answer came later than the lease lasts", true};
    }
    found.why = refused_by::nothing;
    return settled();
  }

  engine::session_impl& session_;
  const std::shared_ptr<const engine::lock_config> what_;
  const engine::acquire_params how_;
  const std::string limiter_;
  rate_limiter::state::request request_;
  const engine::time_frame time_;
  const store::owner_id owner_;
  store::rate_command take_;
  bool took_ = false;
  bool given_back_ = false;  ///< under the present id
  engine::grant grant_{};
  bool waited_ = false;
};

/// The asynchronous form. A refusal is a decision, not a failure.
class pending_entry final : public engine::telling_wait<engine::pending_wait, admitted> {
 public:
  pending_entry(engine::async_request o, std::unique_ptr<entry> e)
      : telling_wait(std::move(o)), entry_(std::move(e)) {}
  const store::owner_id& owner() const noexcept override { return entry_->owner(); }

 private:
  engine::request& asked() override { return *entry_; }
  void won(std::shared_ptr<engine::session_impl> session) override {
    tell(entry_->given(std::move(session), waited_));
  }
  std::optional<store::named_command> leaving(const failure& why) override {
    entry_->give_back_tokens();
    if (engine::leaves_nothing(why) && !entry_->waited()) return std::nullopt;
    return release_of(why);
  }
  void leave_to_keeper() noexcept override {
    entry_->give_back_tokens();
    abandon();
  }
  failure observed(failure f) override {
    return engine::gave_up(session_, *config_, time_, std::move(f));
  }
  void fail(failure f) override {
    if (engine::is_in_vain(f.code)) return tell(std::move(entry_->found));
    tell(std::move(f));
  }

  const std::unique_ptr<entry> entry_;
};

}  // namespace

struct admission::state {
  rate_limiter::state& limiter;
  engine::wanted permits;

  [[noreturn]] void fail(failure f) const {
    throw_failure(permits.session->located(std::move(f), operation, permits.what->name));
  }

  void check() const {
    if (permits.session != limiter.of.session) {
      fail({errc::invalid_argument,
            "the semaphore and the rate_limiter are on different sessions: one step needs one"});
    }
    if (permits.what->name == limiter.of.config->name) {
      fail({errc::invalid_argument, "the semaphore and the rate_limiter have the same name"});
    }
  }

  // A wait that only reached its time limit ends with a decision, not with a failure.
  result<admitted> refused(entry& e, const engine::time_frame& time, failure why) const {
    auto& session = *permits.session;
    e.give_back_tokens();
    const failure called_off{errc::cancelled, {}};
    const bool stands = e.waited() && !engine::left_to_keeper(why);
    if (e.was_asked())
      engine::leave_nothing_behind(session, *permits.what, e.owner(), stands ? called_off : why);
    why = engine::gave_up(session, *permits.what, time, std::move(why));
    if (!engine::was_given_up(why.code)) return why;
    return std::move(e.found);
  }
};

admission::admission(rate_limiter& tokens, const multi_member& permits)
    : state_(new state{*detail::access::of(tokens), detail::access::of(permits)->asks}) {
  state_->permits.what = primitive::without_local_queue(*state_->permits.what);
  state_->check();
}

admission::~admission() = default;

admitted admission::admit_within(std::uint64_t n, const rate_key& key, wait_time wait,
                                 std::stop_token stop) {
  auto& [limiter, permits] = *state_;
  auto request = limiter.about(key, n);
  auto& session = *permits.session;
  if (auto can = engine::ready(session, *permits.what, permits.how); !can) {
    state_->fail(std::move(can.error()));
  }
  const engine::timed_call call(session.now(), wait);
  entry e(permits, *limiter.of.config, std::move(request), n, call);
  auto ask = [&, &permits = permits]() -> result<admitted> {
    auto settled = engine::wait_until_settled(session, e.owner(), e, call, std::move(stop));
    if (settled) return e.given(permits.session, {call.began(), call.began()});
    return state_->refused(e, call, std::move(settled.error()));
  };
  auto how = engine::or_abandon(session, *permits.what, e.owner(), ask);
  if (!how) state_->fail(std::move(how.error()));
  return std::move(*how);
}

pending<admitted> async_admit(admission& door, std::uint64_t n, const rate_key& key,
                              wait_limit limit, std::stop_token stop) {
  auto& [limiter, permits] = *detail::access::of(door);
  return limiter.begin([&, &permits = permits, &limiter = limiter] {
    engine::async_request o{permits.session, permits.what,
                            operation,       {permits.session->now(), limit.wait()},
                            std::move(stop), permits.how};
    auto e = std::make_unique<entry>(permits, *limiter.of.config, limiter.about(key, n), n, o.time);
    return pending<admitted>(std::make_shared<pending_entry>(std::move(o), std::move(e)));
  });
}

}  // namespace holdfast
