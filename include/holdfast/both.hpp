#pragma once

#include <algorithm>
#include <atomic>
#include <holdfast/both_leases.hpp>
#include <holdfast/error.hpp>
#include <holdfast/timed.hpp>
#include <optional>
#include <stop_token>
#include <utility>

namespace holdfast {

/// Two locks held as one, while programs move from an old lock to a new one. Programs that use only
/// the old lock, only the new one, or both exclude each other. The old lock is taken first and
/// released last; both are taken, or none. All programs must name the two in the same order, or
/// they may wait for each other for ever. Limits are measured on the clock of the old lock's
/// session. While it waits for the new lock, it keeps the old one. If the old lock is lost during
/// that wait, `both` releases the new one and begins anew while time is left; a try ends.
///
/// Meets TimedLockable. `Old` and `New` are mutex, fair_mutex, recursive_mutex (only its std
/// forms), or anything with the same functions (the std forms need check() of `Old`); they must
/// outlive this object. As thread-safe as they are. Cost: the sum of both. If either throws,
/// neither is held.
template <class Old, class New>
class both {
 public:
  both(Old& old, New& next) noexcept : old_(old), next_(next) {}

  /// Waits without a limit, until asked to stop (errc::cancelled).
  both_leases acquire(std::stop_token stop = {}) {
    while (true) {
      both_leases held{old_.acquire(stop), next_.acquire(stop)};  // from left to right
      if (stands(held)) return held;
    }
  }

  /// Empty if either lock is busy.
  std::optional<both_leases> try_acquire() { return try_acquire_for(one_try); }

  /// Empty if it could not take both in that time, or if a stop was requested.
  std::optional<both_leases> try_acquire_for(any_duration timeout, std::stop_token stop = {}) {
    wait_time wait = timeout.wait;
    const detail::timed_call call(detail::now_of(old_), wait);
    do {
      {
        auto first = old_.try_acquire_for(wait, stop);
        if (!first) return std::nullopt;
        auto second = next_.try_acquire_for(left(call), stop);
        if (!second) return std::nullopt;
        both_leases held{std::move(*first), std::move(*second)};
        if (stands(held)) return held;
      }
      // Both have been released, which takes time.
      wait = left(call);
    } while (wait > one_try);
    return std::nullopt;
  }

  void lock() {
    do {
      old_.lock();
      or_undo([&] { return next_.lock(), true; });
    } while (!old_stands());
  }
  bool try_lock() { return try_lock_for(one_try); }
  bool try_lock_for(any_duration timeout) {
    wait_time wait = timeout.wait;
    const detail::timed_call call(detail::now_of(old_), wait);
    do {
      if (!old_.try_lock_for(wait)) return false;
      if (!or_undo([&] { return next_.try_lock_for(left(call)); })) return false;
      if (old_stands()) return true;
      wait = left(call);
    } while (wait > one_try);
    return false;
  }
  bool try_lock_until(any_time_point deadline) { return try_lock_for(deadline.wait); }
  void unlock() noexcept {
    next_.unlock();
    old_.unlock();
  }

 private:
  template <class O, class N>
  friend pending<both_leases> async_acquire(both<O, N>& of, wait_limit limit, std::stop_token stop);
  // One try if no time is left: then the limit of the whole call bounds it.
  wait_time left(const detail::time_frame& of) const {
    return of.deadline() == forever ? no_limit : wait_for(of.deadline() - detail::now_of(old_));
  }
  template <class Lock>
  bool or_undo(Lock lock_next) {
    bool locked = false;
    try {
      locked = lock_next();
    } catch (...) {
      old_.unlock();
      throw;
    }
    if (!locked) old_.unlock();
    return locked;
  }
  static bool stands(const both_leases& held) noexcept {
    return held.old().state() != lease_state::lost;
  }
  /// Returns false if the old lock is lost; then neither is held any more.
  bool old_stands() try { return old_.check(), true; } catch (const error& e) {
    unlock();
    if (e.reason() != errc::lost) throw;
    return false;
  }

  Old& old_;
  New& next_;
};

namespace detail {

/// Takes the old lock, then the new one; begins anew if the old lock was lost meanwhile.
template <class Old, class New>
class pending_both final : public relay<lease, both_leases> {
 public:
  pending_both(Old& old, New& next, wait_limit limit, std::stop_token stop)
      : relay(async_acquire(old, limit, stop)),
        old_(old),
        next_(next),
        time_(now_of(old), limit.wait()),
        stop_(std::move(stop)) {}

  void start(receiver<both_leases>& to) override {
    on_stop_.emplace(stop_, notes_stop{*this});
    on_receivers_stop_.emplace(to.stop(), notes_stop{*this});
    relay::start(to);
  }
  void receive(result<lease> how) noexcept override {
    if (!how) return end(std::move(how.error()));
    if (first_ && first_.state() == lease_state::lost) return anew(std::move(*how));
    if (first_) return end(both_leases{std::move(first_), std::move(*how)});
    first_ = std::move(*how);
    const timed_call call(time_);
    start_or_fail([&] { return async_acquire(next_, left(), stop_); }, *this);
  }

 private:
  wait_limit left() const {
    return time_.deadline() == forever ? wait_limit{} : time_.deadline() - now_of(old_);
  }
  errc in_vain() const { return time_.is_try() ? errc::busy : errc::timed_out; }
  boot_time answers_by() const {  // the time counts from the stop, if there was one
    const boot_time since = std::min(now_of(old_), stopped_at_.load());
    return std::min(time_.limit(), saturated_add(since, last_answer_within));
  }
  struct notes_stop {
    void operator()() const noexcept {
      if (of.stopped_at_.load() == forever) of.stopped_at_ = now_of(of.old_);
    }
    pending_both& of;
  };
  void anew(lease next) noexcept {
    {
      const call_limit until(answers_by());
      (void)both_leases{std::move(first_), std::move(next)}.release();
    }
    if (left().wait() <= one_try) return end(failure{in_vain(), "the old lock was lost"});
    const timed_call call(time_);
    start_or_fail([&] { return async_acquire(old_, left(), stop_); }, *this);
  }
  void end(result<both_leases> how) {
    const auto self = std::move(self_);
    // The rest of a call with a deadline may be one try.
    if (!how && how.error().code == errc::busy) how.error().code = in_vain();
    if (first_) {
      const call_limit until(answers_by());
      first_ = {};
    }
    on_stop_.reset(), on_receivers_stop_.reset();  // `old_` may be gone after the call below
    to_->receive(std::move(how));
  }

  Old& old_;
  New& next_;
  const time_frame time_;
  const std::stop_token stop_;
  lease first_;
  std::atomic<boot_time> stopped_at_{forever};
  std::optional<std::stop_callback<notes_stop>> on_stop_, on_receivers_stop_;
};

}  // namespace detail

/// acquire() without a thread (async.hpp), of two mutexes or fair_mutexes, which have to stay until
/// it has ended. If it fails, neither is held.
template <class Old, class New>
pending<both_leases> async_acquire(both<Old, New>& of, wait_limit limit = {},
                                   std::stop_token stop = {}) {
  return pending<both_leases>(
      std::make_shared<detail::pending_both<Old, New>>(of.old_, of.next_, limit, std::move(stop)));
}

}  // namespace holdfast
