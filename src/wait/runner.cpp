#include "wait/runner.hpp"

#include <algorithm>
#include <iterator>

#include "session/no_memory.hpp"
#include "session/store_client.hpp"

namespace holdfast::engine {

namespace {
// The number of steps in a row, before the leader sends their requests and looks for notifications.
constexpr std::size_t steps_in_a_row = 256;
/// The time in which a leader that is not stuck handles an overdue operation.
constexpr std::chrono::milliseconds a_moment{2};
}  // namespace

void operation::wake() noexcept {
  if (!queued_.exchange(true)) runner_.push(shared_from_this());
}

/// Unlocks the mutex for a call that may take long; another thread may take over the lead
/// meanwhile.
class runner::away {
 public:
  away(runner& from, held& lock) noexcept : from_(from), lock_(lock) {
    if (from_.leads()) {
      from_.away_ = true;
      ++from_.steps_;
    }
    lock_.unlock();
  }
  ~away() {
    lock_.lock();
    if (from_.leads()) from_.away_ = false;
  }
  away(const away&) = delete;
  away& operator=(const away&) = delete;

 private:
  runner& from_;
  held& lock_;
};

// ---- its threads

void runner::close() noexcept {
  held lock{mutex_};
  closing_.request_stop();
  rouse_leader();
  while (threads_ > 0) ended_.wait(lock);
  leader_ = standby_ = {};
  watched_ = over_ = false;
}

status runner::start() noexcept try {
  const std::lock_guard guard{mutex_};
  if (threads_ > 0) return done{};
  if (!slot_ && hears_ == hears::notifications) {
    slot_ = std::make_unique<dispatcher::registration>(session_.dispatcher(),
                                                       dispatcher::registration::for_many::owners);
  }
  return add_thread();
} catch (...) {
  return without_memory(false);
}

status runner::add_thread() noexcept {
  ++threads_;
  auto added = session_.callers().start({}, [this]() noexcept { run(); });
  if (!added) --threads_;
  return added;
}

status runner::end_by(boot_time when, const std::shared_ptr<operation>& e) noexcept try {
  if (session_.forked()) return done{};  // as push()
  const std::lock_guard guard{mutex_};
  if (e->limit_ && (*e->limit_)->first <= when) return done{};
  if (!watched_) {
    if (auto watched = add_thread(); !watched) return watched;
    watched_ = true;
  }
  const auto at = limits_.emplace(when, e);
  if (e->limit_) limits_.erase(*e->limit_);
  e->limit_ = at;
  if (wake_time_.comes_before(when)) limits_changed_.notify_one();
  return done{};
} catch (...) {
  return without_memory(false);
}

// Does nothing in a forked child: it has no thread to take the operation, and a thread that exists
// only in the parent may hold the mutex.
void runner::push(std::shared_ptr<operation> e) noexcept {
  if (session_.forked()) return;
  const std::lock_guard guard{mutex_};
  if (e->stage_ == operation::stage::fresh) e->stage_ = operation::stage::pushed;
  woken_.push(std::move(e));
  if (woken_.size() == 1) rouse_leader();
}

void runner::wake(std::shared_ptr<operation> e) noexcept {
  if (e->queued_.exchange(true)) return;
  woken_.push(std::move(e));
  if (!leads()) rouse_leader();
}

void runner::rouse_leader() noexcept {
  idle_.notify_one();
  if (slot_) slot_->wake();
}

// A thread that returns from the store and finds another one leading becomes the standby, unless
// there is one.
void runner::run() noexcept {
  const auto me = std::this_thread::get_id();
  held lock{mutex_};
  while (!over_) {
    if (leader_ == std::thread::id{}) leader_ = me;
    if (leads()) {
      lead(lock);
    } else if (standby_ == std::thread::id{} || standby_ == me) {
      standby_ = me;
      watched_ = true;
      stand_by(lock);
    } else {
      break;
    }
  }
  if (--threads_ == 0) ended_.notify_all();
}

bool runner::overdue() const noexcept {
  return !limits_.empty() && limits_.begin()->first <= session_.now();
}

// Wakes the leading thread to handle what is overdue. A leader that makes no step meanwhile is
// stuck. Its state is in the operations, so another thread can take over.
void runner::stand_by(held& lock) noexcept {
  if (!overdue()) {
    const boot_time next = limits_.empty() ? forever : limits_.begin()->first;
    const boot_time until = wake_time_.sleep_until(next, session_.now());
    session_.clock().wait_until(lock, limits_changed_, until);
    return;
  }
  const auto step = steps_;
  rouse_leader();
  limits_changed_.wait_for(lock, a_moment);
  if (!overdue() || !away_ || steps_ != step || over_) return;
  leader_ = std::exchange(standby_, {});
  away_ = false;
  watched_ = add_thread().ok();
}

// ---- the leading thread

void runner::lead(held& lock) noexcept {
  if (!sleep_while_idle(lock)) {
    over_ = true;
    limits_changed_.notify_all();
    return;
  }
  collect(lock);
  take_overdue(lock);
  take_news(lock);
  take_due();
  work(lock);
  ask_all(lock);
}

// While there are no operations, the runner does not read the inbox: other threads' notifications
// would take a detour through this thread, and notifications without a recipient would pile up.
// Returns false when there will be no more operations. On closing it wakes the remaining
// operations, so that they end.
bool runner::sleep_while_idle(held& lock) noexcept {
  if (operations_.empty()) {
    listen(false);
    while (woken_.empty() && !overdue() && !closing_.stop_requested()) idle_.wait(lock);
    listen(true);
  }
  if (!closing_.stop_requested()) return true;
  if (!std::exchange(told_to_close_, true)) {
    for (const auto& entry : operations_) wake(entry.second);
  }
  return !operations_.empty() || !woken_.empty();
}

void runner::listen(bool on) noexcept {
  if (slot_) slot_->listen(on);
}

void runner::collect(held& lock) noexcept {
  if (!news_.empty()) return;
  boot_time until = times_.empty() ? forever : times_.begin()->first;
  if (!asking_.empty() || !woken_.empty() || overdue()) until = boot_time{};
  if (!slot_) {
    if (session_.now() < until) session_.clock().wait_until(lock, idle_, until);
    return;
  }
  std::vector<store::notification> got;
  lock.unlock();
  try {
    got = slot_->collect(until);
    if (got.empty()) session_.tell_gap();
    lock.lock();
  } catch (...) {
    lock.lock();
    idle_.wait_for(lock, memory_retry);
  }
  std::reverse(got.begin(), got.end());
  news_ = std::move(got);
}

void runner::take_overdue(held& lock) noexcept {
  const boot_time now = session_.now();
  while (leads() && !limits_.empty() && limits_.begin()->first <= now) {
    auto e = limits_.extract(limits_.begin()).mapped().lock();
    if (!e) continue;
    e->limit_.reset();
    if (e->busy_ || e->stage_ == operation::stage::fresh) {
      e->late_ = true;
      const away letting_go(*this, lock);
      e.reset();
      continue;
    }
    leave_question(*e);
    take_step(lock, std::move(e), [](operation& o) { return o.overdue(); });
  }
}

void runner::take_news(held& lock) noexcept {
  while (leads() && !news_.empty()) {
    const auto n = std::move(news_.back());
    news_.pop_back();
    if (n.what == store::notification_kind::departed) {
      for (const auto& [owner, e] : operations_) {
        const auto& peers = e->watching_;
        const bool news = e->busy_ || std::find(peers.begin(), peers.end(), n.peer) != peers.end();
        if (news) wake(e);
      }
      continue;
    }
    const auto behind = operations_.upper_bound(n.owner);
    if (behind == operations_.begin() || std::prev(behind)->first != n.owner) continue;
    auto e = std::prev(behind)->second;
    if (e->busy_ || e->asked_ != nullptr) {
      e->missed_ = true;
    } else {
      take_step(lock, std::move(e), [&](operation& o) { return o.take(n); });
    }
  }
}

void runner::take_due() noexcept {
  const boot_time now = session_.now();
  while (!times_.empty() && times_.begin()->first <= now) {
    operation& e = *times_.begin()->second;
    set_due(e, forever);
    wake(e.shared_from_this());
  }
}

// Returns early if an operation is overdue. A step may cost a round trip, so many steps in a row
// take longer than an overdue operation may wait; and the standby does not take over from a leader
// that makes progress.
void runner::work(held& lock) noexcept {
  for (std::size_t i = 0; i < steps_in_a_row && leads(); ++i) {
    if (i > 0 && overdue()) return;
    auto e = woken_.pop();
    if (e == nullptr) return;
    e->queued_ = false;
    if (e->stage_ == operation::stage::over) {
      const away letting_go(*this, lock);
      e.reset();
    } else if (e->busy_ || e->asked_ != nullptr) {
      e->woken_ = true;
    } else {
      take_step(lock, std::move(e), [](operation& o) { return o.step(); });
    }
  }
}

// The requests sent stay with this thread until they are answered, even if another thread leads by
// then.
void runner::ask_all(held& lock) noexcept {
  if (asking_.empty() || !leads()) return;
  batch mine;
  take_questions(mine.asked);
  if (mine.asked.empty()) return;
  mine.other = std::exchange(under_way_, &mine);
  const boot_time sent_at = session_.now();
  std::vector<result<store::permits_reply>> replies;
  {
    const away at_the_store(*this, lock);
    replies = ask(mine.asked);
  }
  answered(mine);
  std::size_t i = 0;
  for (const auto& q : mine.asked) {
    auto reply = i < replies.size() ? std::move(replies[i++]) : without_memory(true);
    if (q.of->asked_ != &q) {
      session_.callers().ended(q.what.command.owner);
      continue;
    }
    q.of->asked_ = nullptr;
    take_step(lock, q.of, [&](operation& o) { return o.answer(std::move(reply), sent_at); });
  }
  const away letting_go(*this, lock);
  mine.asked.clear();
}

void runner::take_questions(std::list<question>& of_this_batch) noexcept {
  for (auto next = asking_.begin(); next != asking_.end();) {
    const auto q = next++;
    q->sent = under_way_ == nullptr || !has_to_wait(*q);
    auto& to = q->sent ? of_this_batch : behind_;
    to.splice(to.end(), asking_, q);
  }
}

// Requests of one owner are carried out in order, even if a thread is stuck with the first of them.
bool runner::has_to_wait(const question& q) const noexcept {
  const auto same = [&](const question& other) {
    return other.what.command.owner == q.what.command.owner;
  };
  if (!q.what.command.owner) return false;
  if (std::any_of(behind_.begin(), behind_.end(), same)) return true;
  for (const batch* b = under_way_; b != nullptr; b = b->other) {
    if (std::any_of(b->asked.begin(), b->asked.end(), same)) return true;
  }
  return false;
}

void runner::answered(batch& mine) noexcept {
  batch** at = &under_way_;
  while (*at != &mine) at = &(*at)->other;
  *at = mine.other;
  asking_.splice(asking_.begin(), behind_);
  if (!leads()) rouse_leader();
}

// Without the memory to send the requests their outcome is reported as unknown, as if the replies
// were lost.
std::vector<result<store::permits_reply>> runner::ask(const std::list<question>& all) noexcept try {
  std::vector<store::named_command> questions;
  questions.reserve(all.size());
  for (const auto& q : all) questions.push_back(q.what);
  return session_.permits(questions);
} catch (...) {
  return {};
}

// ---- a step

// Registers a new operation under its owner before it asks: the grant may arrive immediately.
template <class Step>
void runner::take_step(held& lock, std::shared_ptr<operation> e, Step step) noexcept {
  bool over = false;
  e->busy_ = true;
  try {
    if (e->stage_ != operation::stage::known) {
      operations_.emplace(e->owner(), e);
      e->stage_ = operation::stage::known;
    }
    operation::next next;
    {
      const away with_it(*this, lock);
      const call_limit until{e->calls_until()};
      next = step(*e);
      if (!next.over && !next.ask) session_.dispatcher().rewatch(e->watching_, e->watched());
    }
    over = next.over;
    if (!over) go_on(*e, next);
  } catch (...) {
    const away with_it(*this, lock);
    over = e->broken();
  }
  e->busy_ = false;
  if (!leads()) rouse_leader();
  if (over) return end(lock, std::move(e));
  catch_up(lock, std::move(e));
}

void runner::go_on(operation& e, const operation::next& next) {
  if (next.ask) {
    asking_.push_back({e.shared_from_this(), *next.ask});
    e.asked_ = &asking_.back();
  } else {
    set_due(e, next.until);
  }
}

// Handles what arrived while the operation was busy, or was waiting for an answer.
void runner::catch_up(held& lock, std::shared_ptr<operation> e) noexcept {
  if (std::exchange(e->late_, false)) {
    leave_question(*e);
    return take_step(lock, std::move(e), [](operation& o) { return o.overdue(); });
  }
  if (e->asked_ != nullptr) return;
  if (std::exchange(e->woken_, false)) wake(e);
  if (!std::exchange(e->missed_, false)) return;
  take_step(lock, std::move(e), [](operation& o) { return o.take({}); });
}

// Abandons the operation's pending request. The keeper releases whatever it acquires, after the
// call.
void runner::leave_question(operation& e) noexcept {
  const question* const asked = std::exchange(e.asked_, nullptr);
  if (asked == nullptr) return;
  if (asked->sent) return session_.callers().left(asked->what.command.owner);
  const auto left = [&](const question& q) { return &q == asked; };
  if (asking_.remove_if(left) == 0) behind_.remove_if(left);
}

void runner::end(held& lock, std::shared_ptr<operation> e) noexcept {
  set_due(*e, forever);
  if (e->limit_) limits_.erase(*std::exchange(e->limit_, std::nullopt));
  e->stage_ = operation::stage::over;
  auto [first, last] = operations_.equal_range(e->owner());
  first = std::find_if(first, last, [&](const auto& one) { return one.second == e; });
  if (first != last) operations_.erase(first);
  const away letting_go(*this, lock);
  session_.dispatcher().rewatch(e->watching_, {});
  e.reset();
}

void runner::set_due(operation& e, boot_time when) {
  if (e.due_ == when) return;
  if (e.due_ != forever) times_.erase({e.due_, &e});
  e.due_ = when;
  if (when != forever) times_.emplace(when, &e);
}

}  // namespace holdfast::engine
