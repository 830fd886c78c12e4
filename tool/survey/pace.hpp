#pragma once

#include <chrono>
#include <deque>
#include <holdfast/clock.hpp>

namespace holdfast::tool {

/// Keeps the time spent on queries of a store below a share of all time. The caller measures each
/// piece of work: while the caller waits for the answer, the store cannot work for it longer than
/// that. Not thread-safe.
class pace {
 public:
  /// `share` is above 0 and at most 1.
  pace(double share, boot_time now) : share_(share), rested_at_(now) {}

  /// From now on.
  void set_share(double share) noexcept { share_ = share; }
  double share() const noexcept { return share_; }

  /// Whether another query is allowed: at most `window` of waiting is owed.
  bool may_ask(boot_time now) const noexcept { return rested_at_ <= now + window; }
  /// When nothing will be owed.
  boot_time rested_at() const noexcept { return rested_at_; }
  void spent(boot_time from, boot_time to);

  /// The share that was really spent in the last minute, or since the beginning if that is later.
  double used(boot_time now) const;

  /// Work is done in bursts, so that the thread does not wake up for each command.
  static constexpr std::chrono::milliseconds window{200};

 private:
  struct burst {
    boot_time at;
    std::chrono::nanoseconds length;
  };
  double share_;
  boot_time rested_at_;
  boot_time began_ = rested_at_;
  std::deque<burst> bursts_;  ///< of the last minute
};

}  // namespace holdfast::tool
