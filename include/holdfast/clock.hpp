#pragma once

#include <holdfast/cpp20.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace holdfast {

/// The clock that judges leases inside a process: CLOCK_BOOTTIME, nanoseconds since boot. It keeps
/// running while the machine is suspended, and nobody can set it. No wall clock is used.
struct boot_clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<boot_clock>;
  static constexpr bool is_steady = true;
  /// One system call in the vDSO. Thread-safe.
  static time_point now() noexcept;
};

using boot_time = boot_clock::time_point;

/// The latest point in time: "wait for ever".
inline constexpr boot_time forever = boot_time::max();

/// Any duration as nanoseconds, saturated instead of overflowing (hours::max() is "for ever"). NaN
/// is zero.
template <class Rep, class Period>
constexpr std::chrono::nanoseconds saturated_nanoseconds(std::chrono::duration<Rep, Period> d) {
  using wide = std::chrono::duration<long double, std::nano>;
  const wide exact{d};
  if (exact != exact) return std::chrono::nanoseconds::zero();
  if (!(exact < wide{std::chrono::nanoseconds::max()})) return std::chrono::nanoseconds::max();
  if (!(exact > wide{std::chrono::nanoseconds::min()})) return std::chrono::nanoseconds::min();
  return std::chrono::ceil<std::chrono::nanoseconds>(d);
}

/// `from + wait`, saturated: for a negative wait `from`, for a wait that would overflow `forever`.
/// Pass the wait in its own unit: converting it to nanoseconds before may overflow.
boot_time saturated_add(boot_time from, std::chrono::nanoseconds wait) noexcept;
template <class Rep, class Period>
boot_time saturated_add(boot_time from, std::chrono::duration<Rep, Period> wait) noexcept {
  return saturated_add(from, saturated_nanoseconds(wait));
}

/// Where the library takes its time from and where it sleeps. A session uses the real clock unless
/// its options name another one (see testing.hpp for a fake). All functions are thread-safe.
class clock {
 public:
  virtual ~clock() = default;
  virtual boot_time now() const noexcept = 0;
  /// Waits on `cv` until it is notified, or this clock reaches `until`; may return early.
  virtual void wait_until(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                          boot_time until) = 0;
  /// How long a system call (poll, say) may sleep for a wait that ends at `until` on this clock:
  /// a fake clock answers "for ever" and calls the functions given to on_advance() instead.
  virtual std::chrono::nanoseconds sleep_for(boot_time until) const noexcept = 0;
  /// Calls `wake` whenever the clock jumped; never for the real clock. Returns an id for forget().
  virtual int on_advance(std::function<void()> wake) = 0;
  virtual void forget(int id) noexcept = 0;
};

/// The machine's own clock.
clock& real_clock() noexcept;

namespace detail {
/// The time by the clock of the lock's session, if it has one; else the machine's.
template <class Lock>
boot_time now_of(const Lock& lock) {
  if constexpr (requires { clock_of(lock); }) {
    return clock_of(lock).now();
  } else {
    return boot_clock::now();
  }
}
}  // namespace detail

}  // namespace holdfast
