#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/store/command.hpp>
#include <holdfast/timed.hpp>
#include <list>
#include <mutex>
#include <set>
#include <thread>

namespace holdfast::engine {

using detail::call_limit;
using detail::last_answer_within;
using detail::time_frame;
using detail::timed_call;

/// Whether the calling thread has abandoned a store call at its call_limit, since it last set this
/// to false.
bool& left_a_call() noexcept;

/// Threads that make calls whose caller may leave before they end, because a driver that waits for
/// an unresponsive server cannot be interrupted. There are as many threads as such calls at a time;
/// idle threads end after a while. Thread-safe.
class callers {
 public:
  callers() = default;
  /// Waits for the calls under way.
  ~callers() { close(); }
  callers(const callers&) = delete;
  callers& operator=(const callers&) = delete;

  /// Makes a thread carry out the call, which must not throw. Fails with errc::unavailable if the
  /// system provides no thread. `owner`, if any, is the owner on whose behalf the call is made.
  status start(const store::owner_id& owner, std::function<void()> call) noexcept;
  /// Whether a call on behalf of that owner is under way. A release of what the call may acquire
  /// has to follow it.
  bool call_for(const store::owner_id& owner) const;
  /// For calls of another thread, which reports when it abandons the call, and when the call has
  /// ended.
  void left(const store::owner_id& owner) noexcept;
  void ended(const store::owner_id& owner) noexcept;
  /// While it exists, a call on behalf of that owner counts as under way. Throws std::bad_alloc.
  class under_way;
  /// Whether the calling thread is one of these threads.
  bool on_own_thread() const noexcept;

  void close() noexcept;

 private:
  struct task {
    store::owner_id owner;
    std::function<void()> call;
  };
  void work();
  void carry_out_first(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable ended_;
  std::deque<task> tasks_;
  std::multiset<store::owner_id> owners_;
  std::size_t idle_ = 0;
  bool closing_ = false;
  std::list<std::thread> threads_;
  std::list<std::thread> over_;  ///< ended threads, to be joined
};

class callers::under_way {
 public:
  under_way(callers& of, const store::owner_id& owner);
  ~under_way();
  under_way(const under_way&) = delete;
  under_way& operator=(const under_way&) = delete;

 private:
  callers& of_;
  const store::owner_id owner_;
};

}  // namespace holdfast::engine
