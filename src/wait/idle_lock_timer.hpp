#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>

#include "local/local_queue.hpp"
#include "session/worker.hpp"
#include "wait/wait_steps.hpp"

namespace holdfast::engine {

/// Releases idle locks when their linger time has passed, and immediately when the store reports
/// that a waiter wants them. One thread for each session, started with the first lock that lingers
/// or is shared. The thread runs a wait that is settled when the session ends. Thread-safe.
class idle_lock_timer final : public idle_locks, private request {
 public:
  /// `wanted` is called when another session wants a lock of this process.
  idle_lock_timer(store_client& session, std::function<void(const store::notification&)> wanted);
  ~idle_lock_timer() override;

  /// Has to be called before a lock that may linger is acquired. Fails with errc::unavailable if
  /// the system provides no thread.
  status start() noexcept;
  bool on_own_thread() const noexcept { return thread_.is_this_thread(); }

  void look_at(const std::shared_ptr<local_queue>& at, boot_time when) override;

 private:
  answer ask(bool last) override;
  bool notified(const store::notification& n) override;
  boot_time look_at_due();

  store_client& session_;
  const std::function<void(const store::notification&)> wanted_;
  std::mutex mutex_;
  std::multimap<boot_time, std::weak_ptr<local_queue>> due_;
  dispatcher::registration notifications_;
  std::atomic<bool> ending_{false};
  worker thread_;
};

}  // namespace holdfast::engine
