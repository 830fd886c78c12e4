#pragma once

#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <map>
#include <memory>
#include <mutex>

#include "local/local_queue.hpp"
#include "session/dispatcher.hpp"
#include "session/worker.hpp"

namespace holdfast::engine {

class store_client;

/// Looks after what the process keeps though no thread uses it (lock_options::linger): gives it
/// back when its time is over, and passes it on at once when the store says that somebody wants
/// it. One thread for a session, started with the first lock that lingers or shares. Thread-safe.
class idle_lock_timer {
 public:
  /// `wanted`: somebody elsewhere wants what this process has.
  idle_lock_timer(store_client& session, std::function<void(const store::notification&)> wanted);
  ~idle_lock_timer();

  /// Before anything is taken that may linger. errc::unavailable if the system gives no thread.
  status start() noexcept;
  bool on_own_thread() const noexcept { return thread_.is_this_thread(); }

  /// The time of what is idle at the local queue may be over then.
  void look_at(const std::shared_ptr<local_queue>& at, boot_time when);

 private:
  void run();
  bool stopping();
  boot_time look_at_due();

  store_client& session_;
  const std::function<void(const store::notification&)> wanted_;
  std::mutex mutex_;
  std::multimap<boot_time, std::weak_ptr<local_queue>> due_;
  dispatcher::registration notifications_;
  bool stopping_ = false;
  worker thread_;
};

}  // namespace holdfast::engine
