#include "engine/keeper.hpp"

#include <algorithm>

#include "engine/no_thread.hpp"
#include "engine/spec.hpp"
#include "engine/store_client.hpp"

namespace holdfast::engine {

using namespace std::chrono_literals;
using store::permits_outcome;
using store::permits_verb;

namespace {
constexpr std::size_t max_batch = 500;
constexpr auto abandoned_retry = 200ms;
constexpr auto settle_after = 250ms;
constexpr int last_tries = 3;
constexpr auto last_tries_take = 1s;  // and no longer, if the store is away
constexpr std::string_view taken_away = "the store says that it is not held any more";
constexpr std::string_view lease_ended = "the lease ended before it was renewed";
constexpr std::string_view outcome_unknown =
    "the store did not say whether it made it weaker: others may be in beside it";
}  // namespace

std::chrono::microseconds lease_of(const store::permits_reply& granted) noexcept {
  return std::chrono::microseconds(granted.expires_at - granted.now_at);
}

keeper::keeper(store_client& session) : session_(session) {}

// What could not be given back would block the others until its lease ends, though nobody works: a
// lost request is not to cost them that.
keeper::~keeper() {
  stop();
  try {
    std::unique_lock lock{mutex_};
    const boot_time until = session_.now() + last_tries_take;
    int failed = 0;
    while (failed < last_tries && !abandoned_.empty() && session_.now() < until) {
      if (!release_abandoned(lock)) ++failed;
    }
  } catch (...) {
    return;  // no memory: they end by themselves
  }
}

void keeper::stop() {
  {
    const std::lock_guard guard{mutex_};
    stopping_ = true;
    time_changed_.notify_all();
    work_changed_.notify_all();
  }
  if (timer_thread_.joinable()) timer_thread_.join();
  if (renewal_thread_.joinable()) renewal_thread_.join();
}

status keeper::start() noexcept try {
  if (started_.load(std::memory_order_acquire)) return done{};
  const std::lock_guard guard{mutex_};
  if (started_) return done{};
  // Each may have been started by an earlier attempt: one alone finds nothing to do.
  if (!timer_thread_.joinable()) timer_thread_ = std::thread([this] { watch_time(); });
  if (!renewal_thread_.joinable()) renewal_thread_ = std::thread([this] { renew_forever(); });
  started_.store(true, std::memory_order_release);
  return done{};
} catch (...) {
  return no_thread("to renew leases with");
}

bool keeper::on_own_thread() const noexcept {
  const auto me = std::this_thread::get_id();
  return me == timer_thread_.get_id() || me == renewal_thread_.get_id();
}

void keeper::add(const std::shared_ptr<renewable>& h) {
  const std::lock_guard guard{mutex_};
  h->scheduled_ = schedule_.emplace(h->timer_.next(), h);
  if (h->timer_.next() < sleeping_until_) time_changed_.notify_one();
}

void keeper::remove(renewable& h) noexcept {
  schedule::node_type last;  // may hold the last reference: let go of it without the mutex
  const std::lock_guard guard{mutex_};
  if (!h.scheduled_) return;
  last = schedule_.extract(*h.scheduled_);
  h.scheduled_.reset();
}

void keeper::reschedule(renewable& h) {
  h.publish();
  if (!h.scheduled_) return;
  auto node = schedule_.extract(*h.scheduled_);
  node.key() = h.timer_.next();
  h.scheduled_ = schedule_.insert(std::move(node));
  if (h.timer_.next() < sleeping_until_) time_changed_.notify_one();
}

void keeper::begin_renewal(renewable& h) {
  batch taken_over;  // let go of without the mutex
  std::unique_lock lock{mutex_};
  // One that is queued and not sent is no obstacle: the caller's takes its place.
  const auto queued = std::find_if(to_renew_.begin(), to_renew_.end(),
                                   [&](const auto& q) { return q.get() == &h; });
  if (queued != to_renew_.end()) {
    taken_over.push_back(std::move(*queued));
    to_renew_.erase(queued);
    return;
  }
  while (h.timer_.state() != lease_state::lost && !h.timer_.begin(session_.now())) {
    session_.clock().wait_until(lock, renewal_over_, forever);
  }
  reschedule(h);
}

// The three ends of a renewal, with the mutex held. What is to be told is told without it.
keeper::news keeper::on_renewed(renewable& h, boot_time sent, std::chrono::nanoseconds lease) {
  const bool again = h.timer_.renewed(session_.now(), sent, lease);
  reschedule(h);
  if (!again) return [] {};
  return [&h] { h.announce(event_kind::held_again, nullptr); };
}

keeper::news keeper::on_failed(renewable& h, const failure& why) {
  const bool first = h.timer_.failed(session_.now());
  reschedule(h);
  return [&h, first, why] {
    h.announce(event_kind::renew_failed, &why);
    if (first) h.announce(event_kind::suspect, &why);
  };
}

keeper::news keeper::on_lost(renewable& h, std::string_view why) {
  const bool known = h.timer_.state() == lease_state::lost;
  h.timer_.gone();
  reschedule(h);
  if (known) return [] {};
  return [&h, why] { h.announce_lost(why); };
}

template <class End>
void keeper::end_renewal(End end) {
  std::unique_lock lock{mutex_};
  const news tell = end();
  renewal_over_.notify_all();
  lock.unlock();
  tell();
}

// Released meanwhile: no wonder if it is not there any more.
template <class End>
void keeper::end_renewal(renewable& h, End end) {
  end_renewal([&]() -> news {
    if (h.scheduled_) return end();
    h.timer_.end_renewal();
    return [] {};
  });
}

void keeper::renewed(renewable& h, boot_time sent, std::chrono::nanoseconds lease) {
  end_renewal(h, [&] { return on_renewed(h, sent, lease); });
}
void keeper::not_renewed(renewable& h) {
  end_renewal(h, [&]() -> news {
    h.timer_.end_renewal();
    reschedule(h);
    return [] {};
  });
}
void keeper::failed(renewable& h, const failure& why) {
  end_renewal(h, [&] { return on_failed(h, why); });
}
void keeper::gone(renewable& h) {
  end_renewal(h, [&] { return on_lost(h, taken_away); });
}
void keeper::ended(renewable& h) {
  end_renewal(h, [&] { return on_lost(h, lease_ended); });
}
bool keeper::in_doubt(renewable& h) {
  bool kept = false;
  end_renewal([&]() -> news {
    kept = h.scheduled_.has_value();
    if (!kept) return [] {};
    return on_lost(h, outcome_unknown);
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
// ------------------------------------------------------------

boot_time keeper::take_due(batch& suspected, batch& lost) {
  const boot_time now = session_.now();
  while (!schedule_.empty() && schedule_.begin()->first <= now) {
    const auto h = schedule_.begin()->second;
    const auto step = h->timer_.due(now);
    if (step == lease_timer::step::renew) to_renew_.push_back(h);
    if (step == lease_timer::step::suspect) suspected.push_back(h);
    if (step == lease_timer::step::lost) lost.push_back(h);
    reschedule(*h);
  }
  return schedule_.empty() ? forever : schedule_.begin()->first;
}

void keeper::watch_time() {
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    batch suspected, lost;
    const boot_time next = take_due(suspected, lost);
    if (!to_renew_.empty()) work_changed_.notify_one();
    if (suspected.empty() && lost.empty()) {
      sleeping_until_ = next;
      session_.clock().wait_until(lock, time_changed_, next);
      sleeping_until_ = boot_time::min();
      continue;
    }
    lock.unlock();
    for (const auto& h : suspected) h->announce(event_kind::suspect, nullptr);
    for (const auto& h : lost) h->announce_lost(lease_ended);
    suspected.clear();
    lost.clear();
    lock.lock();
  }
}

// ---- the thread that talks to the store
// ----------------------------------------------------------

void keeper::renew_forever() {
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    const boot_time next = std::min(retry_abandoned_at_, settle_at_);
    if (to_renew_.empty() && session_.now() < next) {
      session_.clock().wait_until(lock, work_changed_, next);
      continue;
    }
    batch due;
    const auto count = std::min(to_renew_.size(), max_batch);
    due.assign(to_renew_.begin(), to_renew_.begin() + static_cast<std::ptrdiff_t>(count));
    to_renew_.erase(to_renew_.begin(), to_renew_.begin() + static_cast<std::ptrdiff_t>(count));
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

void keeper::renew_batch(const batch& due) {
  std::vector<store::renewal> renewals;
  renewals.reserve(due.size());
  for (const auto& h : due) renewals.push_back(h->renewal());
  const boot_time sent = session_.now();
  const auto replies = session_.renew(renewals);
  // Everyone's renewal is over before anyone is told: who is told may want to renew another.
  std::vector<news> tell;
  end_renewal([&] {
    for (std::size_t i = 0; i < due.size(); ++i) {
      tell.push_back(settle(*due[i], sent, replies[i]));
    }
    return [&] {
      for (const auto& t : tell) t();
    };
  });
}

keeper::news keeper::settle(renewable& h, boot_time sent,
                            const result<store::permits_reply>& reply) {
  if (!h.scheduled_) {  // released meanwhile: no wonder if it is not there any more
    h.timer_.end_renewal();
    return [] {};
  }
  if (!reply) return on_failed(h, reply.error());
  // It has arrived at a barrier, and waits there for the others.
  if (reply->outcome == permits_outcome::queued) return on_renewed(h, sent, h.renewed_for());
  if (reply->outcome != permits_outcome::granted) return on_lost(h, taken_away);
  return on_renewed(h, sent, lease_of(*reply));
}

void keeper::abandon(std::string name, const store::owner_id& owner,
                     std::chrono::nanoseconds lease) {
  const std::lock_guard guard{mutex_};
  const boot_time now = session_.now();
  abandoned_.push_back({std::move(name), owner, lease, saturated_add(now, lease)});
  retry_abandoned_at_ = now;
  work_changed_.notify_one();
}

void keeper::expect_answers() {
  if (expecting_.exchange(true, std::memory_order_relaxed)) return;
  const std::lock_guard guard{mutex_};
  settle_at_ = saturated_add(session_.now(), settle_after);
  work_changed_.notify_one();
}

void keeper::settle(std::unique_lock<std::mutex>& lock) {
  settle_at_ = forever;
  expecting_.store(false, std::memory_order_relaxed);
  lock.unlock();
  session_.settle();
  lock.lock();
}

// No more at once than renewals, which wait for it. The rest is next, without delay if the store
// takes them.
bool keeper::release_abandoned(std::unique_lock<std::mutex>& lock) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(abandoned_.size(), max_batch));
  std::deque<abandoned> todo(abandoned_.begin(), abandoned_.begin() + count);
  abandoned_.erase(abandoned_.begin(), abandoned_.begin() + count);
  retry_abandoned_at_ = forever;
  lock.unlock();
  // Nobody waits any longer for the call that may get it: it has to end first, and what it gets
  // lasts from then on.
  std::deque<abandoned> early;
  const auto under_way = std::stable_partition(todo.begin(), todo.end(), [&](const abandoned& a) {
    return !session_.callers().call_for(a.owner);
  });
  std::move(under_way, todo.end(), std::back_inserter(early));
  todo.erase(under_way, todo.end());
  const boot_time now = session_.now();
  for (abandoned& a : early) a.until = std::max(a.until, saturated_add(now, a.lease));
  std::erase_if(todo, [&](const abandoned& a) { return now >= a.until; });
  std::vector<store::renewal> releases;
  for (const abandoned& a : todo) releases.push_back({a.name, release_command(a.owner)});
  const auto replies =
      releases.empty() ? std::vector<result<store::permits_reply>>{} : session_.permits(releases);
  auto reply = replies.begin();
  std::erase_if(todo, [&](const abandoned&) { return (reply++)->ok(); });
  std::move(early.begin(), early.end(), std::back_inserter(todo));
  lock.lock();
  const bool all = todo.empty();
  std::move(todo.begin(), todo.end(), std::back_inserter(abandoned_));
  const auto next = session_.now() + (all ? 0ms : abandoned_retry);
  if (!abandoned_.empty()) retry_abandoned_at_ = std::min(retry_abandoned_at_, next);
  return all;
}

}  // namespace holdfast::engine
