#include "lease/keeper.hpp"

#include <algorithm>
#include <holdfast/options.hpp>

#include "base/losses.hpp"
#include "session/lock_config.hpp"
#include "session/store_client.hpp"

namespace holdfast::engine {

using namespace std::chrono_literals;
using store::permits_outcome;

namespace {
constexpr std::size_t max_batch = 500;
constexpr auto abandoned_retry = 200ms;
/// The waiters that the notification is for wait as long as their sessions live.
constexpr auto notification_lasts = 1h;
constexpr auto settle_after = 250ms;
/// A thread that runs late by less is normal on a busy machine.
constexpr auto least_pause = 100ms;
constexpr int last_tries = 3;
constexpr auto last_tries_take = 1s;  // in total, even if the store is away
}  // namespace

namespace {
/// The reason why a lease that is still held, or suspect, ends now. The check was planned for
/// `then`: if that was before the end of the lease, and the check comes after it, the thread did
/// not run.
std::string_view why_it_ends(const lease_timer& timer, boot_time then) noexcept {
  if (timer.at_max_hold()) return losses::max_hold_over;
  const bool suspect = timer.state() == lease_state::suspect;
  if (!suspect && then < timer.valid_until()) return losses::not_run;
  if (timer.in_flight()) return losses::unanswered;
  return suspect ? losses::refused : losses::lease_ended;
}
}  // namespace

std::chrono::microseconds between(std::int64_t now_at, std::int64_t expires_at) noexcept {
  if (expires_at <= now_at) return 0us;
  const auto lasts = static_cast<std::uint64_t>(expires_at) - static_cast<std::uint64_t>(now_at);
  constexpr std::chrono::microseconds most = max_lease;
  return std::chrono::microseconds(std::min(lasts, static_cast<std::uint64_t>(most.count())));
}

std::chrono::microseconds lease_of(const store::permits_reply& granted) noexcept {
  return between(granted.now_at, granted.expires_at);
}

keeper::keeper(store_client& session) : session_(session) {}

// A lock that could not be released would block others until its lease ends, though no thread works
// under it. So the keeper retries a few times: one lost request should not cost that.
keeper::~keeper() {
  stop();
  std::unique_lock lock{mutex_};
  const boot_time until = session_.now() + last_tries_take;
  int failed = 0;
  while (failed < last_tries && !abandoned_.empty() && session_.now() < until) {
    if (!release_abandoned(lock)) ++failed;
  }
}

void keeper::stop() {
  {
    const std::lock_guard guard{mutex_};
    stopping_ = true;
    time_changed_.notify_all();
    work_changed_.notify_all();
  }
  timer_.join();
  renewer_.join();
}

// Starts both threads: either of them alone would find nothing to do.
status keeper::start() noexcept {
  constexpr std::string_view purpose = "to renew leases with";
  auto started = timer_.start(purpose, [this] { watch_time(); });
  return started ? renewer_.start(purpose, [this] { renew_forever(); }) : started;
}

bool keeper::on_own_thread() const noexcept {
  return timer_.is_this_thread() || renewer_.is_this_thread();
}

void keeper::add(const std::shared_ptr<renewable>& h) {
  const std::lock_guard guard{mutex_};
  h->scheduled_ = schedule_.emplace(h->timer_.next(), h);
  if (wake_time_.comes_before(h->timer_.next())) time_changed_.notify_one();
}

void keeper::remove(renewable& h) noexcept {
  schedule::node_type last;  // may hold the last reference, so it is released without the mutex
  const std::lock_guard guard{mutex_};
  if (!h.scheduled_) return;
  last = schedule_.extract(*h.scheduled_);
  h.scheduled_.reset();
}

// Moves the existing node, which takes no memory.
void keeper::reschedule(renewable& h) noexcept {
  h.publish();
  if (!h.scheduled_) return;
  auto node = schedule_.extract(*h.scheduled_);
  node.key() = h.timer_.next();
  h.scheduled_ = schedule_.insert(std::move(node));
  if (wake_time_.comes_before(h.timer_.next())) time_changed_.notify_one();
}

void keeper::begin_renewal(renewable& h) {
  std::shared_ptr<renewable> taken_over;  // released without the mutex
  std::unique_lock lock{mutex_};
  // A renewal that is queued and not sent is no obstacle: the caller's renewal replaces it.
  taken_over = to_renew_.take(h);
  if (taken_over) return;
  while (h.timer_.state() != lease_state::lost && !h.timer_.begin(session_.now())) {
    session_.clock().wait_until(lock, renewal_over_, forever);
  }
  reschedule(h);
}

// The reason of the end, if the lease is over, and the thread that watches the time has not
// reported it yet.
std::optional<std::string_view> keeper::over_because(const renewable& h, boot_time now) noexcept {
  if (!h.timer_.is_over(now)) return std::nullopt;
  return why_it_ends(h.timer_, (*h.scheduled_)->first);
}

// The three ends of a renewal, called with the mutex held. The events are reported without it.
keeper::news keeper::on_renewed(renewable& h, boot_time sent,
                                std::chrono::nanoseconds lease) noexcept {
  const boot_time now = session_.now();
  const auto left = h.timer_.valid_until() - now;
  const auto margin = h.timer_.is_claim() ? 0ns : left;  // a claim always has little left
  const auto over = over_because(h, now);
  const bool again = h.timer_.renewed(now, sent, lease);
  news n{.about = &h, .margin = margin};
  if (over) {  // the renewal came too late
    note_outlasted(h, n, *over);
  } else {
    n.what = again ? event_kind::held_again : event_kind::renewed;
  }
  reschedule(h);
  return n;
}

keeper::news keeper::on_failed(renewable& h, const failure& why) noexcept {
  const boot_time now = session_.now();
  const auto over = over_because(h, now);
  const bool first = h.timer_.failed(now);
  news n{.about = &h, .what = event_kind::renew_failed, .suspect = first, .failed = &why};
  if (over && why.outcome_unknown) note_outlasted(h, n, *over);
  reschedule(h);
  return n;
}

// Others would wait for the renewed lease, though no thread has it. A barrier is excepted: its
// participants notice the loss there.
void keeper::note_outlasted(renewable& h, news& n, std::string_view why) noexcept {
  if (h.may_wait()) return;
  n.outlasted = true;
  n.lost = why;
  h.timer_.gone();
}

keeper::news keeper::on_lost(renewable& h, std::string_view why) noexcept {
  const bool known = h.timer_.state() == lease_state::lost;
  h.timer_.gone();
  reschedule(h);
  if (known) return {};
  return {.about = &h, .lost = why};
}

// The loss is reported before another holder can have the lock.
void keeper::tell(const news& n) noexcept {
  if (n.what) n.about->announce(*n.what, n.failed, n.margin);
  if (n.suspect) n.about->announce(event_kind::suspect, n.failed, {});
  if (!n.lost.empty()) n.about->announce_lost(n.lost);
  if (n.outlasted) n.about->give_back_lost(n.given_back);
}

template <class End>
void keeper::end_renewal(End end) {
  std::unique_lock lock{mutex_};
  const auto to_tell = end();
  renewal_over_.notify_all();
  lock.unlock();
  tell(to_tell);
}

// If the hold was released meanwhile, it is normal that the store does not know it any more.
template <class End>
void keeper::end_renewal(renewable& h, End end) {
  end_renewal([&]() -> news {
    if (h.scheduled_) return end();
    h.timer_.end_renewal();
    return {};
  });
}

void keeper::answered(renewable& h, boot_time sent, const result<store::permits_reply>& reply) {
  end_renewal([&] { return settle(h, sent, reply); });
}
void keeper::not_renewed(renewable& h) {
  end_renewal(h, [&]() -> news {
    h.timer_.end_renewal();
    reschedule(h);
    return {};
  });
}
void keeper::gone(renewable& h, std::string_view why) {
  end_renewal(h, [&] { return on_lost(h, why); });
}
bool keeper::in_doubt(renewable& h) noexcept {
  bool kept = false;
  end_renewal([&]() -> news {
    kept = h.scheduled_.has_value();
    if (!kept) return {};
    return on_lost(h, losses::outcome_unknown);
  });
  return kept;
}

boot_time keeper::shorten(renewable& h, boot_time sent, std::chrono::nanoseconds lease) {
  const std::lock_guard guard{mutex_};
  const boot_time before = h.timer_.shorten(sent, lease);
  reschedule(h);
  return before;
}
void keeper::restore(renewable& h, boot_time valid_until) {
  const std::lock_guard guard{mutex_};
  h.timer_.restore(valid_until);
  reschedule(h);
}

// ---- the thread that watches the time

// One hold may become both suspect and lost at the same time: both are reported, in that order.
boot_time keeper::take_due(told_line& to_tell) noexcept {
  const boot_time now = session_.now();
  while (!schedule_.empty() && schedule_.begin()->first <= now) {
    const auto h = schedule_.begin()->second;
    const std::string_view why = why_it_ends(h->timer_, schedule_.begin()->first);
    const auto step = h->timer_.due(now);
    if (step == lease_timer::step::renew) to_renew_.push(h);
    if (step == lease_timer::step::suspect || step == lease_timer::step::lost) {
      const bool in_line = h->to_tell_suspect_ || !h->to_tell_lost_.empty();
      if (step == lease_timer::step::suspect) h->to_tell_suspect_ = true;
      if (step == lease_timer::step::lost) h->to_tell_lost_ = why;
      if (!in_line) to_tell.push(h);
    }
    // End the waits in begin_renewal().
    if (step == lease_timer::step::lost) renewal_over_.notify_all();
    reschedule(*h);
  }
  return schedule_.empty() ? forever : schedule_.begin()->first;
}

void keeper::tell_due(told_line& to_tell) noexcept {
  while (const auto h = to_tell.pop()) {
    const bool suspect = std::exchange(h->to_tell_suspect_, false);
    tell({.about = h.get(), .suspect = suspect, .lost = std::exchange(h->to_tell_lost_, {})});
  }
}

void keeper::watch_time() {
  std::unique_lock lock{mutex_};
  std::chrono::nanoseconds late{};
  while (!stopping_) {
    told_line to_tell;
    const boot_time next = take_due(to_tell);
    if (!to_renew_.empty()) work_changed_.notify_one();
    if (to_tell.empty() && late < least_pause) {
      const boot_time until = wake_time_.sleep_until(next, session_.now());
      session_.clock().wait_until(lock, time_changed_, until);
      if (session_.options().observer) late = session_.now() - until;
      continue;
    }
    lock.unlock();
    tell_due(to_tell);
    if (late >= least_pause) session_.tell({.kind = event_kind::paused, .waited = late});
    late = {};
    lock.lock();
  }
}

// ---- the thread that talks to the store

void keeper::renew_forever() {
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    const boot_time next = std::min(retry_abandoned_at_, settle_at_);
    if (to_renew_.empty() && session_.now() < next) {
      session_.clock().wait_until(lock, work_changed_, next);
      continue;
    }
    due_line due;
    for (std::size_t n = 0; n < max_batch && !to_renew_.empty(); ++n) due.push(to_renew_.pop());
    if (!due.empty()) {
      lock.unlock();
      renew_batch(due);
      due.clear();
      lock.lock();
    }
    if (session_.now() >= settle_at_) settle(lock);
    if (session_.now() >= retry_abandoned_at_) (void)release_abandoned(lock);
  }
}

void keeper::renew_batch(due_line& due) try {
  std::vector<std::shared_ptr<renewable>> holds;
  std::vector<store::named_command> renewals;
  std::vector<news> to_tell;
  holds.reserve(due.size());
  renewals.reserve(due.size());
  to_tell.reserve(due.size());
  due.for_each([&](const renewable& h) { renewals.push_back(h.renewal()); });
  const boot_time sent = session_.now();
  const auto replies = session_.execute_batch(renewals);
  while (auto h = due.pop()) holds.push_back(std::move(h));
  // All renewals are over before any result is reported: a receiver may want to renew another.
  std::unique_lock lock{mutex_};
  for (std::size_t i = 0; i < holds.size(); ++i) {
    to_tell.push_back(settle(*holds[i], sent, replies[i]));
  }
  renewal_over_.notify_all();
  lock.unlock();
  for (const auto& t : to_tell) tell(t);
} catch (...) {
  fail_batch(due);
}

// The renewals were not sent, or their outcome is unknown: retried as after any failure, so none
// stays begun.
void keeper::fail_batch(due_line& due) noexcept {
  const result<store::permits_reply> why = without_memory(true);
  while (const auto h = due.pop()) answered(*h, {}, why);
}

keeper::news keeper::settle(renewable& h, boot_time sent,
                            const result<store::permits_reply>& reply) noexcept {
  // Released meanwhile: then it is normal that the store does not know it any more. But a release
  // that finds a lease that has ended leaves the record as it is, and a renewal that was decided
  // before may still be written, for nobody.
  if (!h.scheduled_) {
    h.timer_.end_renewal();
    const bool kept =
        reply ? reply->outcome == permits_outcome::granted : reply.error().outcome_unknown;
    if (!kept || h.may_wait() || !h.timer_.is_over(session_.now())) return {};
    return {.about = &h, .outlasted = true, .given_back = true};
  }
  if (!reply) return on_failed(h, reply.error());
  if (reply->outcome == permits_outcome::queued && h.may_wait())
    return on_renewed(h, sent, h.renewed_for());
  if (reply->outcome != permits_outcome::granted) return on_lost(h, losses::taken_away);
  return on_renewed(h, sent, lease_of(*reply));
}

// The owner may still be queued, and a queue entry outlasts a short lease.
void keeper::abandon(std::string_view name, const store::owner_id& owner,
                     std::chrono::nanoseconds lease,
                     std::optional<store::permits_command> if_absent) noexcept {
  const auto lasts = std::max<std::chrono::nanoseconds>(lease, queue_lease);
  remember(name, release_command(owner), if_absent, lasts);
}

void keeper::send_again(std::string_view name, const store::permits_command& what) noexcept {
  remember(name, what, {}, notification_lasts);
}

// Does nothing in a forked child: it has no thread to send it, and a thread that exists only in the
// parent may hold the mutex.
void keeper::remember(std::string_view name, const store::permits_command& what,
                      std::optional<store::permits_command> if_absent,
                      std::chrono::nanoseconds lasts) noexcept try {
  if (session_.forked()) return;
  const std::lock_guard guard{mutex_};
  abandoned_.push_back({std::string(name), what, if_absent, lasts});
  retry_abandoned_at_ = session_.now();
  work_changed_.notify_one();
} catch (...) {
  return;  // the store forgets it when the lease ends
}

void keeper::expect_answers() {
  if (expecting_.exchange(true, std::memory_order_relaxed)) return;
  const std::lock_guard guard{mutex_};
  settle_at_ = saturated_add(session_.now(), settle_after);
  work_changed_.notify_one();
}

void keeper::settle(std::unique_lock<std::mutex>& lock) noexcept {
  settle_at_ = forever;
  expecting_.store(false, std::memory_order_relaxed);
  lock.unlock();
  bool read = true;
  try {
    session_.settle();
  } catch (...) {
    read = false;  // no memory for the replies
  }
  lock.lock();
  if (!read) settle_at_ = std::min(settle_at_, saturated_add(session_.now(), settle_after));
}

// Releases no more at once than a batch of renewals, because renewals wait for it. The rest follows
// without delay if the store accepts these.
bool keeper::release_abandoned(std::unique_lock<std::mutex>& lock) noexcept {
  abandonments todo;
  const auto count = static_cast<std::ptrdiff_t>(std::min(abandoned_.size(), max_batch));
  todo.splice(todo.end(), abandoned_, abandoned_.begin(), std::next(abandoned_.begin(), count));
  retry_abandoned_at_ = forever;
  lock.unlock();
  try {
    try_to_release(todo);
  } catch (...) {
    // No memory: all of them are tried again. Releasing twice does no harm.
  }
  lock.lock();
  const bool all = todo.empty();
  abandoned_.splice(abandoned_.end(), todo);
  const auto next = session_.now() + (all ? 0ms : abandoned_retry);
  if (!abandoned_.empty()) retry_abandoned_at_ = std::min(retry_abandoned_at_, next);
  return all;
}

void keeper::owes_now(abandoned& one) noexcept {
  one.command = *std::exchange(one.if_absent, std::nullopt);
  one.lasts = notification_lasts;
  one.until = forever;
}

void keeper::try_to_release(abandonments& todo) {
  std::vector<store::named_command> releases;
  std::vector<abandonments::iterator> asked;
  const boot_time now = session_.now();
  for (auto next = todo.begin(); next != todo.end();) {
    const auto a = next++;
    // No thread waits any longer for an abandoned call that may acquire the lock. That call has to
    // end first, and a lease it acquires may begin only then. The call may end unseen, while this
    // thread waits for the store. So the time counts from the first look after its end.
    if (a->command.owner && session_.callers().call_for(a->command.owner)) {
      a->until = forever;
      continue;
    }
    if (a->until == forever) a->until = saturated_add(now, a->lasts);
    if (now >= a->until && !a->if_absent) {
      todo.erase(a);
    } else {
      if (now >= a->until) owes_now(*a);  // the lease has ended by itself
      releases.push_back({a->name, a->command});
      asked.push_back(a);
    }
  }
  if (releases.empty()) return;
  const auto replies = session_.permits(releases);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (!replies[i]) continue;
    auto& next = asked[i]->if_absent;
    if (replies[i]->outcome != permits_outcome::absent || !next) {
      todo.erase(asked[i]);
    } else {
      owes_now(*asked[i]);
    }
  }
}

}  // namespace holdfast::engine
