#pragma once

#include <atomic>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "session/no_thread.hpp"

namespace holdfast::engine {

/// A thread that is started on its first use. Thread-safe.
class worker {
 public:
  /// Starts the thread, unless it runs already. Fails with errc::unavailable if the system provides
  /// no thread; `purpose` is, for example, "to renew leases with".
  template <class Run>
  status start(std::string_view purpose, Run run) noexcept try {
    if (started_.load(std::memory_order_acquire)) return done{};
    const std::lock_guard guard{mutex_};
    if (started_) return done{};
    thread_ = std::thread(std::move(run));
    started_.store(true, std::memory_order_release);
    return done{};
  } catch (...) {
    return no_thread(purpose);
  }

  bool is_this_thread() const noexcept { return thread_.get_id() == std::this_thread::get_id(); }
  /// Waits for the thread's end. The thread must have been asked to end before.
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  /// Called on the thread itself, in place of join(): a thread cannot wait for its own end.
  /// Everything that the thread uses must outlive it.
  void let_go() { thread_.detach(); }

 private:
  std::mutex mutex_;
  std::atomic<bool> started_{false};
  std::thread thread_;
};

}  // namespace holdfast::engine
