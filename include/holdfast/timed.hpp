#pragma once

#include <chrono>
#include <holdfast/clock.hpp>

namespace holdfast {

/// How long to wait, in one type for all the timed forms.
using wait_time = std::chrono::nanoseconds;
inline constexpr wait_time one_try = wait_time::zero();
inline constexpr wait_time no_limit = wait_time::max();

/// Any duration, saturated; zero or less is one try. A wait with a deadline ends at most a tenth of
/// a second after it, also while the store hangs (docs/guarantees.md has the exceptions); a try
/// lasts as long as the store's own time-outs.
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

/// The parameter of a function with `_for` in its name: any duration (wait_for).
struct any_duration {
  template <class Rep, class Period>
  constexpr any_duration(const std::chrono::duration<Rep, Period>& timeout)
      : wait(wait_for(timeout)) {}
  wait_time wait;
};

/// The parameter of a function with `_until` in its name: any time point (wait_until).
struct any_time_point {
  template <class Clock, class Duration>
  any_time_point(const std::chrono::time_point<Clock, Duration>& t) : wait(wait_until(t)) {}
  wait_time wait;
};

/// How long an asynchronous operation may take: a duration, a time point, or no limit.
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

namespace detail {

/// How long past its deadline a wait stays for the store's last answer. The wait ends a tenth of a
/// second after the deadline at the latest: the rest of that time is for waking the thread.
inline constexpr std::chrono::nanoseconds last_answer_within = std::chrono::milliseconds(80);

/// When an operation began and by when it has to end. Made where the user's call begins, and passed
/// to each part of the operation. (A part that read the clock anew could not tell a try from a wait
/// whose time is over.)
class time_frame {
 public:
  time_frame(boot_time began, wait_time wait) noexcept
      : time_frame(began, saturated_add(began, wait), wait > one_try) {}
  /// For a wait that is never a try, even if its time is over when it begins.
  static time_frame until(boot_time began, boot_time deadline) noexcept {
    return {began, deadline, true};
  }

  boot_time began() const noexcept { return began_; }
  /// The last request is sent then.
  boot_time deadline() const noexcept { return deadline_; }
  /// The operation waits for no answer after that: `forever` for a try, which lasts as long as the
  /// store's own time-outs.
  boot_time limit() const noexcept { return limit_; }
  bool is_try() const noexcept { return deadline_ != forever && limit_ == forever; }
  wait_time wait() const noexcept { return deadline_ == forever ? no_limit : deadline_ - began_; }

  /// The same with the deadline moved to the limit: for a part that only sleeps.
  time_frame to_the_last() const noexcept {
    return is_try() ? *this : time_frame(began_, limit_, limit_);
  }

 private:
  time_frame(boot_time began, boot_time deadline, bool timed) noexcept
      : time_frame(began, deadline, timed ? saturated_add(deadline, last_answer_within) : forever) {
  }
  time_frame(boot_time began, boot_time deadline, boot_time limit) noexcept
      : began_(began), deadline_(deadline), limit_(limit) {}

  boot_time began_;
  boot_time deadline_;
  boot_time limit_;
};

/// Limits how long the calling thread waits for an answer of a store, whatever the store's own
/// time-outs are. If several limits are nested, the earliest counts.
class call_limit {
 public:
  explicit call_limit(boot_time until) noexcept;
  /// No limit, for a call of the user's function: its requests are not part of the wait.
  enum class none { at_all };
  explicit call_limit(none) noexcept;
  ~call_limit();
  call_limit(const call_limit&) = delete;
  call_limit& operator=(const call_limit&) = delete;

  /// `forever` if there is none.
  static boot_time present() noexcept;
  /// Until when the thread waits for the answer to a request that it sends now. However late the
  /// thread was woken, it waits for at least a moment, once in each operation.
  static boot_time answer_by(boot_time now) noexcept;

 private:
  const boot_time before_;
  const boot_time late_before_;
};

/// An operation of the calling thread: nothing in it waits for the store beyond its limit.
class timed_call : public time_frame {
 public:
  timed_call(boot_time began, wait_time wait) noexcept : timed_call(time_frame(began, wait)) {}
  explicit timed_call(const time_frame& of) noexcept : time_frame(of), until_(limit()) {}

 private:
  const call_limit until_;
};

/// Opens the private state of the classes to functions of the library that are not their members.
struct access;

}  // namespace detail

template <class T>
class pending;  // async.hpp

}  // namespace holdfast
