#include "engine/gate.hpp"

#include <algorithm>

#include "engine/spec.hpp"

namespace holdfast::engine {

namespace {

// So long the first in line waits awake for its turn: less than falling asleep again costs.
constexpr int spins = 200;

/// Who has less time left than this asks for itself.
constexpr std::chrono::seconds taken_along_with{1};

void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

gate::entry entry_of(contender::at_gate end, bool stopped) {
  switch (end) {
    case contender::at_gate::first:
      return gate::entry::first;
    case contender::at_gate::passed:
      return gate::entry::passed;
    case contender::at_gate::gone:
      return stopped ? gate::entry::cancelled : gate::entry::timed_out;
    default:
      return gate::entry::asked;
  }
}

}  // namespace

gate::entry gate::join(contender& who, boot_time deadline) {
  std::unique_lock lock{mutex_};
  while (line_.empty() && idle_) {
    auto lingering = std::exchange(idle_, nullptr);
    if (lingering->fits(who.spec_)) {
      who.passed_ = std::move(lingering);
      return entry::passed;
    }
    lock.unlock();
    lingering->give_back();
    lock.lock();
  }
  if (!occupied_) {
    occupied_ = true;
    return entry::first;
  }
  if (clock_.now() >= deadline) return entry::timed_out;
  if (line_.size() >= who.spec_.max_waiters) return entry::overloaded;
  who.at_gate_ = contender::at_gate::waiting;
  who.deadline_ = deadline;
  if (line_.empty()) bypassed_ = 0;
  who.place_ = line_.insert(line_.end(), &who);
  return entry::waiting;
}

gate::entry gate::enter(contender& who, boot_time deadline, std::stop_token stop) {
  if (const entry at = join(who, deadline); at != entry::waiting) return at;
  const std::stop_callback on_stop{stop, [&] {
                                     const std::lock_guard guard{mutex_};
                                     who.rouse();
                                   }};
  std::unique_lock lock{mutex_};
  std::shared_ptr<transferable> left_behind;
  while (still_waits(lock, who, deadline, stop, left_behind)) {
    const bool chosen = who.at_gate_ == contender::at_gate::chosen;
    clock_.wait_until(lock, who.changed_, chosen ? forever : deadline);
  }
  lock.unlock();  // before on_stop goes: it may have to wait for a callback that wants the mutex
  if (left_behind) left_behind->give_back();
  return entry_of(who.at_gate_, stop.stop_requested());
}

gate::entry gate::look(contender& who, boot_time deadline, const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  std::shared_ptr<transferable> left_behind;
  if (still_waits(lock, who, deadline, stop, left_behind)) return entry::waiting;
  lock.unlock();
  if (left_behind) left_behind->give_back();
  return entry_of(who.at_gate_, stop.stop_requested());
}

// One who was chosen waits for what comes of it, whatever happens.
bool gate::still_waits(std::unique_lock<std::mutex>& lock, contender& who, boot_time deadline,
                       const std::stop_token& stop, std::shared_ptr<transferable>& left_behind) {
  while (who.at_gate_ == contender::at_gate::waiting) {
    if (!stop.stop_requested()) {
      if (own_turn(lock, who)) continue;
      if (clock_.now() < deadline) return true;
    }
    left_behind = step_out(who);
  }
  return who.at_gate_ == contender::at_gate::chosen;
}

// True if something may have changed.
bool gate::own_turn(std::unique_lock<std::mutex>& lock, contender& who) {
  if (line_.front() != &who) return false;
  if (idle_ && idle_->fits(who.spec_)) {
    give_first(std::exchange(idle_, nullptr));
    return true;
  }
  if (first_ != summons::called) return false;
  first_ = summons::insists;
  if (who.waker_ != nullptr) return true;  // its thread has others to see to
  lock.unlock();
  for (int i = 0; i < spins && who.at_gate_ == contender::at_gate::waiting; ++i) relax();
  lock.lock();
  return true;
}

// What was idle for it is for the next in line; for nobody if there is none: the caller ends it.
std::shared_ptr<transferable> gate::step_out(contender& who) {
  who.at_gate_ = contender::at_gate::gone;
  if (line_.front() != &who) {
    line_.erase(who.place_);
    return nullptr;
  }
  next_in_line();
  if (!idle_) return nullptr;
  if (line_.empty() || !idle_->fits(line_.front()->spec_)) return std::exchange(idle_, nullptr);
  call_first();
  return nullptr;
}

contender& gate::next_in_line() {
  contender& next = *line_.front();
  line_.pop_front();
  first_ = summons::none;
  bypassed_ = 0;
  return next;
}

void gate::call_first() {
  if (first_ != summons::none) return;
  first_ = summons::called;
  line_.front()->rouse();
}

void gate::give_first(std::shared_ptr<transferable> what) {
  contender& next = next_in_line();
  next.passed_ = std::move(what);
  next.at_gate_ = contender::at_gate::passed;
  next.rouse();
}

std::shared_ptr<transferable> gate::take_idle(const spec& wanted) {
  const std::lock_guard guard{mutex_};
  if (!idle_ || !idle_->fits(wanted)) return nullptr;
  ++bypassed_;
  return std::exchange(idle_, nullptr);
}

bool gate::pass_on(std::shared_ptr<transferable>& done) {
  const std::lock_guard guard{mutex_};
  if (line_.empty()) {
    if (expected_ == 0 || wanted_ == done->owner() || !done->lingers()) return false;
    idle_ = std::move(done);
    if (!std::exchange(looked_after_, true)) have_it_looked_after();
    return true;
  }
  if (!done->fits(line_.front()->spec_) || !done->stays_in_process(clock_.now())) return false;
  if (first_ == summons::insists || bypassed_ >= line_.front()->spec_.max_bypass) {
    give_first(std::move(done));
  } else {
    idle_ = std::move(done);
    call_first();
  }
  return true;
}

// Turns that follow each other closely cost no look at the clock: linger_watch looks twice in the
// time, and what had no turn for half of it since a look has been idle for that long at least.
void gate::have_it_looked_after() {
  const auto now = clock_.now();
  idle_turn_ = idle_->fence();
  idle_ends_ = saturated_add(now, idle_->linger());
  idle_->linger_until(saturated_add(now, idle_->linger() / 2));
}

gate::lapsed gate::lapse() {
  const std::lock_guard guard{mutex_};
  looked_after_ = idle_ && line_.empty();
  if (!looked_after_) return {};
  const auto now = clock_.now();
  if (std::exchange(idle_turn_, idle_->fence()) != idle_->fence()) {
    idle_ends_ = saturated_add(now, idle_->linger() / 2);
  }
  if (now < idle_ends_) return {nullptr, idle_ends_};
  looked_after_ = false;
  return {std::exchange(idle_, nullptr), forever};
}

std::shared_ptr<transferable> gate::wanted(const store::owner_id& held) {
  const std::lock_guard guard{mutex_};
  wanted_ = held;
  const bool unused = idle_ && line_.empty() && idle_->owner() == held;
  return unused ? std::exchange(idle_, nullptr) : nullptr;
}

void gate::expect_one() {
  const std::lock_guard guard{mutex_};
  ++expected_;
}

std::shared_ptr<transferable> gate::expect_one_less() {
  const std::lock_guard guard{mutex_};
  return --expected_ == 0 && line_.empty() ? std::exchange(idle_, nullptr) : nullptr;
}

void gate::leave() {
  std::unique_lock lock{mutex_};
  const auto lost = std::exchange(idle_, nullptr);
  if (line_.empty()) {
    occupied_ = false;
  } else {
    contender& next = next_in_line();
    next.at_gate_ = contender::at_gate::first;
    next.rouse();
  }
  lock.unlock();
  if (lost) lost->forget();
}

contender* gate::take_next() {
  const std::lock_guard guard{mutex_};
  if (line_.empty()) return nullptr;
  // It must not wait for longer than its deadline allows, and who asks for it must not be cut
  // short.
  const boot_time at_least = saturated_add(clock_.now(), taken_along_with);
  if (line_.front()->deadline_ < at_least) return nullptr;
  contender& next = next_in_line();
  next.at_gate_ = contender::at_gate::chosen;
  return &next;
}

void gate::hand_to(contender& next) {
  const std::lock_guard guard{mutex_};
  next.at_gate_ = contender::at_gate::asked;
  next.rouse();
}

std::size_t gate::waiting() {
  const std::lock_guard guard{mutex_};
  return line_.size();
}

}  // namespace holdfast::engine
