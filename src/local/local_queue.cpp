#include "local/local_queue.hpp"

#include <algorithm>
#include <holdfast/timed.hpp>

#include "session/lock_config.hpp"

namespace holdfast::engine {

namespace {

// For so many spins the first waiter stays awake for its turn, which costs less than falling asleep
// again.
constexpr int spins = 200;

/// A waiter that has less time left asks the store itself.
constexpr std::chrono::seconds taken_along_with{1};

void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void transferable::give_back_soon(boot_time now) noexcept {
  const detail::call_limit until{saturated_add(now, detail::last_answer_within)};
  give_back();
}

// A waiter that was given a hold which was lost before its turn is the first in line again. An idle
// hold of other terms goes back to the store first. Meanwhile its taker is in line, so that no
// thread that comes later passes it.
local_queue::entry local_queue::join(contender& who, boot_time deadline) {
  std::unique_lock lock{mutex_};
  const bool again = who.in_local_queue_ == entry::passed;
  const bool finds_idle = idle_ && (again || line_.empty());
  if (finds_idle && idle_->fits(who.config_)) {
    who.passed_ = std::exchange(idle_, nullptr);
    return who.in_local_queue_ = entry::passed;
  }
  if (!occupied_) {
    occupied_ = true;
    return entry::first;
  }
  if (!finds_idle && clock_.now() >= deadline) return entry::gone;
  if (!finds_idle && !again && behind_another() >= who.config_.max_waiters)
    return entry::overloaded;
  who.entry_ = line_.insert(again ? line_.begin() : line_.end(), &who);
  who.in_local_queue_ = entry::waiting;
  who.deadline_ = deadline;
  who.asks_next_ = finds_idle;
  if (line_.front() == &who) first_not_called();
  if (!finds_idle) return entry::waiting;
  const auto unfit = std::exchange(idle_, nullptr);
  lock.unlock();
  unfit->give_back_soon(clock_.now());
  return entry::waiting;
}

// The number of waiters, without the one that represents the process as soon as the idle hold that
// it found is back.
std::size_t local_queue::behind_another() const {
  return line_.size() - (!line_.empty() && line_.front()->asks_next_ ? 1 : 0);
}

local_queue::entry local_queue::sleep(contender& who, boot_time deadline, std::stop_token stop) {
  const std::stop_callback on_stop{stop, [&] {
                                     const std::lock_guard guard{mutex_};
                                     who.rouse();
                                   }};
  std::unique_lock lock{mutex_};
  std::shared_ptr<transferable> left_behind;
  while (still_waits(lock, who, deadline, stop, left_behind)) {
    const bool chosen = who.in_local_queue_ == entry::chosen;
    clock_.wait_until(lock, who.changed_, chosen ? forever : deadline);
  }
  lock.unlock();  // before on_stop is destroyed, which may wait for a callback that needs the mutex
  if (left_behind) left_behind->give_back_soon(clock_.now());
  return who.in_local_queue_;
}

local_queue::entry local_queue::look(contender& who, boot_time deadline,
                                     const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  std::shared_ptr<transferable> left_behind;
  if (still_waits(lock, who, deadline, stop, left_behind)) {
    return who.in_local_queue_;
  }
  lock.unlock();
  if (left_behind) left_behind->give_back_soon(clock_.now());
  return who.in_local_queue_;
}

// A chosen waiter waits for the result, whatever happens.
bool local_queue::still_waits(std::unique_lock<std::mutex>& lock, contender& who,
                              boot_time deadline, const std::stop_token& stop,
                              std::shared_ptr<transferable>& left_behind) {
  while (who.in_local_queue_ == entry::waiting) {
    if (!stop.stop_requested()) {
      if (own_turn(lock, who)) continue;
      if (clock_.now() < deadline) return true;
    }
    left_behind = step_out(who);
  }
  return who.in_local_queue_ == entry::chosen;
}

// Returns true if something may have changed.
bool local_queue::own_turn(std::unique_lock<std::mutex>& lock, contender& who) {
  if (line_.front() != &who) return false;
  if (idle_ && idle_->fits(who.config_)) {
    give_first(std::exchange(idle_, nullptr));
    return true;
  }
  if (first_ != summons::called) return false;
  first_ = summons::insists;
  if (who.waker_ != nullptr) return true;  // its thread has other operations to run
  lock.unlock();
  for (int i = 0; i < spins && who.in_local_queue_ == entry::waiting; ++i) relax();
  lock.lock();
  return true;
}

// Removes the waiter. If a hold was idle for it, the next waiter is called. If there is none, or
// the hold does not fit it, the hold is returned, and the caller ends it.
std::shared_ptr<transferable> local_queue::step_out(contender& who) {
  who.in_local_queue_ = entry::gone;
  if (line_.front() != &who) {
    line_.erase(who.entry_);
    return nullptr;
  }
  next_in_line();
  if (!idle_) return nullptr;
  if (line_.empty() || !idle_->fits(line_.front()->config_)) return std::exchange(idle_, nullptr);
  call_first();
  return nullptr;
}

contender& local_queue::next_in_line() {
  contender& next = *line_.front();
  line_.pop_front();
  first_not_called();
  return next;
}

void local_queue::first_not_called() {
  first_ = summons::none;
  bypassed_ = 0;
}

void local_queue::call_first() {
  if (first_ != summons::none) return;
  first_ = summons::called;
  line_.front()->rouse();
}

void local_queue::give_first(std::shared_ptr<transferable> what) {
  contender& next = next_in_line();
  next.passed_ = std::move(what);
  next.in_local_queue_ = entry::passed;
  next.rouse();
}

std::shared_ptr<transferable> local_queue::take_idle(const lock_config& wanted) {
  const std::lock_guard guard{mutex_};
  if (!idle_ || !idle_->fits(wanted)) return nullptr;
  ++bypassed_;
  return std::exchange(idle_, nullptr);
}

bool local_queue::pass_on(std::shared_ptr<transferable>& done, departure* watched) {
  const std::lock_guard guard{mutex_};
  if (line_.empty()) {
    if (expected_ == 0 || wanted_ == done->owner() || !done->lingers(clock_.now())) return false;
    if (watched != nullptr) watched->about_to_leave();
    idle_ = std::move(done);
    used_again_ = true;
    if (looked_after_ || have_it_looked_after()) return true;
    done = std::exchange(idle_, nullptr);
    return false;
  }
  if (!done->fits(line_.front()->config_) || !done->stays_in_process(clock_.now())) return false;
  if (watched != nullptr) watched->about_to_leave();
  if (first_ == summons::insists || bypassed_ >= line_.front()->config_.max_bypass) {
    give_first(std::move(done));
  } else {
    idle_ = std::move(done);
    call_first();
  }
  return true;
}

// Sets a timer for the idle hold. Turns in quick succession set no further timer: idle_lock_timer
// checks twice in the linger time, and a hold without a turn for half of that time since a check
// has been idle for at least that long. Without memory for the timer nothing lingers.
bool local_queue::have_it_looked_after() noexcept try {
  const auto now = clock_.now();
  used_again_ = false;
  idle_ends_ = saturated_add(now, idle_->linger());
  idle_locks_.look_at(shared_from_this(), saturated_add(now, idle_->linger() / 2));
  return looked_after_ = true;
} catch (...) {
  return false;
}

local_queue::lapsed local_queue::lapse() {
  const std::lock_guard guard{mutex_};
  looked_after_ = idle_ && line_.empty();
  if (!looked_after_) return {};
  const auto now = clock_.now();
  if (std::exchange(used_again_, false)) idle_ends_ = saturated_add(now, idle_->linger() / 2);
  if (now < idle_ends_) return {nullptr, idle_ends_};
  looked_after_ = false;
  return {std::exchange(idle_, nullptr), forever};
}

std::shared_ptr<transferable> local_queue::wanted(const store::owner_id& held) {
  const std::lock_guard guard{mutex_};
  wanted_ = held;
  const bool unused = idle_ && line_.empty() && idle_->owner() == held;
  return unused ? std::exchange(idle_, nullptr) : nullptr;
}

void local_queue::expect_one() {
  const std::lock_guard guard{mutex_};
  ++expected_;
}

std::shared_ptr<transferable> local_queue::expect_one_less() {
  const std::lock_guard guard{mutex_};
  return --expected_ == 0 && line_.empty() ? std::exchange(idle_, nullptr) : nullptr;
}

void local_queue::leave() {
  std::unique_lock lock{mutex_};
  const auto lost = std::exchange(idle_, nullptr);
  if (line_.empty()) {
    occupied_ = false;
  } else {
    contender& next = next_in_line();
    next.in_local_queue_ = entry::first;
    next.rouse();
  }
  lock.unlock();
  if (lost) lost->forget();
}

contender* local_queue::take_next() {
  const std::lock_guard guard{mutex_};
  if (line_.empty()) return nullptr;
  // The waiter must not wait beyond its deadline, and the thread that asks for it must not have its
  // call cut short.
  const boot_time at_least = saturated_add(clock_.now(), taken_along_with);
  if (line_.front()->deadline_ < at_least) return nullptr;
  contender& next = next_in_line();
  next.in_local_queue_ = entry::chosen;
  return &next;
}

void local_queue::hand_to(contender& next) {
  const std::lock_guard guard{mutex_};
  next.in_local_queue_ = entry::asked;
  next.rouse();
}

bool local_queue::give_up(contender& who) noexcept {
  using at = entry;
  std::unique_lock lock{mutex_};
  const at now = who.in_local_queue_;
  if (now == at::chosen) return false;
  const auto unused = now == at::waiting ? step_out(who) : std::move(who.passed_);
  who.in_local_queue_ = at::gone;
  lock.unlock();
  if (unused) unused->give_back();
  if (now == at::first || now == at::asked) leave();
  return true;
}

std::size_t local_queue::waiting() {
  const std::lock_guard guard{mutex_};
  return line_.size();
}

}  // namespace holdfast::engine
