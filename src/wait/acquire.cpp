#include "wait/acquire.hpp"

#include <algorithm>

#include "diagnose/trace.hpp"
#include "session/sealed_id.hpp"

namespace holdfast::engine {

using namespace std::chrono_literals;
using store::permits_outcome;
using store::permits_verb;

namespace {

/// The first few waiters of a queue poll by themselves. The others poll this seldom, only because a
/// notification may be lost.
constexpr std::uint32_t first_few = 3;
constexpr std::chrono::nanoseconds look_oneself = 30s;

// Whether this process needs the notification that another waiter wants the lock.
bool listens(const lock_config& s, const acquire_params& c) noexcept {
  return s.linger > s.linger.zero() || c.notify_when_wanted;
}

std::string describe(store::kind kind, std::uint32_t capacity) {
  std::string text = kind == store::kind::election ? "an " : "a ";
  text += to_string(kind);
  if (kind == store::kind::semaphore) text += " of " + std::to_string(capacity) + " permits";
  return text;
}

}  // namespace

acquisition::acquisition(session_impl& session, const lock_config& s, const acquire_params& c,
                         waker* w)
    : contender(s, w), session_(session), params_(c) {
  grant_.owner = session.new_owner();
  if (!store::passes_secrets(s.kind) || !session.can().secret_proves) return;
  grant_.secret = grant_.owner;
  grant_.owner = sealed(grant_.secret);
}

store::permits_command acquire_command(const session_impl& session, const lock_config& s,
                                       const acquire_params& how, const store::owner_id& owner,
                                       bool wait) noexcept {
  return {.verb = permits_verb::acquire,
          .owner = owner,
          .kind = s.kind,
          .capacity = s.capacity,
          .weight = how.weight,
          .priority = how.priority,
          .wait = wait,
          .lease_us = std::chrono::microseconds(s.lease).count(),
          .queue_lease_us = queue_lease.count(),
          .outlives_session = s.outlives_session,
          .in_order = s.in_order,
          .lingers = listens(s, how),
          .peer = session.peer(),
          .note = s.note};
}

store::permits_command acquisition::acquire_command(bool wait) noexcept {
  // Read before the request: a gap after that may have hidden a notification.
  gaps_ = session_.dispatcher().gaps();
  behind_ = {};
  return engine::acquire_command(session_, config_, params_, grant_.owner, wait);
}

// Returns nothing if another thread's request for this acquisition was answered already. At the
// last try, an answer that says "wait" is of no use, so the command is sent all the same. It is
// also sent if the answer was a grant, and the lease of that grant has ended since.
std::optional<store::named_command> acquisition::command(bool last) {
  const bool settled = answer_ && *answer_ && !**answer_;
  const bool ended = settled && grant_.valid_until <= session_.now();
  if (answer_ && !ended && (settled || !last)) return std::nullopt;
  answer_.reset();
  return store::named_command{config_.name, acquire_command(!last)};
}

request::answer acquisition::ask(bool) {
  auto kept = std::move(*answer_);
  answer_.reset();
  return kept;
}

result<bool> acquisition::ask_instead_of(const transferable& leaving) noexcept try {
  was_asked_ = true;
  auto c = acquire_command(true);
  c.replaces = leaving.owner();
  c.secret = leaving.secret();
  const call_limit until{saturated_add(local_queue_deadline(), last_answer_within)};
  const boot_time sent = session_.now();
  left_a_call() = false;
  auto reply = session_.permits(config_.name, c);
  left_behind_ = left_a_call();
  const result<bool> replaced = reply ? result<bool>(reply->replaced) : result<bool>(reply.error());
  answer_ = learn(std::move(reply), sent);
  return replaced;
} catch (...) {
  return without_memory(true);
}

result<lease> acquisition::let_in(local_queue::entry in, const time_frame& time,
                                  const std::stop_token& stop, waits& waited) {
  using entry = local_queue::entry;
  local_queue& at = *config_.local_queue;
  while (in == entry::passed) {
    waited.past_local_queue = session_.now();
    if (auto mine = hold::next_turn(take_passed(), waited, turn_)) return mine;
    in = turn_ ? entry::first : at.join(*this, time.deadline());
  }
  if (in == entry::waiting || in == entry::chosen) return lease{};
  if (in == entry::gone && stop.stop_requested()) return asked_to_stop();
  if (in != entry::first && in != entry::asked) return kept_out(in, config_, time.is_try());
  waited.past_local_queue = session_.now();
  if (!turn_) turn_.emplace(&at);
  return lease{};
}

status acquisition::win(dispatcher::registration& slot, const timed_call& call,
                        std::stop_token stop) {
  status settled = wait_until_settled(session_, slot, *this, call, std::move(stop));
  if (settled || !was_asked_) return settled;
  if (left_behind_)
    session_.keeper().abandon(config_.name, owner(), config_.lease);
  else
    leave_nothing_behind(session_, config_, owner(), settled.error());
  return settled;
}

lease acquisition::begin_lease(std::shared_ptr<session_impl> session,
                               std::shared_ptr<const lock_config> s, const waits& w) {
  lease mine = engine::begin_lease(std::move(session), std::move(s), params_, grant_, w);
  if (turn_) turn_->keep();
  return mine;
}

boot_time acquisition::put_off(boot_time now) {
  if (answer_ || now >= look_by_ || session_.dispatcher().gaps() != gaps_) return now;
  if (shared_lease_->losses() != losses_) return now;
  return shared_lease_->put_off(joined_, now);
}

// A waiter far from the front leaves polling to others: it is notified when its turn comes, or when
// that notification may have been lost.
void acquisition::keep_queue_lease(const store::permits_reply& queued, boot_time sent) {
  look_by_ = boot_time{};
  if (!session_.can().shared_queue_leases || !session_.can().notifications || !gaps_) return;
  const bool first = !shared_lease_;
  if (first) shared_lease_ = session_.shared_queue_leases().at(config_.name);
  const unsigned losses = shared_lease_->losses();
  const bool news = !first && queued.fresh && losses == losses_;
  losses_ = news ? shared_lease_->lost() : losses;
  if (first || queued.fresh) joined_ = sent;
  shared_lease_->seen(joined_, sent);
  if (queued.position > first_few) look_by_ = sent + jittered(look_oneself);
}

// Remembers what a later notification is checked against. A session that cannot rely on secrets
// ignores them: other sessions of the same store may pass secrets on where this one has to ask the
// store (for the replicas' acknowledgement, say).
void acquisition::stand_behind(const store::permits_reply& queued, boot_time sent) {
  behind_ = session_.can().secret_proves ? queued.behind : store::owner_id{};
  asked_at_ = sent;
  store_now_at_ = queued.now_at;
}

void acquisition::notified_before() {
  look_by_ = boot_time{};
  behind_ = {};
}

// Whether `n` proves that the owner ahead in the store's queue has released the lock. Its secret is
// unknown to all others until it releases. The store passes the secret on to the next waiter
// without a priority, which is this one as long as its own queue entry certainly exists. The first
// notification with the secret is genuine if none was missed, because others can read the secret
// only where it was sent. A second notification therefore proves nothing (ADR 97).
bool acquisition::proves(const store::notification& n) {
  if (n.what != store::notification_kind::granted || !n.secret || !behind_) return false;
  if (sealed(n.secret) != behind_) return false;
  behind_ = {};
  const bool here = session_.now() < lease_timer::sure_until(asked_at_, queue_lease);
  return here && session_.dispatcher().gaps() == gaps_;
}

// A lease without renewal cannot rely on a notification: the waiter asks the store again at once.
bool acquisition::notified(const store::notification& n) {
  look_by_ = boot_time{};
  if (!proves(n) || config_.outlives_session || !config_.renew) return false;
  if (!is_granted(n.fence, asked_at_, between(store_now_at_, n.expires_at))) return false;
  // The difference of two times of the store, whose clock may have been set forward in between. But
  // the grant is no older than the notification, and lasted for the claim at most.
  const auto claim = std::min<std::chrono::microseconds>(
      std::chrono::microseconds(session_.can().claim_us), config_.lease);
  grant_.valid_until = std::min(grant_.valid_until, lease_timer::sure_until(session_.now(), claim));
  if (grant_.valid_until <= session_.now()) return false;
  grant_.is_claim = true;
  session_impl::observe();
  return true;
}

// Records the grant: it lasts that long after the request was sent, by the store's time. Returns
// false if it has ended already.
bool acquisition::is_granted(std::uint64_t fence, boot_time sent, std::chrono::microseconds lasts) {
  grant_.fence = fence;
  grant_.valid_until = lease_timer::sure_until(sent, lasts);
  return grant_.valid_until > session_.now();
}

request::answer acquisition::learn(result<store::permits_reply> reply, boot_time sent) {
  if (!reply) {
    look_by_ = boot_time{};
    if (shared_lease_) shared_lease_->lost();
    return std::move(reply.error());
  }
  switch (reply->outcome) {
    case permits_outcome::granted: {
      // A grant far from the front, without a notification: the store lost the queue, and with it
      // the entries of the session's other waiters.
      if (look_by_ != boot_time{}) shared_lease_->lost();
      grant_.one_turn = reply->one_turn;
      if (!is_granted(reply->fence, sent, lease_of(*reply))) {
        return failure{errc::unavailable, "the store's answer came later than the lease lasts",
                       true};
      }
      return settled();
    }
    case permits_outcome::queued:
    case permits_outcome::busy: {
      keep_queue_lease(*reply, sent);
      stand_behind(*reply, sent);
      return ask_again(hint_of(session_, *reply));
    }
    case permits_outcome::kind_mismatch:
    case permits_outcome::capacity_mismatch:
      return mismatch_of(*reply, config_);
    default:
      return failure{errc::internal, "the store's answer does not fit the request"};
  }
}

wait_hint hint_of(const session_impl& session, store::permits_reply& reply) {
  wait_hint hint{std::chrono::microseconds(reply.retry_after_us), {}};
  // A fair store that notifies, and keeps leases in one record, tells each of the first few waiters
  // another time. At other stores all waiters have position 1, or poll often, or poll as often as
  // each other: after an outage they would ask together each time.
  const auto& can = session.can();
  const bool among_first = reply.position >= 1 && reply.position <= first_few;
  hint.alone = among_first && can.fair && can.notifications && can.shared_queue_leases;
  if (reply.position == 1 && session.can().sees_death) hint.watch = std::move(reply.blockers);
  return hint;
}

grant granted_to(const store::owner_id& owner, const store::permits_reply& reply, boot_time sent) {
  return {owner, reply.fence, lease_timer::sure_until(sent, lease_of(reply))};
}

lease begin_lease(std::shared_ptr<session_impl> session, std::shared_ptr<const lock_config> s,
                  const acquire_params& c, const grant& g, const waits& w) {
  const auto& its = session->for_holds();
  return hold::start(std::make_shared<hold>(std::move(session), its, std::move(s), c, g, w));
}

failure mismatch_of(const store::permits_reply& reply, const lock_config& s) {
  const bool kind = reply.outcome == permits_outcome::kind_mismatch;
  return {kind ? errc::kind_mismatch : errc::capacity_mismatch,
          "the name is in use as " + describe(reply.found.kind, reply.found.capacity) +
              ", and this is " + describe(s.kind, s.capacity) +
              ": choose another name, or the same kind and capacity everywhere"};
}

// After a definite refusal of the last try nothing is left. Otherwise the store may have granted
// the request, or may keep a queue entry.
bool leaves_nothing(const failure& why) noexcept {
  if (why.outcome_unknown) return false;
  return is_in_vain(why.code) || why.code == errc::kind_mismatch ||
         why.code == errc::capacity_mismatch || why.code == errc::forked;
}

bool left_to_keeper(const failure& why) noexcept {
  return why.code == errc::unavailable || why.outcome_unknown;
}

void leave_nothing_behind(session_impl& session, const lock_config& s, const store::owner_id& owner,
                          const failure& why) {
  if (leaves_nothing(why)) return;
  if (!left_to_keeper(why) && !session.out_of_time()) {
    const call_limit until{saturated_add(session.now(), last_answer_within)};
    if (session.permits(s.name, release_command(owner))) return;
  }
  session.keeper().abandon(s.name, owner, s.lease);
}

failure gave_up(session_impl& session, const lock_config& s, const time_frame& time, failure f) {
  session.tell({.kind = f.code == errc::busy ? event_kind::busy : event_kind::gave_up,
                .name = s.name,
                .lock_kind = to_string(s.kind),
                .waited = session.now() - time.began(),
                .code = f.code,
                .detail = f.what});
  return f;
}

status ready(session_impl& session, const lock_config& s, const acquire_params& c) {
  if (auto usable = session.usable(); !usable) return usable;
  if (auto keeper = session.keeper().start(); !keeper) return keeper;
  return listens(s, c) ? session.idle_lock_timer().start() : done{};
}

// A thread that has just arrived does not take the turn of those that wait.
lease idle_lease(const lock_config& s, const waits& w) {
  auto idle = s.local_queue ? s.local_queue->take_idle(s) : nullptr;
  if (!idle) return {};
  std::optional<local_turn> of_the_first_waiter;
  return hold::next_turn(std::move(idle), w, of_the_first_waiter);
}

failure kept_out(local_queue::entry why, const lock_config& s, bool is_try) {
  if (why == local_queue::entry::overloaded) {
    return {errc::overloaded,
            "as many threads of this process as max_waiters allows wait for the lock already: " +
                std::to_string(s.max_waiters)};
  }
  return waited_in_vain(is_try);
}

namespace {

// Goes through the local queue, which hands over the lock that the process holds already, or gives
// this thread its turn at the store.
result<lease> acquire_in_turn(const std::shared_ptr<session_impl>& session,
                              const std::shared_ptr<const lock_config>& s, const acquire_params& c,
                              const timed_call& call, std::stop_token stop) {
  waits w{call.began(), call.began()};
  const boot_time deadline = call.deadline();
  acquisition a(*session, *s, c);
  // Before the local queue: when a holder of this process acquires on this thread's behalf, the
  // grant may arrive before this thread is awake.
  dispatcher::registration slot(session->dispatcher(), a.owner());
  if (local_queue* const at = s->local_queue.get()) {
    auto mine = a.let_in(at->join(a, deadline), call, stop, w);
    while (mine && !*mine && !a.has_turn()) {
      mine = a.let_in(at->sleep(a, deadline, stop), call, stop, w);
    }
    if (!mine || *mine) return mine;
  }
  return or_abandon(*session, *s, a.owner(), [&]() -> result<lease> {
    if (auto won = a.win(slot, call, std::move(stop)); !won) return won.error();
    return a.begin_lease(session, s, w);
  });
}

result<lease> acquire_untraced(const std::shared_ptr<session_impl>& session,
                               const std::shared_ptr<const lock_config>& s, const acquire_params& c,
                               const timed_call& call, std::stop_token stop) {
  if (auto can = ready(*session, *s, c); !can) return std::move(can.error());
  if (stop.stop_requested()) return gave_up(*session, *s, call, trace::judged(asked_to_stop()));
  if (auto mine = idle_lease(*s, {call.began(), call.began()})) return mine;
  auto got = acquire_in_turn(session, s, c, call, std::move(stop));
  if (!got) return gave_up(*session, *s, call, trace::judged(got.error()));
  return got;
}

}  // namespace

result<lease> acquire(const std::shared_ptr<session_impl>& session,
                      const std::shared_ptr<const lock_config>& s, const acquire_params& c,
                      const timed_call& call, std::stop_token stop) {
  std::optional<trace> seen;
  if (s->traced) stop = seen.emplace(session, *s, c, call.wait(), std::move(stop)).stop();
  auto got = acquire_untraced(session, s, c, call, std::move(stop));
  if (got && seen) trace::got(*got);
  return got;
}

result<grant> acquire_permit(session_impl& session, const lock_config& s, wait_time wait,
                             std::stop_token stop) {
  if (auto can = ready(session, s, {}); !can) return std::move(can.error());
  const timed_call call(session.now(), wait);
  acquisition a(session, s, {});
  dispatcher::registration slot(session.dispatcher(), a.owner());
  const auto won =
      or_abandon(session, s, a.owner(), [&] { return a.win(slot, call, std::move(stop)); });
  if (!won) return gave_up(session, s, call, won.error());
  return a.granted();
}

}  // namespace holdfast::engine
