#pragma once

#include <condition_variable>
#include <holdfast/clock.hpp>
#include <mutex>

#include "session/waker.hpp"

namespace holdfast::engine {

/// A thread that sleeps until a time, or until it is woken.
class sleeper final : public waker {
 public:
  explicit sleeper(clock& on) : clock_(on) {}
  void wake() noexcept override {
    const std::lock_guard guard{mutex_};
    woken_ = true;
    changed_.notify_one();
  }
  void sleep(boot_time until) {
    std::unique_lock lock{mutex_};
    while (!woken_ && clock_.now() < until) clock_.wait_until(lock, changed_, until);
    woken_ = false;
  }

 private:
  clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
};

}  // namespace holdfast::engine
