#include "wait/runner.hpp"

#include <algorithm>
#include <iterator>

#include "session/no_memory.hpp"
#include "session/no_thread.hpp"
#include "session/store_client.hpp"

namespace holdfast::engine {

namespace {
// So many steps, and then it looks for notifications; so many questions in one round trip.
constexpr std::size_t steps_in_a_row = 256;
}  // namespace

void operation::wake() noexcept {
  if (!queued_.exchange(true)) runner_.push(shared_from_this());
}

void runner::close() noexcept {
  {
    const std::lock_guard guard{mutex_};
    closing_.request_stop();
    idle_.notify_one();
    if (slot_) slot_->wake();
  }
  if (thread_.joinable()) thread_.join();
  {
    const std::lock_guard guard{mutex_};
    closed_ = true;
    deadlines_changed_.notify_one();
  }
  if (watch_thread_.joinable()) watch_thread_.join();
}

status runner::start() noexcept try {
  const std::lock_guard guard{mutex_};
  if (thread_.joinable()) return done{};
  if (!slot_) {
    slot_ = std::make_unique<dispatcher::registration>(session_.dispatcher(),
                                                       dispatcher::registration::for_many::owners);
  }
  thread_ = std::thread([this] { run(); });
  return done{};
} catch (...) {
  return no_thread("to wait for the store with");
}

status runner::tell_at(boot_time when, const std::shared_ptr<operation>& e) noexcept try {
  const std::lock_guard guard{mutex_};
  if (e->limit_ && (*e->limit_)->first <= when) return done{};
  if (!watch_thread_.joinable()) watch_thread_ = std::thread([this] { watch_time(); });
  const auto at = deadlines_.emplace(when, e);
  if (e->limit_) deadlines_.erase(*e->limit_);
  e->limit_ = at;
  if (wake_time_.comes_before(when)) deadlines_changed_.notify_one();
  return done{};
} catch (...) {
  return no_thread("to watch deadlines with");
}

void runner::watch_time() {
  watch_id_ = std::this_thread::get_id();
  std::unique_lock lock{mutex_};
  while (!closed_) {
    const boot_time next = deadlines_.empty() ? forever : deadlines_.begin()->first;
    if (session_.now() < next) {
      const boot_time until = wake_time_.sleep_until(next, session_.now());
      session_.clock().wait_until(lock, deadlines_changed_, until);
      continue;
    }
    auto e = deadlines_.extract(deadlines_.begin()).mapped().lock();
    if (!e) continue;
    e->limit_.reset();
    lock.unlock();
    e->overdue();
    e.reset();
    lock.lock();
  }
}

// In a forked child nobody would take it, and a thread that is not there may hold the mutex.
void runner::push(std::shared_ptr<operation> e) noexcept {
  if (session_.forked()) return;
  const std::lock_guard guard{mutex_};
  woken_.push(std::move(e));
  if (woken_.size() > 1) return;
  idle_.notify_one();
  slot_->wake();
}

void runner::run() {
  id_ = std::this_thread::get_id();
  while (sleep_while_idle()) {
    boot_time until = times_.empty() ? forever : times_.begin()->first;
    if (!asking_.empty()) until = boot_time{};
    for (const auto& n : collect(until)) take_notification(n);
    take_due();
    work();
    ask_all();
  }
}

std::vector<store::notification> runner::collect(boot_time until) noexcept try {
  return slot_->collect(until);
} catch (...) {
  std::unique_lock lock{mutex_};
  idle_.wait_for(lock, memory_retry);
  return {};
}

// Without operations others read the inbox: their notifications would take a detour through this
// thread, and those for nobody would pile up. False when there will be no more operations; those
// that are left are woken to find out.
bool runner::sleep_while_idle() {
  std::unique_lock lock{mutex_};
  if (operations_.empty()) {
    slot_->listen(false);
    while (woken_.empty() && !closing_.stop_requested()) idle_.wait(lock);
    slot_->listen(true);
  }
  lock.unlock();
  if (!closing_.stop_requested()) return true;
  if (!std::exchange(told_to_close_, true)) {
    for (const auto& entry : operations_) entry.second->wake();
  }
  lock.lock();
  return !operations_.empty() || !woken_.empty();
}

void runner::take_woken(woken_line& taken) noexcept {
  const std::lock_guard guard{mutex_};
  while (taken.size() < steps_in_a_row && !woken_.empty()) taken.push(woken_.pop());
  if (!woken_.empty()) slot_->wake();  // not to sleep while there are others
}

void runner::take_due() noexcept {
  const boot_time now = session_.now();
  while (!times_.empty() && times_.begin()->first <= now) {
    operation& e = *times_.begin()->second;
    set_due(e, forever);
    e.wake();
  }
}

void runner::take_notification(const store::notification& n) noexcept {
  if (n.what == store::notification_kind::departed) {
    for (const auto& [owner, e] : operations_) {
      const auto& peers = e->watching_;
      if (std::find(peers.begin(), peers.end(), n.peer) != peers.end()) e->wake();
    }
  } else if (const auto found = operations_.find(n.owner); found != operations_.end()) {
    const auto e = found->second;
    take_step(*e, [&] { return e->take(n); });
  }
}

// A new one is known by its owner before it asks: a grant may come at once.
void runner::work() noexcept {
  woken_line woken;
  take_woken(woken);
  while (const auto e = woken.pop()) {
    e->queued_ = false;
    if (e->stage_ == operation::stage::over) continue;
    take_step(*e, [&] {
      if (e->stage_ == operation::stage::fresh) {
        operations_.emplace(e->owner(), e);
        e->stage_ = operation::stage::known;
      }
      return e->step();
    });
  }
}

// Without memory for it nobody knows what was carried out, as after a reply that was lost.
void runner::ask_all() noexcept {
  if (asking_.empty()) return;
  const auto asked = std::exchange(asking_, {});
  const boot_time sent = session_.now();
  std::vector<result<store::permits_reply>> replies;
  try {
    std::vector<store::named_command> questions;
    questions.reserve(asked.size());
    for (const auto& [e, request] : asked) questions.push_back(request);
    replies = session_.permits(questions);
  } catch (...) {
    replies.clear();
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    operation& e = *asked[i].first;
    const bool answered = i < replies.size();
    take_step(e,
              [&] { return e.answer(answered ? std::move(replies[i]) : without_memory(), sent); });
  }
}

template <class Step>
void runner::take_step(operation& e, Step step) noexcept try {
  steps_.fetch_add(1, std::memory_order_relaxed);
  go_on(e, step());
} catch (...) {
  if (e.broken()) end(e);
}

void runner::go_on(operation& e, operation::next next) {
  if (next.over) {
    end(e);
  } else if (next.ask) {
    asking_.emplace_back(&e, *next.ask);
  } else {
    set_due(e, next.until);
    session_.dispatcher().rewatch(e.watching_, e.watched());
  }
}

void runner::end(operation& e) noexcept {
  set_due(e, forever);
  forget_limit(e);
  session_.dispatcher().rewatch(e.watching_, {});
  std::erase_if(asking_, [&](const auto& asks) { return asks.first == &e; });
  e.stage_ = operation::stage::over;
  operations_.erase(e.owner());
}

void runner::forget_limit(operation& e) noexcept {
  std::multimap<boot_time, std::weak_ptr<operation>>::node_type last;
  const std::lock_guard guard{mutex_};
  if (e.limit_) last = deadlines_.extract(*std::exchange(e.limit_, std::nullopt));
}

void runner::set_due(operation& e, boot_time when) {
  if (e.due_ == when) return;
  if (e.due_ != forever) times_.erase({e.due_, &e});
  e.due_ = when;
  if (when != forever) times_.emplace(when, &e);
}

}  // namespace holdfast::engine
