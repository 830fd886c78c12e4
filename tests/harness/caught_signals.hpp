#pragma once

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>

namespace harness {

/// While this object lives, the thread that made it catches a signal every millisecond, and no
/// system call continues by itself after one (no SA_RESTART). One object at a time.
class caught_signals {
 public:
  caught_signals() {
    caught_ = 0;
    struct sigaction action{};
    action.sa_handler = [](int) { ++caught_; };
    check(::sigaction(SIGUSR1, &action, &before_));
    sigevent to_this_thread{};
    to_this_thread.sigev_notify = SIGEV_THREAD_ID;
    to_this_thread.sigev_signo = SIGUSR1;
    to_this_thread._sigev_un._tid = ::gettid();
    check(::timer_create(CLOCK_MONOTONIC, &to_this_thread, &timer_));
    const itimerspec each_millisecond{{0, 1'000'000}, {0, 1'000'000}};
    check(::timer_settime(timer_, 0, &each_millisecond, nullptr));
  }
  ~caught_signals() {
    ::timer_delete(timer_);
    ::sigaction(SIGUSR1, &before_, nullptr);
  }
  caught_signals(const caught_signals&) = delete;
  caught_signals& operator=(const caught_signals&) = delete;

  static int count() noexcept { return caught_; }

 private:
  static void check(int outcome) {
    if (outcome != 0) throw std::system_error(errno, std::generic_category(), "signals");
  }

  inline static std::atomic<int> caught_{0};
  struct sigaction before_{};
  timer_t timer_{};
};

}  // namespace harness
