#include "session/callers.hpp"

#include <algorithm>

#include "session/no_thread.hpp"

namespace holdfast {

namespace {
thread_local boot_time thread_limit = forever;
/// The time until which the present operation waits for requests that it sent when its limit was
/// near or over; zero before the first such request.
thread_local boot_time late_until{};
thread_local bool call_was_left = false;
constexpr std::chrono::milliseconds answer_at_least{20};
}  // namespace

detail::call_limit::call_limit(boot_time until) noexcept
    : before_(thread_limit), late_before_(late_until) {
  thread_limit = std::min(before_, until);
  if (before_ == forever) late_until = {};
}
detail::call_limit::call_limit(none) noexcept : before_(thread_limit), late_before_(late_until) {
  thread_limit = forever;
}
// The extra time that an inner limit has used is not available again to the outer one.
detail::call_limit::~call_limit() {
  if (before_ == forever || thread_limit == forever) late_until = late_before_;
  thread_limit = before_;
}
boot_time detail::call_limit::present() noexcept { return thread_limit; }
boot_time detail::call_limit::answer_by(boot_time now) noexcept {
  const boot_time at_least = now + answer_at_least;
  if (at_least <= thread_limit) return thread_limit;
  if (late_until == boot_time{}) late_until = at_least;
  return std::max(thread_limit, late_until);
}

namespace engine {

using namespace std::chrono_literals;

namespace {
thread_local const callers* works_for = nullptr;
/// An idle thread ends after this time.
constexpr auto idle_for = 10s;
}  // namespace

bool& left_a_call() noexcept { return call_was_left; }

status callers::start(const store::owner_id& owner, std::function<void()> call) noexcept try {
  std::list<std::thread> over;
  {
    const std::lock_guard guard{mutex_};
    over.swap(over_);
    const auto mine = owners_.insert(owner);
    try {
      tasks_.push_back({owner, std::move(call)});
    } catch (...) {
      owners_.erase(mine);
      throw;
    }
    try {
      if (idle_ < tasks_.size()) threads_.emplace_back([this] { work(); });
      changed_.notify_one();
    } catch (...) {
      tasks_.pop_back();
      owners_.erase(mine);
      over_.splice(over_.end(), over);
      throw;
    }
  }
  for (std::thread& t : over) t.join();
  return done{};
} catch (...) {
  return no_thread("to wait for the store with");
}

bool callers::call_for(const store::owner_id& owner) const {
  const std::lock_guard guard{mutex_};
  return owners_.contains(owner);
}

void callers::left(const store::owner_id& owner) noexcept try {
  const std::lock_guard guard{mutex_};
  owners_.insert(owner);
} catch (...) {
  return;  // no memory: whatever it acquires stays until its lease ends
}

void callers::ended(const store::owner_id& owner) noexcept {
  const std::lock_guard guard{mutex_};
  if (const auto found = owners_.find(owner); found != owners_.end()) owners_.erase(found);
}

callers::under_way::under_way(callers& of, const store::owner_id& owner) : of_(of), owner_(owner) {
  const std::lock_guard guard{of_.mutex_};
  of_.owners_.insert(owner_);
}

callers::under_way::~under_way() { of_.ended(owner_); }

void callers::close() noexcept {
  std::unique_lock lock{mutex_};
  closing_ = true;
  changed_.notify_all();
  while (!threads_.empty()) ended_.wait(lock);
  for (std::thread& t : over_) t.join();
  over_.clear();
}

void callers::carry_out_first(std::unique_lock<std::mutex>& lock) {
  const store::owner_id owner = tasks_.front().owner;
  {
    const auto call = std::move(tasks_.front().call);
    tasks_.pop_front();
    lock.unlock();
    call();
  }
  lock.lock();
  owners_.erase(owners_.find(owner));
}

bool callers::on_own_thread() const noexcept { return works_for == this; }

void callers::work() {
  works_for = this;
  std::unique_lock lock{mutex_};
  while (true) {
    if (!tasks_.empty()) {
      carry_out_first(lock);
      continue;
    }
    if (closing_) break;
    ++idle_;
    const bool woken =
        changed_.wait_for(lock, idle_for, [&] { return !tasks_.empty() || closing_; });
    --idle_;
    if (!woken) break;
  }
  const auto me = std::find_if(threads_.begin(), threads_.end(), [](const std::thread& t) {
    return t.get_id() == std::this_thread::get_id();
  });
  over_.splice(over_.end(), threads_, me);
  ended_.notify_all();
}

}  // namespace engine
}  // namespace holdfast
