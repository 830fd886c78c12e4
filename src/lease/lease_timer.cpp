#include "lease/lease_timer.hpp"

#include <algorithm>
#include <holdfast/options.hpp>

namespace holdfast::engine {

using namespace std::chrono_literals;

namespace {
/// The margin consists of a part that is the same for every lease, and of a share of the lease.
constexpr auto least_margin = 2ms;
constexpr int margin_share = 100;
}  // namespace

std::chrono::nanoseconds lease_timer::margin(std::chrono::nanoseconds lease) noexcept {
  return least_margin + lease / margin_share;
}

std::chrono::milliseconds lease_timer::lasting(std::chrono::nanoseconds sure,
                                               std::chrono::milliseconds step) noexcept {
  if (sure >= max_lease) return max_lease;
  const auto least = std::chrono::ceil<std::chrono::milliseconds>(
      (sure + least_margin) * margin_share / (margin_share - 1));
  const auto steps = (std::max(least, min_lease) + step - 1ms) / step;
  return steps * step;
}

lease_timer::lease_timer(const terms& t, boot_time now, boot_time valid_until) noexcept
    : terms_(t), valid_until_(capped(valid_until)) {
  // A grant that has to be claimed ends soon, so its first renewal is soon as well.
  renew_at_ = t.renew ? now + std::min(t.lease, valid_until - now) / 3 : forever;
}

lease_timer::step lease_timer::due(boot_time now) noexcept {
  if (state_ == lease_state::lost) return step::none;
  if (now >= valid_until_) {
    state_ = lease_state::lost;
    return step::lost;
  }
  if (in_flight_) {
    if (now < suspect_at_ || state_ == lease_state::suspect) return step::none;
    state_ = lease_state::suspect;
    return step::suspect;
  }
  if (now < renew_at_) return step::none;
  (void)begin(now);
  return step::renew;
}

bool lease_timer::begin(boot_time now) noexcept {
  if (in_flight_) return false;
  in_flight_ = true;
  suspect_at_ = now + terms_.lease / 6;
  return true;
}

boot_time lease_timer::next() const noexcept {
  if (state_ == lease_state::lost) return forever;
  if (!in_flight_) return std::min(renew_at_, valid_until_);
  if (state_ == lease_state::suspect) return valid_until_;
  return std::min(suspect_at_, valid_until_);
}

bool lease_timer::renewed(boot_time now, boot_time sent, std::chrono::nanoseconds lease) noexcept {
  in_flight_ = false;
  if (is_over(now)) return false;
  terms_.lease = lease;
  terms_.is_claim = false;
  valid_until_ = capped(sure_until(sent, lease));
  if (terms_.renew) renew_at_ = sent + (at_max_hold() ? at_max_hold_every_ : lease / 3);
  const bool was_suspect = state_ == lease_state::suspect;
  state_ = lease_state::held;
  return was_suspect;
}

bool lease_timer::failed(boot_time now) noexcept {
  in_flight_ = false;
  if (state_ == lease_state::lost) return false;
  // Retries soon, and sooner if little is left: a grant that has to be claimed ends in less than a
  // second.
  const auto pause = std::min(terms_.lease / 30, (valid_until_ - now) / 4);
  if (terms_.renew) renew_at_ = now + std::max<std::chrono::nanoseconds>(pause, 10ms);
  const bool was_held = state_ == lease_state::held;
  state_ = lease_state::suspect;
  return was_held;
}

}  // namespace holdfast::engine
