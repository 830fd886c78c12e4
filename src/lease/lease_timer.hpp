#pragma once

#include <algorithm>
#include <chrono>
#include <holdfast/clock.hpp>
#include <holdfast/lease.hpp>
#include <utility>

namespace holdfast::engine {

/// When a lease is renewed, suspected and lost. Pure: the time comes in.
///
///     sent            + lease/3           + lease/3 + lease/6           sent + lease − margin
///      │  held           │ renew             │ not back yet: suspect       │ lost, whatever
///      ▼                 ▼                   ▼                             ▼ the renewal does
///
/// The lease counts from before the request was sent (userver, redsync), less a margin for clocks
/// that run at different speeds. A failed renewal is tried again after lease/30.
class lease_timer {
 public:
  enum class step { none, renew, suspect, lost };

  struct terms {
    std::chrono::nanoseconds lease{};  ///< what a renewal asks for
    bool renew = true;
    boot_time max_hold_until = forever;
    bool is_claim = false;
  };

  /// Held until `valid_until` (of sure_until()), as known at `now`.
  lease_timer(const terms& t, boot_time now, boot_time valid_until) noexcept;

  /// Until when a lease may be relied on that was asked for at `sent`, and lasts so long at the
  /// store: the one place where that is computed.
  static boot_time sure_until(boot_time sent, std::chrono::nanoseconds lasts) noexcept {
    return sent + lasts - margin(lasts);
  }

  /// The shortest lease that is sure for that long, the inverse of sure_until(): of those that are
  /// possible, which are multiples of `step`.
  static std::chrono::milliseconds lasting(std::chrono::nanoseconds sure,
                                           std::chrono::milliseconds step) noexcept;

  /// What is due at `now`, once: after `renew` the answer has to come by renewed(), failed(),
  /// gone().
  step due(boot_time now) noexcept;
  /// When to ask again.
  boot_time next() const noexcept;

  /// A renewal that is not the timer's own idea; false if one is on its way already.
  bool begin(boot_time now) noexcept;

  /// True if it was suspect. After the end it changes nothing: what is lost stays lost.
  bool renewed(boot_time now, boot_time sent, std::chrono::nanoseconds lease) noexcept;
  /// True if it was not suspect before.
  bool failed(boot_time now) noexcept;
  void gone() noexcept {
    in_flight_ = false;
    state_ = lease_state::lost;
  }
  void end_renewal() noexcept { in_flight_ = false; }

  /// A renewal for `lease` is on its way: no more than that is sure until it has come back. Returns
  /// what was sure before, for restore() if it was not carried out.
  boot_time shorten(boot_time sent, std::chrono::nanoseconds lease) noexcept {
    return std::exchange(valid_until_, std::min(valid_until_, sure_until(sent, lease)));
  }
  void restore(boot_time valid_until) noexcept {
    if (state_ != lease_state::lost) valid_until_ = valid_until;
  }

  lease_state state() const noexcept { return state_; }
  /// Also where due() has not found that out yet.
  bool is_over(boot_time now) const noexcept {
    return state_ == lease_state::lost || now >= valid_until_;
  }
  boot_time valid_until() const noexcept { return valid_until_; }
  /// No renewal makes it longer than it is; each still asks whether it is held.
  bool at_max_hold() const noexcept {
    return valid_until_ != forever && valid_until_ == terms_.max_hold_until;
  }
  bool in_flight() const noexcept { return in_flight_; }
  /// It was handed over for a moment, and has not been renewed since.
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
