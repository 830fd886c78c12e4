#include "lease/hold.hpp"

#include "base/losses.hpp"
#include "base/names.hpp"
#include "session/store_client.hpp"

namespace holdfast::engine {

using store::permits_outcome;
using store::permits_verb;

hold::hold(std::shared_ptr<session_impl> session, const hold_services& its,
           std::shared_ptr<const lock_config> s, const acquire_params& c, const grant& g,
           const waits& w)
    : hold(std::move(session), its, std::move(s), c, g, w, its.client.now()) {}

hold::hold(std::shared_ptr<session_impl> session, const hold_services& its,
           std::shared_ptr<const lock_config> s, const acquire_params& c, const grant& g,
           const waits& w, boot_time now)
    : renewable(lease_timer(
          {s->lease, s->renew, saturated_add(now, saturated_nanoseconds(s->max_hold)), g.is_claim},
          now, g.valid_until)),
      session_(std::move(session)),
      client_(its.client),
      keeper_(its.keeper),
      config_(std::move(s)),
      lease_(config_->lease),
      may_last_(config_->lease),
      weight_(c.weight),
      owner_(g.owner),
      secret_(g.secret),
      fence_(public_fence(g.fence)),
      stays_until_(g.one_turn ? now : saturated_add(now, config_->local_time)),
      ends_at_(saturated_add(now, saturated_nanoseconds(config_->max_hold))),
      in_local_queue_(config_->local_queue != nullptr),
      began_(w.began),
      past_local_queue_(w.past_local_queue),
      since_(now) {
  publish();
}

lease hold::start(std::shared_ptr<hold> self) {
  self->keeper_.add(self);
  self->announce(event_kind::acquired);
  return lease(std::move(self));
}

// No caller gets a lease that is in doubt already: the thread asks the store itself. If the lease
// is lost, no thread had a turn that could be lost.
lease hold::next_turn(std::shared_ptr<transferable> passed, const waits& w,
                      std::optional<local_turn>& turn) {
  auto self = std::static_pointer_cast<hold>(std::move(passed));
  const lease_state so_far = self->state(w.past_local_queue);
  const bool lost = so_far == lease_state::lost;
  if (lost || so_far == lease_state::suspect) {
    if (self->leaves_local_queue()) turn.emplace(self->config_->local_queue.get());
    lost ? self->forget() : self->give_back_soon(self->client_.now());
    return {};
  }
  self->began_.store(w.began, std::memory_order_relaxed);
  self->past_local_queue_.store(w.past_local_queue, std::memory_order_relaxed);
  self->since_.store(w.past_local_queue, std::memory_order_relaxed);
  ++self->turn_;
  // A store without fences has none for the next thread, either.
  if (self->fence() != 0) self->fence_.store(self->fence() + 1, std::memory_order_relaxed);
  self->forget_loss();
  self->announce(event_kind::acquired);
  return lease(std::move(self));
}

bool hold::fits(const lock_config& wanted) const noexcept {
  const lock_config& mine = *config_;
  return &mine == &wanted || (mine.lease == wanted.lease && mine.renew == wanted.renew &&
                              mine.max_hold == wanted.max_hold && mine.note == wanted.note &&
                              mine.local_time == wanted.local_time &&
                              mine.unconfirmed_release == wanted.unconfirmed_release);
}

// Whether the hold may be passed to another thread or linger. A limit or a change that was meant
// for one turn must not carry over to the next. A lease that has ended is not kept either, so that
// its release reports the loss.
bool hold::may_be_kept(boot_time now) const noexcept {
  if (now >= valid_until_.load(std::memory_order_relaxed)) return false;
  const bool plain = config_->renew && config_->max_hold == std::chrono::milliseconds::max() &&
                     extending_ == 0 && lease_.load(std::memory_order_relaxed) == config_->lease;
  return plain && (fence() & last_local_fence) != last_local_fence &&
         state_.load(std::memory_order_acquire) == lease_state::held;
}

bool hold::stays_in_process(boot_time now) const noexcept {
  return now < stays_until_ && may_be_kept(now);
}

bool hold::lingers(boot_time now) const noexcept {
  return config_->linger > std::chrono::nanoseconds::zero() && may_be_kept(now);
}

void hold::publish() noexcept {
  valid_until_.store(timer_.valid_until(), std::memory_order_relaxed);
  if (state_.load(std::memory_order_relaxed) != lease_state::released) {
    state_.store(timer_.state(), std::memory_order_release);
  }
}

// Not in the class: with GCC 12 and gold, a program that calls one of these would define it without
// the thunk that the table of virtual functions needs.
const store::owner_id& hold::owner() const noexcept { return owner_; }
unsigned hold::turn() const noexcept { return turn_.load(); }

boot_time hold::session_now() const noexcept { return client_.now(); }

lease_state hold::state(boot_time now) const noexcept {
  const lease_state s = state_.load(std::memory_order_acquire);
  if (s == lease_state::lost || s == lease_state::released) return s;
  if (client_.forked()) return lease_state::lost;
  return now < valid_until_.load(std::memory_order_relaxed) ? s : lease_state::lost;
}

std::chrono::nanoseconds hold::remaining() const noexcept {
  const lease_state s = state();
  if (s == lease_state::lost || s == lease_state::released) return {};
  const auto left = valid_until_.load(std::memory_order_relaxed) - client_.now();
  return std::max(left, std::chrono::nanoseconds::zero());
}

// Returns a copy, so that users' callbacks run without the mutex.
std::stop_source hold::loss() {
  const std::lock_guard guard{loss_mutex_};
  if (!lost_) lost_.emplace();
  loss_asked_.store(true, std::memory_order_relaxed);
  return *lost_;
}

std::optional<std::stop_source> hold::loss_if_asked() noexcept {
  const std::lock_guard guard{loss_mutex_};
  return lost_;
}

// A loss that is reported at this very moment is visible in the state.
void hold::forget_loss() {
  if (!loss_asked_.load(std::memory_order_relaxed)) return;
  const std::lock_guard guard{loss_mutex_};
  lost_.reset();
  loss_asked_.store(false, std::memory_order_relaxed);
}

std::stop_token hold::lost_token() {
  if (client_.forked()) return lost_in_a_child();
  std::stop_source source = loss();
  if (state() == lease_state::lost) source.request_stop();
  return source.get_token();
}

void hold::check() const {
  const lease_state s = state();
  if (s == lease_state::held || s == lease_state::suspect) return;
  if (auto u = client_.usable(); !u) {
    fail(std::move(u.error()), "check");
  }
  fail({errc::lost,
        "the lease has ended, and another holder may have the lock: stop the work. The "
        "resource refuses this fence once the next holder has written"},
       "check");
}

store::named_command hold::renewal() const { return {name(), command(permits_verb::renew)}; }

// Otherwise the store would reserve the lock beyond its end by max_hold.
std::chrono::milliseconds hold::within_max_hold(std::chrono::milliseconds lease) const noexcept {
  if (ends_at_ == forever) return lease;
  const std::chrono::milliseconds step{client_.can().lease_step_ms};
  return std::min(lease, lease_timer::lasting(ends_at_ - client_.now(), step));
}

store::permits_command hold::command(permits_verb verb) const noexcept {
  const auto lease_us =
      std::chrono::microseconds(within_max_hold(lease_.load(std::memory_order_relaxed))).count();
  return {.verb = verb,
          .owner = owner_,
          .kind = config_->kind,
          .capacity = config_->capacity,
          .weight = weight_.load(std::memory_order_relaxed),
          .lease_us = lease_us,
          .queue_lease_us = lease_us,
          .secret = verb == permits_verb::release ? secret_ : store::owner_id{},
          .peer = client_.peer()};
}

namespace {
failure no_longer_held() {
  return {errc::lost, "the store no longer knows this hold: its lease ended, or it was taken away"};
}

failure released_before() {
  return {errc::not_owner, "the lease was given back before it could be extended"};
}

status outcome_of(const result<store::permits_reply>& released) noexcept try {
  if (!released) return released.error();
  return released->outcome == permits_outcome::done ? status(done{}) : status(no_longer_held());
} catch (...) {
  return released ? failure{errc::lost, "no memory"} : without_memory(true);
}
}  // namespace

// An extension must not outlast its user's turn. A release ends the turn, and then checks for
// extensions under way. An extension announces itself, and then checks whether the turn is over. So
// at least one of them sees the other.
status hold::extend(std::chrono::milliseconds lease, unsigned of_turn) {
  if (auto u = client_.usable(); !u) return u;
  struct extending {
    explicit extending(std::atomic<unsigned>& n) : count(n) { ++count; }
    ~extending() { --count; }
    std::atomic<unsigned>& count;
  } const while_it_lasts(extending_);
  return extend_now(lease, of_turn);
}

status hold::extend_now(std::chrono::milliseconds lease, unsigned of_turn) {
  if (lease == lease.zero()) lease = lease_.load(std::memory_order_relaxed);
  if (auto ok = base::check_lease(lease, client_.can()); !ok) return ok;
  lease = within_max_hold(lease);
  auto c = command(permits_verb::renew);
  c.lease_us = std::chrono::microseconds(lease).count();
  keeper::begun_renewal begun(keeper_, *this);
  const boot_time sent = client_.now();
  if (!in_turn(of_turn)) {
    begun.ends().not_renewed(*this);
    return lost_in(of_turn) ? no_longer_held() : released_before();
  }
  if (state() == lease_state::lost) {  // so that the store does not extend a lease that nobody has
    begun.ends().gone(*this, losses::lease_ended);
    return no_longer_held();
  }
  // If the store extends the lease, and the answer is lost, the store keeps it for that long at
  // most.
  const boot_time before = keeper_.shorten(*this, sent, lease);
  may_last_.store(std::max(may_last_.load(std::memory_order_relaxed), lease),
                  std::memory_order_relaxed);
  const auto reply = client_.permits(name(), c);
  const bool extended = reply && reply->outcome == permits_outcome::granted;
  if (!reply && !reply.error().outcome_unknown) keeper_.restore(*this, before);
  if (extended) {
    lease_.store(lease, std::memory_order_relaxed);
    may_last_.store(lease, std::memory_order_relaxed);
  }
  begun.ends().answered(*this, sent, reply);
  if (!reply) return reply.error();
  if (!extended) return lost_in(of_turn) ? no_longer_held() : released_before();
  return state() == lease_state::lost ? status(no_longer_held()) : status(done{});
}

// A callback for the loss may release the lease, which also releases the session.
void hold::extend_or_throw(std::chrono::milliseconds lease) {
  const auto kept = session_;
  auto extended = extend(lease, turn());
  if (!extended) fail(std::move(extended.error()), "extend");
}

void hold::fail(failure f, std::string_view operation) const {
  throw_failure(client_.located(std::move(f), operation, name()));
}

result<store::permits_command> hold::to_resize(std::uint32_t weight) const {
  if (auto u = client_.usable(); !u) return std::move(u.error());
  const lease_state now = state();
  if (now == lease_state::lost) return no_longer_held();
  if (now == lease_state::released) return failure{errc::not_owner, "the lease was released"};
  auto c = command(permits_verb::resize);
  c.weight = weight;
  return c;
}

result<bool> hold::resized(std::uint32_t weight, const store::permits_reply& reply) {
  if (reply.outcome == permits_outcome::busy) {
    if (weight >= weight_) return false;
    return failure{errc::internal, "the store refused a smaller weight than this lease has"};
  }
  if (reply.outcome != permits_outcome::granted) {
    keeper_.gone(*this, losses::taken_away);
    return no_longer_held();
  }
  weight_.store(weight, std::memory_order_relaxed);
  fence_.store(public_fence(reply.fence), std::memory_order_relaxed);
  if (state() == lease_state::lost) return no_longer_held();
  return true;
}

bool hold::give_up_stronger_than(std::uint32_t weight) noexcept {
  if (weight_.load(std::memory_order_relaxed) <= weight) return false;
  return keeper_.in_doubt(*this);
}

// Acquires for the next waiter of this process, if one is queued, in the same step of the store. If
// the request is abandoned unanswered, the store may carry it out later, and would grant the lock
// to nobody; so the keeper releases it.
std::optional<status> hold::tell_store(const ending& e, wants w) {
  local_turn turn(leaves_local_queue() ? config_->local_queue.get() : nullptr);
  if (contender* const next = turn.take_next()) {
    const auto replaced = next->ask_instead_of(*this);
    turn.hand_to(*next);
    if (client_.callers().call_for(owner_)) abandon();
    if (!replaced) return replaced.error();
    return *replaced ? status(done{}) : status(no_longer_held());
  }
  // A store may wait for the answer, or to send the request, for longer than a caller with a limit.
  if (!config_->unconfirmed_release || w == wants::answer || client_.may_be_left()) {
    auto told = outcome_of(client_.permits(name(), command(permits_verb::release)));
    if (client_.callers().call_for(owner_)) abandon();
    return told;
  }
  tell_later(e);
  return std::nullopt;
}

// Once the release is on its way, the next request of this process follows it.
void hold::tell_later(const ending& e) {
  client_.permits_later(name(), command(permits_verb::release),
                        [self = shared_from_this(), e](result<store::permits_reply> reply) {
                          (void)self->ended(e, outcome_of(reply));
                        });
}

// Admits no user after the loss was reported, because the report contained the number of users.
bool hold::add_user() noexcept {
  const auto open = [](unsigned users) { return users > 0 && users < loss_told; };
  unsigned users = users_.load(std::memory_order_relaxed);
  while (open(users) &&
         !users_.compare_exchange_weak(users, users + 1, std::memory_order_acquire)) {
  }
  return open(users);
}

lease hold::joined(std::shared_ptr<hold> self, boot_time began) {
  if (self->client_.options().observer) {
    event e = self->about(event_kind::acquired);
    e.waited = e.waited_in_local_queue = self->client_.now() - began;
    self->client_.tell(e);
  }
  return lease(std::move(self));
}

void hold::leave_unseen(std::shared_ptr<hold> self) noexcept {
  const boot_time now = self->client_.now();
  (void)joined(std::move(self), now);
}

/// Keeps what the event of a release needs of a hold that another thread may end at once.
class hold::left_behind final : public departure {
 public:
  explicit left_behind(const hold& h) : hold_(h) {}

  void about_to_leave() noexcept override {
    session_ = hold_.session_;
    config_ = hold_.config_;
    since_ = hold_.since_.load(std::memory_order_relaxed);
    released_.emplace(hold_.described(event_kind::released));
  }
  void tell(store_client& to) {
    released_->held = to.now() - since_;
    to.tell(*released_);
  }

 private:
  const hold& hold_;
  std::shared_ptr<session_impl> session_;
  std::shared_ptr<const lock_config> config_;
  boot_time since_{};
  std::optional<event> released_;
};

status hold::release(std::shared_ptr<hold> self, wants w) noexcept try {
  if (self->traced()) forget_own(*self);
  if (self->client_.forked()) return self->not_released({errc::forked, ""});
  if (!self->config_->local_queue) return leave_group(std::move(self), w);
  ++self->turn_;
  hold& here = *self;
  left_behind event_of{here};
  auto& client = here.client_;
  const bool observed = client.options().observer != nullptr;
  std::shared_ptr<transferable> over = std::move(self);
  // If this returns true, another thread may have ended the hold. Then only event_of keeps the
  // session, if there is an observer.
  if (!here.config_->local_queue->pass_on(over, observed ? &event_of : nullptr)) {
    return here.end(was::in_use, w);
  }
  if (observed) event_of.tell(client);
  return done{};
} catch (...) {
  return failure{errc::internal, ""};
}

// After this user has left, the last user may destroy the hold. A user that leaves before the loss
// is reported has not lost the hold.
status hold::leave_group(std::shared_ptr<hold> self, wants w) {
  auto& client = self->client_;
  const auto session_lives = self->session_;
  if (self->state() == lease_state::lost) self->announce_lost(losses::ended_with_users);
  event released = self->about(event_kind::released);
  const unsigned before = self->users_.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & ~loss_told) == 1) return self->end(was::in_use, w);
  if ((before & loss_told) != 0) return self->not_released({errc::lost, ""});
  client.tell(released);
  return done{};
}

status hold::end(was what, wants w) noexcept {
  given_back_.store(true, std::memory_order_release);
  const auto session_lives = std::move(session_);
  keeper_.remove(*this);
  const ending e{what, state() == lease_state::lost, client_.now()};
  std::optional<status> told;
  left_a_call() = false;
  try {
    told = tell_store(e, w);
  } catch (...) {
    told.emplace(without_memory(true));
  }
  // The caller does not wait for an idle lock: its release goes on, and has not failed so far.
  if (what == was::idle && left_a_call()) {
    abandon();
    told.emplace(done{});
  }
  return told ? ended(e, std::move(*told)) : status(done{});
}

status hold::end_all(std::span<const std::shared_ptr<hold>> all) noexcept {
  for (const auto& h : all) {
    if (h->client_.forked()) return h->not_released({errc::forked, ""});
  }
  try {
    return end_together(all);
  } catch (...) {
    return end_each(all);
  }
}

// Used if there is no memory for a batch. Holds of a batch that was sent have been reported
// already.
status hold::end_each(std::span<const std::shared_ptr<hold>> all) noexcept {
  status first = done{};
  for (const auto& h : all) {
    if (h->session_) note_release(first, h->end(was::in_use));
  }
  return first;
}

// If it throws, no hold of this session has ended yet.
status hold::end_together(std::span<const std::shared_ptr<hold>> all) {
  const auto session = all.empty() ? nullptr : all.front()->session_;
  if (!session) return end_each(all);
  std::vector<std::shared_ptr<hold>> of_one, others;
  for (const auto& h : all) (h->session_ == session ? of_one : others).push_back(h);
  std::vector<store::named_command> releases;
  std::vector<ending> endings;
  releases.reserve(of_one.size());
  endings.reserve(of_one.size());
  for (const auto& h : of_one) {
    h->given_back_.store(true, std::memory_order_release);
    h->keeper_.remove(*h);
    endings.push_back({was::in_use, h->state() == lease_state::lost, h->client_.now()});
    releases.push_back({h->name(), h->command(permits_verb::release)});
    h->session_.reset();
  }
  std::vector<result<store::permits_reply>> replies;
  try {
    replies = of_one.front()->client_.permits(releases);
  } catch (...) {
    replies.clear();
  }
  status first = done{};
  for (std::size_t i = 0; i < of_one.size(); ++i) {
    status told = i < replies.size() ? outcome_of(replies[i]) : status(without_memory(true));
    note_release(first, of_one[i]->ended(endings[i], std::move(told)));
  }
  note_release(first, end_all(others));
  return first;
}

status hold::ended(const ending& e, status told) noexcept {
  state_.store(e.was_lost ? lease_state::lost : lease_state::released, std::memory_order_release);
  ended_.store(e.at, std::memory_order_relaxed);
  const unsigned leases = e.what == was::in_use ? 1 : 0;
  const bool not_told = !told && told.error().code != errc::lost;
  if (not_told) abandon();
  if (e.was_lost || (!told && !not_told)) {
    tell_lost(e.was_lost ? losses::ended_at_release : losses::gone_at_release, leases);
    return not_released({errc::lost, ""});
  }
  if (not_told) {
    announce(event_kind::release_failed, &told.error(), {}, leases);
    return not_released(std::move(told.error()));
  }
  if (e.what == was::in_use) announce(event_kind::released);
  return done{};
}

failure hold::not_released(failure why) const noexcept {
  const errc code = why.code;
  try {
    return client_.located(std::move(why), "release", name());
  } catch (...) {
    return {code, ""};  // no memory: only the code is known
  }
}

// Called by the thread that reports the loss: the keeper's, which must not wait for the store.
void hold::forget() noexcept {
  given_back_.store(true, std::memory_order_release);
  const auto session_lives = std::move(session_);
  keeper_.remove(*this);
  abandon();
}

// The holder may have released the lock since, which reached the store.
void hold::give_back_lost(bool once_more) noexcept {
  if (once_more || !given_back_.load(std::memory_order_acquire)) abandon();
}

void hold::abandon() noexcept {
  keeper_.abandon(name(), owner_, may_last_.load(std::memory_order_relaxed));
}

// Does not read the clock, which is half the cost of an event.
event hold::described(event_kind kind) const noexcept {
  const boot_time began = began_.load(std::memory_order_relaxed);
  return {.kind = kind,
          .name = name(),
          .lock_kind = to_string(config_->kind),
          .fence = fence(),
          .waited = since_.load(std::memory_order_relaxed) - began,
          .waited_in_local_queue = past_local_queue_.load(std::memory_order_relaxed) - began};
}

event hold::about(event_kind kind) const noexcept {
  event e = described(kind);
  if (kind == event_kind::acquired) return e;
  const boot_time ended = ended_.load(std::memory_order_relaxed);
  e.held = (ended == forever ? client_.now() : ended) - since_.load(std::memory_order_relaxed);
  return e;
}

void hold::announce(event_kind kind, const failure* why, std::chrono::nanoseconds margin,
                    unsigned leases) noexcept {
  if (!client_.options().observer) return;
  event e = about(kind);
  e.margin = margin;
  e.leases = leases;
  if (why != nullptr) {
    e.code = why->code;
    e.detail = why->what;
  }
  client_.tell(e);
}

// After its user's release a lingering lock belongs to no lease.
void hold::announce_lost(std::string_view why) noexcept {
  const bool idle = turn_ % 2 == 1;
  tell_lost(why, idle ? 0 : std::max(users(), 1U));
}

// Only the thread that finds the loss first reports it. A hold that seemed idle then may be in the
// middle of a release: the release counts that lease.
bool hold::is_first_to_tell(unsigned leases) noexcept {
  unsigned told = told_lost_.load();
  while (told == 0 || (told == 1 && leases > 0)) {
    if (told_lost_.compare_exchange_weak(told, leases + 1)) return true;
  }
  return false;
}

void hold::tell_lost(std::string_view why, unsigned leases) noexcept {
  if (config_->local_queue) {
    if (!is_first_to_tell(leases)) return;
  } else {
    const unsigned users = users_.fetch_or(loss_told, std::memory_order_acq_rel);
    if ((users & loss_told) != 0) return;
    leases = std::max(users, 1U);
  }
  {
    const call_limit users{call_limit::none::at_all};
    if (auto asked = loss_if_asked()) asked->request_stop();
  }
  event e = about(event_kind::lost);
  e.code = errc::lost;
  e.detail = why;
  e.leases = leases;
  client_.tell(e);
  // The store may have carried out an extension whose answer was lost, and then keeps the lock long
  // after its end here.
  if (may_last_.load(std::memory_order_relaxed) > lease_.load(std::memory_order_relaxed))
    give_back_lost(false);
  // Threads of this process that are queued behind it must not wait for a holder that has lost the
  // lock.
  if (leaves_local_queue()) config_->local_queue->leave();
}

}  // namespace holdfast::engine
