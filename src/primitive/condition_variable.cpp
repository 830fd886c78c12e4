#include <holdfast/condition_variable.hpp>

#include "base/names.hpp"
#include "primitive/common.hpp"
#include "wait/async_forms.hpp"

namespace holdfast {

using namespace std::chrono_literals;
using primitive::subject;
using store::permits_outcome;
using store::permits_verb;

namespace {

store::permits_command notification(const engine::lock_config& of, std::uint32_t most) {
  return {.verb = permits_verb::notify, .kind = of.kind, .capacity = of.capacity, .weight = most};
}

/// Wakes another waiter. If the store does not confirm it, the keeper sends it later: that waiter
/// sleeps until then.
void wake_another(engine::session_impl& session, const engine::lock_config& of) {
  const auto one = notification(of, 1);
  bool told = false;
  try {
    told = session.permits(of.name, one).ok();
  } catch (...) {  // no memory
    session.keeper().send_again(of.name, one);
    throw;
  }
  if (!told) session.keeper().send_again(of.name, one);
}

/// A queue entry: from before the mutex is released until the waiter is woken.
class turn final : public engine::request {
 public:
  turn(engine::session_impl& session, std::shared_ptr<const engine::lock_config> what)
      : session_(session),
        config_(std::move(what)),
        command_(engine::acquire_command(session, *config_, {}, session.new_owner(), true)) {
    command_.lease_us = command_.queue_lease_us;
  }
  const store::owner_id& owner() const noexcept { return command_.owner; }

  /// The first command queues the waiter, and in_line() says whether that settles the request.
  /// Later commands ask whether the waiter was woken.
  std::optional<store::named_command> command(bool) override {
    return store::named_command{config_->name, command_};
  }
  answer learn(result<store::permits_reply> reply, boot_time) override {
    if (!reply) return std::move(reply.error());
    if (mismatches(*reply)) return mismatch(*reply);
    const bool stands = reply->outcome == permits_outcome::queued;
    const bool first = std::exchange(command_.verb, permits_verb::renew) == permits_verb::acquire;
    if ((first && in_line()) || !stands) return settled();
    return ask_again(engine::hint_of(session_, *reply));
  }

  /// Waits until the waiter is queued, the first time; then until it is woken. If the wait fails,
  /// it leaves the queue.
  // The time limit applies to the waiting only. However long it takes, the mutex has to be acquired
  // again, and a waiter that was woken needlessly has to wake another.
  status waits(engine::dispatcher::registration& slot, boot_time until, std::stop_token stop) try {
    const auto frame = engine::time_frame::until(session_.now(), until);
    status settled = engine::wait_until_settled(session_, slot, *this, engine::timed_call(frame),
                                                std::move(stop));
    if (settled || !was_asked()) return settled;
    // It is unknown whether the waiter is queued. The mutex is still held, and must not be kept
    // until the store answers.
    if (command_.verb == permits_verb::acquire)
      abandon();
    else
      leave();
    return settled;
  } catch (...) {  // no memory
    leave_or_abandon();
    throw;
  }

  // A queue entry that stays behind expires within seconds.
  void leave() {
    const auto reply = session_.permits(config_->name, engine::release_command(command_.owner));
    if (!reply) return abandon();
    const bool owes = owed().has_value();
    // An abandoned call could be carried out later, and queue the waiter again.
    if (session_.callers().call_for(command_.owner)) abandon();
    if (owes && reply->outcome == permits_outcome::absent) pass_on();
  }
  void abandon() noexcept {
    session_.keeper().abandon(config_->name, command_.owner, engine::queue_lease, owed());
  }
  void pass_on() const { wake_another(session_, *config_); }
  /// The same when there may be no memory for it.
  void leave_or_abandon() noexcept try { leave(); } catch (...) {
    abandon();
  }
  /// The command that wakes another waiter, if this one was woken and does not go on: the store has
  /// removed its entry. If the entry is absent when the waiter leaves, an answer that was lost may
  /// have woken it. One wake-up too many is allowed.
  std::optional<store::permits_command> owed() noexcept {
    const bool stood = command_.verb == permits_verb::renew && !mutex_;
    if (!stood || std::exchange(passed_on_, true)) return std::nullopt;
    return notification(*config_, 1);
  }

  static bool mismatches(const store::permits_reply& reply) {
    return reply.outcome == permits_outcome::kind_mismatch ||
           reply.outcome == permits_outcome::capacity_mismatch;
  }
  static failure mismatch(const store::permits_reply& reply) {
    return primitive::in_use_as(
        reply.found.kind,
        "give the condition_variable a name of its own, other than that of its mutex");
  }

  /// Sets the lease of the mutex, which is released when the waiter is queued.
  void gives_up(lease mutex) { mutex_ = std::move(mutex); }
  const lease& gives_up() const noexcept { return mutex_; }

 private:
  // Called when the waiter is queued. Returns true if that settles the request. The asynchronous
  // form does not settle here: it has the lease of the mutex, and releases it now.
  bool in_line() {
    if (!mutex_) return true;
    mutex_ = {};
    return false;
  }

  engine::session_impl& session_;
  const std::shared_ptr<const engine::lock_config> config_;
  store::permits_command command_;
  lease mutex_;
  bool passed_on_ = false;
};

/// Calls the receiver when the mutex is held again.
class relock final : public detail::receiver<lease> {
 public:
  /// `by` is the session of the condition `of`; without it the wait ran out of time.
  static void begin(engine::async_request o, std::shared_ptr<engine::session_impl> by,
                    std::shared_ptr<const engine::lock_config> of, detail::receiver<woken>& to) {
    auto again = std::unique_ptr<relock>(new relock(std::move(by), std::move(of), to));
    try {
      engine::async_acquire(std::move(o)).start(*again);
    } catch (...) {
      again->pass_on();
      throw;
    }
    (void)again.release();
  }
  std::stop_token stop() const noexcept override { return to_.stop(); }
  void receive(result<lease> mutex) noexcept override {
    const std::unique_ptr<relock> self(this);
    if (!mutex) pass_on();
    if (!mutex) return to_.receive(std::move(mutex.error()));
    to_.receive(
        woken{std::move(*mutex), by_ ? std::cv_status::no_timeout : std::cv_status::timeout});
  }

 private:
  relock(std::shared_ptr<engine::session_impl> by, std::shared_ptr<const engine::lock_config> of,
         detail::receiver<woken>& to)
      : by_(std::move(by)), of_(std::move(of)), to_(to) {}
  // Wakes another waiter on another thread, so that this waiter need not wait for that. Without
  // memory the other waiter finds out when its wait ends.
  void pass_on() const noexcept try {
    if (!by_) return;
    const auto call = [by = by_, of = of_]() noexcept {
      try {
        wake_another(*by, *of);
      } catch (...) {
        return;
      }
    };
    if (!by_->callers().start({}, call)) call();
  } catch (...) {
    return;
  }
  const std::shared_ptr<engine::session_impl> by_;
  const std::shared_ptr<const engine::lock_config> of_;
  detail::receiver<woken>& to_;
};

/// The asynchronous wait: is queued, releases the mutex, is woken, and acquires the mutex again.
class pending_turn final : public engine::telling_wait<engine::pending_wait, woken> {
 public:
  pending_turn(engine::async_request o, lease mutex)
      : telling_wait(std::move(o)),
        mutex_session_(engine::hold::behind(mutex)->session()),
        mutex_(engine::hold::behind(mutex)->what()),
        turn_(session_, config_) {
    turn_.gives_up(std::move(mutex));
  }
  const store::owner_id& owner() const noexcept override { return turn_.owner(); }

 private:
  engine::request& asked() override { return turn_; }

  next come_in() override {
    if (turn_.gives_up().state() != lease_state::lost) return at_store();
    return end({errc::lost, "the mutex was lost before the wait began: nothing was changed"});
  }
  void won(std::shared_ptr<engine::session_impl> session) override {
    lock_again(std::move(session));
  }
  std::optional<store::named_command> leaving(const failure&) override {
    return store::named_command{config_->name, engine::release_command(owner())};
  }
  std::optional<store::permits_command> owed() noexcept override { return turn_.owed(); }
  void leave_to_keeper() noexcept override {
    if (receiver_ != nullptr) turn_.leave_or_abandon();
  }
  void let_go() override { turn_.gives_up({}); }
  void fail(failure f) override {
    turn_.gives_up({});
    // Also if the store never confirmed that the waiter is queued: its time is over.
    if (engine::is_in_vain(f.code)) return lock_again(nullptr);
    tell(std::move(f));
  }

  // `woken_by`: the condition's session if the waiter was woken, else null.
  void lock_again(std::shared_ptr<engine::session_impl> woken_by) {
    const engine::call_limit unlimited{engine::call_limit::none::at_all};
    auto session = mutex_session_.lock();
    if (!session) {
      if (woken_by) turn_.pass_on();
      return tell(session_.located(mutex_gone(), tried(), config_->name));
    }
    // Not owned if it is the mutex's session as well, which exists until the new wait has ended.
    if (woken_by == session) woken_by = {std::shared_ptr<void>{}, session.get()};
    relock::begin({session, mutex_, "mutex", {session->now(), no_limit}, stop_},
                  std::move(woken_by), config_, *receiver_);
    receiver_ = nullptr;
  }
  static failure mutex_gone() {
    return {errc::cancelled,
            "the session of the mutex ended during this wait: keep that session, or an object "
            "that uses it, until the wait ends"};
  }

  // A pending wait does not keep a session alive.
  const std::weak_ptr<engine::session_impl> mutex_session_;
  const std::shared_ptr<const engine::lock_config> mutex_;
  turn turn_;
};

/// The result of a wait that holds the mutex again.
std::cv_status ended(const subject& of, status woken) {
  if (woken) return std::cv_status::no_timeout;
  const errc why = woken.error().code;
  if (engine::is_in_vain(why)) return std::cv_status::timeout;
  if (why == errc::cancelled) return std::cv_status::no_timeout;
  of.fail(std::move(woken.error()));
}

result<std::uint32_t> woken_by(const store::permits_reply& reply) {
  if (turn::mismatches(reply)) return turn::mismatch(reply);
  return reply.position;
}

pending<std::uint32_t> notify_later(const subject& of, std::uint32_t most) {
  return of.ask_later<std::uint32_t>(notification(*of.config, most), woken_by);
}

}  // namespace

struct condition_variable::state {
  subject of;
};

condition_variable::condition_variable(session s, const std::string& name)
    : state_(new state{subject(s, "condition_variable", name, {}, store::kind::condition_variable,
                               base::max_permits, &store::capabilities::barrier)}) {}
condition_variable::~condition_variable() = default;

const std::string& condition_variable::name() const noexcept { return state_->of.config->name; }

boot_time condition_variable::deadline(wait_time wait) const {
  return saturated_add(state_->of.session->now(), wait);
}

std::uint32_t condition_variable::notify_all() { return notify(base::max_permits); }

std::uint32_t condition_variable::notify(std::uint32_t most) {
  return state_->of.ask(notification(*state_->of.config, most), woken_by);
}

pending<std::uint32_t> async_notify_one(condition_variable& of) {
  return notify_later(detail::access::of(of)->of, 1);
}
pending<std::uint32_t> async_notify_all(condition_variable& of) {
  return notify_later(detail::access::of(of)->of, base::max_permits);
}

pending<woken> async_wait(condition_variable& of, lease held, wait_limit limit,
                          std::stop_token stop) {
  const subject& about = detail::access::of(of)->of;
  const auto* const mutex = engine::hold::behind(held);
  if (mutex == nullptr || mutex->what()->kind != store::kind::mutex) {
    about.fail({errc::not_owner,
                "waiting needs the lease of a mutex: acquire it, and check before you wait"});
  }
  return pending<woken>(
      std::make_shared<pending_turn>(about.request(limit, std::move(stop)), std::move(held)));
}

std::cv_status condition_variable::wait_once(const any_lock& lock, boot_time until,
                                             std::stop_token stop) {
  const subject& of = state_->of;
  auto& session = *of.session;
  if (lock.of == nullptr) {
    of.fail({errc::not_owner, "waiting needs the mutex held: lock it, and check before you wait"});
  }
  lock.of->check();
  if (auto can = engine::ready(session, *of.config, {}); !can) of.fail(std::move(can.error()));
  turn mine(session, of.config);
  engine::dispatcher::registration slot(session.dispatcher(), mine.owner());
  if (auto queued = mine.waits(slot, until, stop); !queued) return ended(of, std::move(queued));
  lock.unlock();
  status woken = done{};
  try {
    woken = mine.waits(slot, until, std::move(stop));
  } catch (...) {  // no memory
    lock.lock();
    throw;
  }
  try {
    lock.lock();
  } catch (...) {
    if (woken) mine.pass_on();
    throw;
  }
  return ended(of, std::move(woken));
}

}  // namespace holdfast
