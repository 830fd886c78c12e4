#include <algorithm>
#include <deque>
#include <holdfast/barrier.hpp>
#include <holdfast/semaphore.hpp>
#include <list>
#include <mutex>
#include <optional>

#include "primitive/common.hpp"
#include "primitive/thread_number.hpp"
#include "wait/async_forms.hpp"

namespace holdfast {

using namespace std::chrono_literals;
using primitive::subject;
using store::permits_outcome;
using store::permits_verb;

namespace {

/// How long a participant that has dropped out is remembered without use.
constexpr std::chrono::microseconds dropped_for = 24h;

/// How long the destructor of a barrier waits for the release of its participants, if the store
/// reports no time-outs, or has shorter ones.
constexpr std::chrono::milliseconds leaves_for = 1s;

void check_count(const subject& of, std::uint32_t count) {
  if (count >= 1 && count <= static_cast<std::uint32_t>(barrier::max())) return;
  of.fail({errc::invalid_argument,
           "a barrier is for 1 to 10,000 participants, not " + std::to_string(count)});
}

failure broken() {
  return {errc::lost,
          "the barrier is broken: a participant died, was paused for longer than its lease, or was "
          "taken away by an operator; the next arrival begins anew, with the whole count"};
}

// No answer came while the store knew of the arrival. So the phase may have been completed as well.
failure not_known_any_more(const std::string& why) {
  return {errc::lost,
          why +
              ": the arrival may have counted, and the phase may be completed or broken; the next "
              "arrival begins anew",
          true};
}

failure lease_ended() {
  return not_known_any_more("no answer to this arrival came before the participant's lease ended");
}

// The phase is broken, or all participants have left, this one with an arrive_and_drop().
failure store_forgot() {
  return not_known_any_more(
      "the answer to this arrival was lost, and the store does not know the arrival any more");
}

failure no_arrival() {
  return {errc::invalid_argument,
          "this arrival was waited for, or moved from, or its phase broke: arrive again"};
}

failure too_many(std::uint32_t count) {
  return {errc::capacity_mismatch,
          "all " + std::to_string(count) +
              " participants are there already: nothing was changed; give all of them the right "
              "count, or wait until one of them has gone"};
}

failure mismatch(const store::permits_reply& reply, std::uint32_t count) {
  if (reply.outcome == permits_outcome::kind_mismatch)
    return primitive::in_use_as(reply.found.kind);
  return {errc::capacity_mismatch,
          "the barrier was made for " + std::to_string(reply.found.capacity) +
              " participants, not " + std::to_string(count) + ": use the same count everywhere"};
}

/// A participant between two arrivals.
struct participation {
  std::shared_ptr<engine::hold> kept{};  ///< its lease; null before its first arrival
  store::owner_id next{};  ///< its next arrival, if that was sent and may have been carried out
  boot_time next_until{};  ///< until when the store knows that arrival, if it was carried out
  bool completed = false;  ///< the phase is completed, and it only has to notify the others
  bool phase_over = true;  ///< false: it has arrived, and has not waited for the others
  primitive::thread_number of = primitive::no_thread;  ///< the thread that arrived for it
};

/// While a participant takes part, it is in a list of its own, so that returning it to the list of
/// resting participants takes no memory.
using participations = std::list<participation>;

/// A first arrival that may have been carried out, though its thread got no answer. The keeper
/// releases it, but perhaps not before the thread arrives again.
struct unanswered {
  primitive::thread_number of;
  store::owner_id arrival;
};
constexpr std::size_t most_unanswered = 64;  ///< the keeper releases older ones, too

}  // namespace

struct barrier::state {
  subject of;
  const std::uint32_t count;
  const std::function<void()> on_completion;
  std::mutex mutex;
  participations resting;
  std::deque<unanswered> in_doubt;

  state(const session& s, const std::string& name, std::uint32_t n, barrier_options o)
      : of(s, "barrier", name, {.lease = o.lease}, store::kind::barrier, n,
           &store::capabilities::barrier),
        count(n),
        on_completion(std::move(o.on_completion)) {
    check_count(of, n);
  }

  // A release that fails now is sent later by the keeper, or the lease ends.
  ~state() {
    if (resting.empty() || of.session->forked()) return;
    auto& keeper = of.session->keeper();
    for (const auto& p : resting) keeper.remove(*p.kept);
    try {
      leave();
    } catch (...) {
      // No memory: the keeper releases them.
    }
    for (const auto& p : resting) {
      keeper.abandon(of.config->name, p.kept->owner(), of.config->lease);
      if (p.next) keeper.abandon(of.config->name, p.next, of.config->lease);
    }
  }

  /// Releases all participants; those whose release the store has confirmed leave the list. Waits
  /// for the store as long as a try does.
  void leave() {
    const std::chrono::milliseconds a_try(of.session->can().try_takes_ms);
    const engine::call_limit until{saturated_add(of.session->now(), std::max(a_try, leaves_for))};
    std::vector<store::named_command> all;
    for (const auto& p : resting) {
      all.push_back({of.config->name, engine::release_command(p.kept->owner())});
      if (p.next) all.push_back({of.config->name, engine::release_command(p.next)});
    }
    const auto told = of.session->permits(all);
    auto reply = told.begin();
    resting.remove_if([&](const participation& p) {
      const bool left = (reply++)->ok();
      return p.next ? (reply++)->ok() && left : left;
    });
  }

  /// Returns this thread's own participant, if its last arrival got no answer, or if the thread has
  /// not waited for it: with another participant the thread would count twice in that phase.
  /// Otherwise returns a participant whose phase is over, or a new one: the participants of other
  /// threads have arrived already.
  participations take() {
    const auto me = primitive::this_thread_number();
    const auto has_arrived = [](const participation& p) { return !p.phase_over || p.next; };
    participations one;
    if (of.session->forked()) return one.emplace_back(), one;  // the mutex may be the parent's
    const std::lock_guard guard{mutex};
    const auto own = std::find_if(resting.begin(), resting.end(), [&](const participation& p) {
      return p.of == me && has_arrived(p);
    });
    const auto free = std::find_if_not(resting.begin(), resting.end(), has_arrived);
    if (const auto best = own != resting.end() ? own : free; best != resting.end()) {
      one.splice(one.end(), resting, best);
    } else {
      one.emplace_back();
    }
    return one;
  }
  /// Takes a participant of another thread, if there is no room for a new one: that thread may have
  /// ended. Does not take one whose last arrival got no answer while the store knew it: its queue
  /// entry has ended, and its own thread has to report that.
  std::optional<participation> take_of_another() {
    const boot_time now = of.session->now();
    const std::lock_guard guard{mutex};
    const auto other = std::find_if(resting.rbegin(), resting.rend(), [&](const participation& p) {
      return !p.next || now <= p.next_until;
    });
    if (other == resting.rend()) return std::nullopt;
    participation one = std::move(*other);
    resting.erase(std::next(other).base());
    return one;
  }
  void put(participations& p) noexcept {
    if (of.session->forked()) return;  // an arrival of the parent's that ends in its child
    const std::lock_guard guard{mutex};
    resting.splice(resting.end(), p);
  }
  /// Returns this thread's arrival that got no answer; empty if there is none.
  store::owner_id take_unanswered() {
    if (of.session->forked()) return {};
    const std::lock_guard guard{mutex};
    const auto mine = std::find_if(
        in_doubt.begin(), in_doubt.end(),
        [me = primitive::this_thread_number()](const unanswered& u) { return u.of == me; });
    if (mine == in_doubt.end()) return {};
    const auto arrival = mine->arrival;
    in_doubt.erase(mine);
    return arrival;
  }
  void put_unanswered(const unanswered& u) noexcept try {
    if (of.session->forked()) return;
    const std::lock_guard guard{mutex};
    if (in_doubt.size() == most_unanswered) in_doubt.pop_front();
    in_doubt.push_back(u);
  } catch (...) {
    // No memory: the keeper releases it all the same.
  }
  void complete() const noexcept {
    const engine::call_limit users{engine::call_limit::none::at_all};
    on_completion();
  }
};

/// One participant in one phase: arrives, notifies the others if it was the last, and waits for
/// them.
struct barrier::round final : engine::request {
  enum class until { arrived, released };
  enum class comes_again { yes, no };

  round(std::shared_ptr<state> of, comes_again again)
      : of_(std::move(of)), one_(of_->take()), who_(one_.front()) {
    const auto& s = *of_->of.config;
    const std::chrono::microseconds lease = s.lease;
    command_.verb = permits_verb::acquire;
    command_.owner = session().new_owner();
    go_on_with_the_unanswered();
    command_.kind = s.kind;
    command_.capacity = s.capacity;
    command_.wait = true;
    command_.lease_us = lease.count();
    command_.outlives_session = again == comes_again::no;
    command_.queue_lease_us = command_.outlives_session ? dropped_for.count() : lease.count();
    command_.lingers = of_->on_completion && !who_.completed;
    command_.peer = session().peer();
    command_.note = s.note;
    if (who_.kept) command_.replaces = who_.kept->owner();
    try {
      if (!who_.phase_over) begin_with_the_last_phase();
      if (!next_) give_back_the_unanswered();
    } catch (...) {  // no memory: a participant that has arrived stays the barrier's
      if (who_.kept) of_->put(one_);
      throw;
    }
  }

  ~round() override {
    if (over_) return;
    const bool in_vain = gives_back();
    if (in_vain) of_->put_unanswered({thread_, command_.owner});
    if (!arrived_ && !in_vain) {
      who_.next = in_doubt_ ? command_.owner : store::owner_id{};
      who_.next_until = known_until_;
    }
    if (who_.kept) {
      who_.of = thread_;
      of_->put(one_);
    } else if (!in_vain && !session().forked() && tried_) {
      abandon();
    }
  }

  engine::session_impl& session() const noexcept { return *of_->of.session; }
  const store::owner_id& owner() const noexcept {
    return gives_back() ? next_->owner : command_.owner;
  }
  void wait_for(until what) noexcept { until_ = what; }
  /// Whether its phase broke, and that was reported.
  bool over() const noexcept { return over_; }
  bool known() const noexcept override { return released_ && !over_; }

  std::optional<store::named_command> command(bool) override {
    if (released_ || forgotten()) return std::nullopt;
    tried_ = true;
    if (replaces_what_it_has()) session().keeper().remove(*who_.kept);
    was_in_doubt_ = std::exchange(in_doubt_, true);  // until the answer arrives
    if (!was_in_doubt_) {
      known_until_ = engine::lease_timer::sure_until(session().now(),
                                                     std::chrono::microseconds(command_.lease_us));
    }
    // The keeper renews the lease. If the renewals do not get through, this request renews it.
    if (command_.verb == permits_verb::renew) command_.wait = is_kept();
    return store::named_command{of_->of.config->name, command_};
  }
  std::string in_vain() const override {
    if (arrived_by_now_ == 0) return "not all had arrived";
    return std::to_string(arrived_by_now_) + " of " + std::to_string(of_->count) +
           " participants had arrived";
  }
  answer ask(bool) override {
    if (released_) return settled();
    return given_up();
  }
  answer learn(result<store::permits_reply> reply, boot_time sent) override {
    in_doubt_ = was_in_doubt_;
    if (!reply) return not_answered(std::move(reply.error()));
    if (gives_back()) return on_with_the_next();
    in_doubt_ = in_doubt_ || reply->repeated;
    if (forgotten() && is_of_a_place(reply->outcome)) return given_up();
    const bool was_in_doubt = std::exchange(in_doubt_, false);
    if (only_asks() && !is_kept()) return soon();
    switch (reply->outcome) {
      case permits_outcome::granted:
        keep(sent);
        if (reply->position != 1 || !command_.lingers) return on_released();
        return call_the_others();
      case permits_outcome::queued:
        keep(sent);
        return on_arrived(*reply);
      case permits_outcome::done:  // the last participant, and none of them comes again
        return end(), settled();
      case permits_outcome::absent:
        return end(), was_in_doubt && !arrived_ ? store_forgot() : broken();
      case permits_outcome::busy:
        return stand_in() ? soon() : refused(too_many(of_->count));
      default:
        return refused(mismatch(*reply, of_->count));
    }
  }

 private:
  static answer soon() { return ask_again({1us, {}}); }

  bool is_kept() const noexcept {
    return who_.kept && who_.kept->owner() == command_.owner &&
           who_.kept->state() == lease_state::held;
  }
  bool only_asks() const noexcept { return command_.verb == permits_verb::renew && command_.wait; }

  // The lease of the last arrival ends with this one. It is not renewed from the moment at which
  // that may be carried out: the store's answer that it does not know it any more would not mean a
  // loss.
  bool replaces_what_it_has() const noexcept {
    return who_.kept && command_.replaces && who_.kept->owner() == command_.replaces;
  }
  void keep_what_it_has() {
    if (replaces_what_it_has()) session().keeper().add(who_.kept);
  }
  failure not_answered(failure f) {
    in_doubt_ = in_doubt_ || f.outcome_unknown;
    if (!in_doubt_) keep_what_it_has();
    return f;
  }
  failure refused(failure f) {
    over_ = !who_.kept;
    keep_what_it_has();
    return f;
  }

  // An arrival without an answer is repeated while the store knows it, if it was carried out. After
  // that it would count once more, in a phase that its participant is not in.
  bool arrives() const noexcept { return command_.verb == permits_verb::acquire; }
  bool forgotten() const noexcept {
    return in_doubt_ && arrives() && session().now() > known_until_;
  }
  void go_on_with_the_unanswered() noexcept {
    in_doubt_ = static_cast<bool>(who_.next);
    if (!in_doubt_) return;
    command_.owner = who_.next;
    known_until_ = who_.next_until;
  }
  static bool is_of_a_place(permits_outcome o) noexcept {
    return o == permits_outcome::granted || o == permits_outcome::queued ||
           o == permits_outcome::busy || o == permits_outcome::absent;
  }
  void abandon() {
    session().keeper().abandon(of_->of.config->name, command_.owner, of_->of.config->lease);
    of_->put_unanswered({thread_, command_.owner});
  }
  // A repetition may have been carried out late; the keeper releases what it counted.
  answer given_up() {
    auto unknown = lease_ended();
    abandon();
    end();
    return unknown;
  }

  // Takes another participant's place. Nothing has been changed at the store, so the owner id of
  // this arrival is unused.
  bool stand_in() {
    if (who_.kept) return false;
    auto other = of_->take_of_another();
    if (!other) return false;
    who_ = std::move(*other);
    command_.replaces = who_.kept->owner();
    go_on_with_the_unanswered();
    command_.lingers = of_->on_completion && !who_.completed;
    if (!who_.phase_over) begin_with_the_last_phase();
    return true;
  }

  // The participant has not waited for its last phase: waits for that one first.
  void begin_with_the_last_phase() {
    next_ = std::make_unique<store::permits_command>(command_);
    command_.verb = permits_verb::renew;
    command_.owner = who_.kept->owner();
    command_.queue_lease_us = command_.lease_us;
    command_.replaces = {};
    arrived_ = true;
  }

  // Otherwise a thread that arrives again would count twice, also as another participant. The new
  // arrival gets its own owner id, because a release under way may come late.
  void give_back_the_unanswered() {
    if (session().forked()) return;
    const auto arrival = of_->take_unanswered();
    if (!arrival) return;
    next_ = std::make_unique<store::permits_command>(command_);
    command_ = engine::release_command(arrival);
  }
  bool gives_back() const noexcept { return command_.verb == permits_verb::release; }
  answer on_with_the_next() {
    command_ = *std::exchange(next_, nullptr);
    arrived_ = false;
    go_on_with_the_unanswered();
    return soon();
  }

  // The lease of a participant begins with each arrival; the one before has ended with it. It also
  // begins anew if its own renewals did not get through, but the store reports that the participant
  // is still there.
  void keep(boot_time sent) {
    const bool kept = arrived_ && who_.kept && who_.kept->owner() == command_.owner;
    if (kept && who_.kept->state() == lease_state::held) return;
    auto& keeper = session().keeper();
    if (!kept) {
      arrived_ = true;
      if (who_.kept) keeper.remove(*who_.kept);
      who_ = {};
      if (command_.outlives_session && !command_.lingers) return;
    }
    const auto& config = of_->of.config;
    const boot_time valid_until = engine::lease_timer::sure_until(sent, config->lease);
    const engine::grant g{command_.owner, 0, valid_until};
    auto anew =
        std::make_shared<engine::hold>(of_->of.session, of_->of.session->for_holds(), config,
                                       engine::acquire_params{}, g, engine::waits{sent, sent});
    if (kept) keeper.remove(*who_.kept);
    who_.kept = std::move(anew);
    keeper.add(who_.kept);
  }

  // Notifies the others at once, even if this was the last try: they wait for it.
  answer call_the_others() {
    of_->complete();
    command_.replaces = std::exchange(command_.owner, session().new_owner());
    command_.lingers = arrived_ = false;
    who_.completed = true;
    const auto call = command(true);
    const boot_time sent = session().now();
    return learn(session().permits(call->name, call->command), sent);
  }

  answer on_arrived(store::permits_reply& reply) {
    if (command_.verb == permits_verb::acquire && command_.outlives_session)
      return end(), settled();
    command_.verb = permits_verb::renew;
    who_.phase_over = false;
    arrived_by_now_ = reply.position;
    if (until_ == until::arrived && !next_) return settled();
    engine::wait_hint hint{std::chrono::microseconds(reply.retry_after_us), {}};
    if (session().can().sees_death) hint.watch = std::move(reply.blockers);
    return std::optional<engine::wait_hint>{std::move(hint)};
  }

  answer on_released() {
    who_.phase_over = true;
    if (next_) return on_with_the_next();
    return released_ = true, settled();
  }

  void end() {
    if (who_.kept) session().keeper().remove(*who_.kept);
    who_ = {};
    over_ = released_ = true;
  }

  const std::shared_ptr<state> of_;
  participations one_;
  participation& who_;
  store::permits_command command_;
  std::unique_ptr<store::permits_command> next_;  ///< the command that follows the present one
  const primitive::thread_number thread_ = primitive::this_thread_number();
  until until_ = until::released;
  std::uint32_t arrived_by_now_ = 0;  ///< participants, at the last answer
  bool tried_ = false;
  bool in_doubt_ = false;  ///< it is unknown whether an arrival without an answer was carried out
  bool was_in_doubt_ = false;  ///< the value before the last request
  boot_time known_until_{};    ///< until when the store knows the arrival, if it was carried out
  bool arrived_ = false;
  bool released_ = false;
  bool over_ = false;
};

namespace {

/// Throws any failure but time-outs.
bool carry_out(const subject& of, barrier::round& r, barrier::round::until what, wait_time wait,
               std::stop_token stop) {
  auto& session = *of.session;
  if (auto can = engine::ready(session, *of.config, {}); !can) of.fail(std::move(can.error()));
  r.wait_for(what);
  return of.settled(
      engine::wait_until_settled(session, r.owner(), r, {session.now(), wait}, std::move(stop)));
}

/// The same without a thread.
template <class T, class Pointer, class Outcome>
pending<T> carry_out_later(const barrier& b, Pointer r, barrier::round::until what, Outcome outcome,
                           wait_limit limit, std::stop_token stop) {
  r->wait_for(what);
  const auto owner = r->owner();
  return engine::async_ask<T>(detail::access::of(b)->of.request(limit, std::move(stop)), owner,
                              std::move(r), outcome);
}

std::unique_ptr<barrier::round> new_round(const barrier& b, barrier::round::comes_again again) {
  return std::make_unique<barrier::round>(detail::access::of(b), again);
}

}  // namespace

barrier::barrier(session s, const std::string& name, std::uint32_t count, barrier_options options)
    : state_(std::make_shared<state>(s, name, count, std::move(options))) {}
barrier::~barrier() = default;

barrier::arrival barrier::arrive() {
  auto mine = new_round(*this, round::comes_again::yes);
  (void)carry_out(state_->of, *mine, round::until::arrived, no_limit, {});
  return detail::access::make<arrival>(std::move(mine));
}

void barrier::arrive_and_wait() { wait(arrive()); }

void barrier::arrive_and_drop() {
  round last(state_, round::comes_again::no);
  (void)carry_out(state_->of, last, round::until::arrived, no_limit, {});
}

bool barrier::wait_within(arrival& mine, wait_time wait, std::stop_token stop) const {
  auto& r = detail::access::of(mine);
  if (!r || r->over()) state_->of.fail(no_arrival());
  const bool over =
      r->known() || carry_out(state_->of, *r, round::until::released, wait, std::move(stop));
  if (over) r.reset();
  return over;
}

pending<done> async_arrive_and_wait(barrier& b, wait_limit limit, std::stop_token stop) {
  return carry_out_later<done>(b, new_round(b, barrier::round::comes_again::yes),
                               barrier::round::until::released, engine::nothing_more, limit,
                               std::move(stop));
}

pending<barrier::arrival> async_arrive(barrier& b, wait_limit limit, std::stop_token stop) {
  const auto arrived = [](auto mine) -> result<barrier::arrival> {
    return detail::access::make<barrier::arrival>(std::move(mine));
  };
  return carry_out_later<barrier::arrival>(b, new_round(b, barrier::round::comes_again::yes),
                                           barrier::round::until::arrived, arrived, limit,
                                           std::move(stop));
}

pending<done> async_wait(const barrier& b, barrier::arrival mine, wait_limit limit,
                         std::stop_token stop) {
  auto& r = detail::access::of(mine);
  if (!r || r->over()) detail::access::of(b)->of.fail(no_arrival());
  return carry_out_later<done>(b, std::move(r), barrier::round::until::released,
                               engine::nothing_more, limit, std::move(stop));
}

pending<done> async_wait(const barrier& b, std::shared_ptr<barrier::arrival> mine, wait_limit limit,
                         std::stop_token stop) {
  auto* const r = mine ? detail::access::of(*mine).get() : nullptr;
  if (r == nullptr || r->over()) detail::access::of(b)->of.fail(no_arrival());
  const auto waited = [mine](const auto&) -> status {
    detail::access::of(*mine).reset();
    return done{};
  };
  return carry_out_later<done>(b, std::shared_ptr<barrier::round>(std::move(mine), r),
                               barrier::round::until::released, waited, limit, std::move(stop));
}

pending<done> async_arrive_and_drop(barrier& b, wait_limit limit, std::stop_token stop) {
  return carry_out_later<done>(b, new_round(b, barrier::round::comes_again::no),
                               barrier::round::until::arrived, engine::nothing_more, limit,
                               std::move(stop));
}

pending<done> async_enter(double_barrier& b, wait_limit limit, std::stop_token stop) {
  return async_arrive_and_wait(detail::access::of(b), limit, std::move(stop));
}
pending<done> async_leave(double_barrier& b, wait_limit limit, std::stop_token stop) {
  return async_arrive_and_wait(detail::access::of(b), limit, std::move(stop));
}

std::uint32_t barrier::count() const noexcept { return state_->count; }
const std::string& barrier::name() const noexcept { return state_->of.config->name; }

barrier::arrival::arrival() noexcept = default;
barrier::arrival::arrival(std::unique_ptr<round> of) noexcept : state_(std::move(of)) {}
barrier::arrival::arrival(arrival&&) noexcept = default;
barrier::arrival& barrier::arrival::operator=(arrival&&) noexcept = default;
barrier::arrival::~arrival() = default;

}  // namespace holdfast
