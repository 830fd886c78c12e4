#include "engine/runner.hpp"

#include <algorithm>
#include <iterator>

#include "engine/no_thread.hpp"
#include "engine/store_client.hpp"

namespace holdfast::engine {

namespace {
// So many steps, and then it looks for notices; so many questions in one round trip.
constexpr std::size_t steps_in_a_row = 256;
}  // namespace

void errand::wake() {
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
    slot_ = std::make_unique<mailroom::slot>(session_.mailroom(), mailroom::slot::for_many::owners);
  }
  thread_ = std::thread([this] { run(); });
  return done{};
} catch (...) {
  return no_thread("to wait for the store with");
}

status runner::tell_at(boot_time when, const std::shared_ptr<errand>& e) noexcept try {
  const std::lock_guard guard{mutex_};
  if (!watch_thread_.joinable()) watch_thread_ = std::thread([this] { watch_time(); });
  const auto at = deadlines_.emplace(when, e);
  e->limit_ = at;
  if (at == deadlines_.begin()) deadlines_changed_.notify_one();
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
      session_.clock().wait_until(lock, deadlines_changed_, next);
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
void runner::push(std::shared_ptr<errand> e) {
  if (session_.forked()) return;
  const std::lock_guard guard{mutex_};
  woken_.push_back(std::move(e));
  if (woken_.size() > 1) return;
  idle_.notify_one();
  slot_->wake();
}

void runner::run() {
  id_ = std::this_thread::get_id();
  while (sleep_while_idle()) {
    boot_time until = times_.empty() ? forever : times_.begin()->first;
    if (!asking_.empty()) until = boot_time{};
    for (const auto& n : slot_->collect(until)) take_notice(n);
    take_due();
    work();
    ask_all();
  }
}

// Without errands others read the inbox: their notices would take a detour through this thread, and
// those for nobody would pile up. False when there will be no more errands; those that are left are
// woken to find out.
bool runner::sleep_while_idle() {
  std::unique_lock lock{mutex_};
  if (errands_.empty()) {
    slot_->listen(false);
    while (woken_.empty() && !closing_.stop_requested()) idle_.wait(lock);
    slot_->listen(true);
  }
  lock.unlock();
  if (!closing_.stop_requested()) return true;
  if (!std::exchange(told_to_close_, true)) {
    for (const auto& entry : errands_) entry.second->wake();
  }
  lock.lock();
  return !errands_.empty() || !woken_.empty();
}

std::deque<std::shared_ptr<errand>> runner::take_woken() {
  std::deque<std::shared_ptr<errand>> taken;
  const std::lock_guard guard{mutex_};
  if (woken_.size() <= steps_in_a_row) {
    taken.swap(woken_);
    return taken;
  }
  const auto end = woken_.begin() + steps_in_a_row;
  taken.assign(std::move_iterator(woken_.begin()), std::move_iterator(end));
  woken_.erase(woken_.begin(), end);
  slot_->wake();  // not to sleep while there are others
  return taken;
}

void runner::take_due() {
  const boot_time now = session_.now();
  while (!times_.empty() && times_.begin()->first <= now) {
    errand& e = *times_.begin()->second;
    set_due(e, forever);
    e.wake();
  }
}

void runner::take_notice(const store::notice& n) {
  if (n.what == store::notice_kind::departed) {
    for (const auto& [owner, e] : errands_) {
      const auto& peers = e->watching_;
      if (std::find(peers.begin(), peers.end(), n.peer) != peers.end()) e->wake();
    }
  } else if (const auto found = errands_.find(n.owner); found != errands_.end()) {
    const auto e = found->second;
    go_on(*e, e->take(n));
  }
}

// A new one is known by its owner before it asks: a grant may come at once.
void runner::work() {
  for (auto& e : take_woken()) {
    e->queued_ = false;
    if (e->stage_ == errand::stage::over) continue;
    if (e->stage_ == errand::stage::fresh) {
      errands_.emplace(e->owner(), e);
      e->stage_ = errand::stage::known;
    }
    go_on(*e, e->step());
  }
}

void runner::ask_all() {
  if (asking_.empty()) return;
  std::vector<store::renewal> questions;
  questions.reserve(asking_.size());
  for (const auto& [e, question] : asking_) questions.push_back(question);
  const boot_time sent = session_.now();
  auto replies = session_.permits(questions);
  const auto asked = std::exchange(asking_, {});
  for (std::size_t i = 0; i < asked.size(); ++i) {
    errand& e = *asked[i].first;
    go_on(e, e.answer(std::move(replies[i]), sent));
  }
}

void runner::go_on(errand& e, errand::next next) {
  if (next.over) {
    set_due(e, forever);
    forget_limit(e);
    session_.mailroom().rewatch(e.watching_, {});
    e.stage_ = errand::stage::over;
    errands_.erase(e.owner());
  } else if (next.ask) {
    asking_.emplace_back(&e, *next.ask);
  } else {
    set_due(e, next.until);
    session_.mailroom().rewatch(e.watching_, e.watched());
  }
}

void runner::forget_limit(errand& e) {
  std::multimap<boot_time, std::weak_ptr<errand>>::node_type last;
  const std::lock_guard guard{mutex_};
  if (e.limit_) last = deadlines_.extract(*std::exchange(e.limit_, std::nullopt));
}

void runner::set_due(errand& e, boot_time when) {
  if (e.due_ == when) return;
  if (e.due_ != forever) times_.erase({e.due_, &e});
  e.due_ = when;
  if (when != forever) times_.emplace(when, &e);
}

}  // namespace holdfast::engine
