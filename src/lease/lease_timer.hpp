#pragma once

#include <algorithm>
#include <chrono>
#include <holdfast/clock.hpp>
#include <holdfast/lease.hpp>
#include <utility>

namespace holdfast::engine {

/// Decides when a lease is renewed, suspect and lost. Pure: the caller passes the time.
///
///     sent            + lease/3           + lease/3 + lease/6           sent + lease − margin
///      │  held           │ renew             │ not back yet: suspect       │ lost, whatever
///      ▼                 ▼                   ▼                             ▼ the renewal does
///
/// The lease counts from before the request was sent (as in userver and redsync), less a margin for
/// clocks that run at different speeds. A failed renewal is retried after lease/30.
class lease_timer {
 public:
  enum class step { none, renew, suspect, lost };

  struct terms {
    std::chrono::nanoseconds lease{};  ///< what a renewal asks for
    bool renew = true;
    boot_time max_hold_until = forever;
    bool is_claim = false;
  };

  /// Held until `valid_until` (as returned by sure_until()), as known at `now`.
  lease_timer(const terms& t, boot_time now, boot_time valid_until) noexcept;

  /// The time until which a lease may be relied on that was requested at `sent`, and lasts `lasts`
  /// at the store. No other place computes it.
  static boot_time sure_until(boot_time sent, std::chrono::nanoseconds lasts) noexcept {
    return sent + lasts - margin(lasts);
  }

  /// The shortest possible lease (a multiple of `step`) that may be relied on for `sure`: the
  /// inverse of sure_until().
  static std::chrono::milliseconds lasting(std::chrono::nanoseconds sure,
                                           std::chrono::milliseconds step) noexcept;

  /// Returns what is due at `now`, each step once. After `renew` the caller has to report the
  /// answer by renewed(), failed() or gone().
  step due(boot_time now) noexcept;
  /// When to call due() again.
  boot_time next() const noexcept;

  /// Begins a renewal at another's request. Returns false if one is under way.
  bool begin(boot_time now) noexcept;

  /// Returns true if the lease was suspect. After its end it changes nothing: a lost lease stays
  /// lost.
  bool renewed(boot_time now, boot_time sent, std::chrono::nanoseconds lease) noexcept;
  /// Returns true if the lease was not suspect before.
  bool failed(boot_time now) noexcept;
  void gone() noexcept {
    in_flight_ = false;
    state_ = lease_state::lost;
  }
  void end_renewal() noexcept { in_flight_ = false; }

  /// A renewal for `lease` is under way: until its answer arrives, the lease is relied on for no
  /// longer than that. Returns the previous time, for restore() if the renewal was not carried out.
  boot_time shorten(boot_time sent, std::chrono::nanoseconds lease) noexcept {
    return std::exchange(valid_until_, std::min(valid_until_, sure_until(sent, lease)));
  }
  void restore(boot_time valid_until) noexcept {
    if (state_ != lease_state::lost) valid_until_ = valid_until;
  }

  lease_state state() const noexcept { return state_; }
  /// Whether the lease has ended, even if due() has not noticed it yet.
  bool is_over(boot_time now) const noexcept {
    return state_ == lease_state::lost || now >= valid_until_;
  }
  boot_time valid_until() const noexcept { return valid_until_; }
  /// Whether the lease ends by max_hold: renewals do not lengthen it, but still check that it is
  /// held.
  bool at_max_hold() const noexcept {
    return valid_until_ != forever && valid_until_ == terms_.max_hold_until;
  }
  bool in_flight() const noexcept { return in_flight_; }
  /// Whether it was handed over for a short time, and has not been renewed since.
  bool is_claim() const noexcept { return terms_.is_claim; }

 private:
  static std::chrono::nanoseconds margin(std::chrono::nanoseconds lease) noexcept;
  boot_time capped(boot_time t) const noexcept { return std::min(t, terms_.max_hold_until); }

  terms terms_;
  std::chrono::nanoseconds at_max_hold_every_ = terms_.lease / 3;
  lease_state state_ = lease_state::held;
  boot_time valid_until_;
  boot_time renew_at_;
  boot_time suspect_at_{};
  bool in_flight_ = false;
};

}  // namespace holdfast::engine
