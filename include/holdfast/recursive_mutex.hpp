#pragma once

#include <cstdint>
#include <holdfast/mutex.hpp>

namespace holdfast {

/// A mutex that may be locked again by the thread that holds it. The levels are counted in the
/// process: only the first lock and the last unlock go to the store, and the fence is the same at
/// all levels. One object is one identity: two recursive_mutex objects of the same name exclude
/// each other. Meets Lockable and TimedLockable. Thread-safe. Errors and costs as mutex; a level
/// above 2^31 throws errc::overloaded. If the stop was requested before the call, lock() takes no
/// level.
class recursive_mutex {
 public:
  recursive_mutex(session s, std::string name, lock_options options = {});
  recursive_mutex(const recursive_mutex&) = delete;
  recursive_mutex& operator=(const recursive_mutex&) = delete;
  ~recursive_mutex();

  void lock() { (void)lock_within(no_limit, {}); }
  [[nodiscard]] bool try_lock() { return lock_within(one_try, {}); }
  [[nodiscard]] bool try_lock_for(any_duration timeout) { return lock_within(timeout.wait, {}); }
  [[nodiscard]] bool try_lock_until(any_time_point t) { return lock_within(t.wait, {}); }
  [[nodiscard]] bool lock(std::stop_token stop) { return lock_within(no_limit, std::move(stop)); }
  /// Ends one level; at the last one it releases the lock. Never throws. If the calling thread does
  /// not hold the lock, it only reports an event.
  void unlock() noexcept;

  /// How many levels this thread holds. No round trip.
  std::uint32_t level() const noexcept;
  /// As in mutex: about this thread's hold. No round trip.
  std::uint64_t fence() const noexcept;
  void check() const;
  std::stop_token lost() const;
  const std::string& name() const noexcept;

 private:
  friend clock& clock_of(const recursive_mutex& m) noexcept;
  bool lock_within(wait_time wait, std::stop_token stop);
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace holdfast
