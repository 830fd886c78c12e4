#pragma once

#include <chrono>
#include <holdfast/clock.hpp>

namespace holdfast {

/// How long to wait, in one type for all the timed forms.
using wait_time = std::chrono::nanoseconds;
inline constexpr wait_time one_try = wait_time::zero();
inline constexpr wait_time no_limit = wait_time::max();

/// Any duration, saturated; zero or less is one try. A wait with a deadline ends at most a tenth of
/// a second after it, whatever the store does; a try lasts as long as the store's own time-outs.
template <class Rep, class Period>
constexpr wait_time wait_for(const std::chrono::duration<Rep, Period>& timeout) {
  const auto wait = saturated_nanoseconds(timeout);
  return wait > one_try ? wait : one_try;
}

/// A time point of any clock, converted once: later steps of that clock change nothing.
template <class Clock, class Duration>
wait_time wait_until(const std::chrono::time_point<Clock, Duration>& deadline) {
  using wide = std::chrono::duration<long double, std::nano>;
  return wait_for(wide{deadline.time_since_epoch()} - wide{Clock::now().time_since_epoch()});
}

/// How long an asynchronous operation may take: for so long, until then, or without a limit.
class wait_limit {
 public:
  constexpr wait_limit() noexcept = default;
  template <class Rep, class Period>
  constexpr wait_limit(const std::chrono::duration<Rep, Period>& timeout)
      : wait_(holdfast::wait_for(timeout)) {}
  template <class Clock, class Duration>
  wait_limit(const std::chrono::time_point<Clock, Duration>& deadline)
      : wait_(holdfast::wait_until(deadline)) {}
  constexpr wait_time wait() const noexcept { return wait_; }

 private:
  wait_time wait_ = no_limit;
};

template <class T>
class pending;  // async.hpp

}  // namespace holdfast
