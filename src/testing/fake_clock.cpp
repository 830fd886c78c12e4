#include <algorithm>
#include <atomic>
#include <holdfast/testing.hpp>
#include <map>

namespace holdfast::testing {

struct fake_clock::state {
  std::atomic<boot_time> now{boot_time(std::chrono::hours(1))};
  std::mutex calling;  // locked before the other one
  std::mutex mutex;
  std::condition_variable left;
  std::map<int, std::function<void()>> wakers;
  /// Linked without memory, because waiting on the machine's own clock needs none.
  struct sleeper {
    std::mutex* mutex;
    std::condition_variable* cv;
    boot_time until;
    bool told = false;
    sleeper* next = nullptr;
    sleeper* previous = nullptr;
  };
  sleeper* sleepers = nullptr;
  int last_id = 0;

  void enter(sleeper& s) noexcept {
    s.next = sleepers;
    if (sleepers != nullptr) sleepers->previous = &s;
    sleepers = &s;
  }
  void leave(sleeper& s) noexcept {
    (s.previous != nullptr ? s.previous->next : sleepers) = s.next;
    if (s.next != nullptr) s.next->previous = s.previous;
  }
};

fake_clock::fake_clock() : state_(new state) {}
fake_clock::~fake_clock() = default;

boot_time fake_clock::now() const noexcept { return state_->now.load(); }

// A wait that is over is notified under its own mutex, so that no thread misses the notification
// between checking the time and going to sleep. The other waits are not woken, because that would
// hide a lost wake-up.
void fake_clock::advance(std::chrono::nanoseconds by) {
  for (boot_time then = now(); !state_->now.compare_exchange_weak(then, saturated_add(then, by));) {
  }
  {
    const std::lock_guard calls{state_->calling};
    std::unique_lock guard{state_->mutex};
    const auto wakers = state_->wakers;
    guard.unlock();
    for (const auto& entry : wakers) entry.second();
  }
  std::unique_lock lock{state_->mutex};
  for (bool again = true; again;) {
    again = false;
    for (auto* s = state_->sleepers; s != nullptr; s = s->next) {
      if (s->told || s->until > now()) continue;
      if (!s->mutex->try_lock()) {
        again = true;
        continue;
      }
      s->told = true;
      s->cv->notify_all();
      s->mutex->unlock();
    }
    // Its mutex is held by a thread that is entering or leaving its wait: lets that thread go on.
    if (again) state_->left.wait_for(lock, std::chrono::milliseconds(1));
  }
}

boot_time fake_clock::next_wake() const noexcept {
  const std::lock_guard guard{state_->mutex};
  boot_time first = forever;
  for (const auto* s = state_->sleepers; s != nullptr; s = s->next)
    // Otherwise the sleeper is leaving its wait.
    if (s->until > now()) first = std::min(first, s->until);
  return first;
}

void fake_clock::wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                            boot_time until) {
  state::sleeper me{lock.mutex(), &cv, until};
  {
    const std::lock_guard guard{state_->mutex};
    state_->enter(me);
  }
  if (now() < until) cv.wait(lock);
  const std::lock_guard guard{state_->mutex};
  state_->leave(me);
  state_->left.notify_all();
}

std::chrono::nanoseconds fake_clock::sleep_for(boot_time until) const noexcept {
  return until <= now() ? std::chrono::nanoseconds::zero() : std::chrono::nanoseconds::max();
}

int fake_clock::on_advance(std::function<void()> wake) {
  const std::lock_guard guard{state_->mutex};
  state_->wakers.emplace(++state_->last_id, std::move(wake));
  return state_->last_id;
}

// When this returns, the waker is not called any more, and no call of it is under way.
void fake_clock::forget(int id) noexcept {
  const std::lock_guard calls{state_->calling};
  const std::lock_guard guard{state_->mutex};
  state_->wakers.erase(id);
}

}  // namespace holdfast::testing
