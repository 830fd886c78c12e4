#pragma once

#include <chrono>
#include <deque>
#include <holdfast/clock.hpp>

namespace holdfast::tool {

/// Keeps the time spent on queries of a store below a share of all time. The caller measures each
/// piece of work: while the caller waits for the answer, the store cannot work for it longer than
/// that. Lists of the names are paid for until the next list, so that no query waits for the rest
/// after a long one. Not thread-safe.
class pace {
 public:
  /// `share` is above 0 and at most 1.
  pace(double share, boot_time now) : share_(share), lasting_(share), rested_at_(now) {}

  /// From now on, except for lists: these keep to the first share.
  void set_share(double share) noexcept { share_ = share; }
  double share() const noexcept { return share_; }

  /// Whether another query is allowed: at most `window` of waiting is owed.
  bool may_ask(boot_time now) const noexcept { return rested_at_ <= now + window; }
  /// When nothing will be owed for queries.
  boot_time rested_at() const noexcept { return rested_at_; }
  void spent(boot_time from, boot_time to);

  /// When the next list is due.
  boot_time list_at() const noexcept { return list_now_ ? boot_time{} : list_at_; }
  void list_now() noexcept { list_now_ = true; }
  /// What the last list still owes if this one came early is owed for queries.
  void spent_on_list(boot_time from, boot_time to);

  /// The share that was really spent in the last minute, or since the beginning if that is later.
  double used(boot_time now) const;

  /// Work is done in bursts, so that the thread does not wake up for each command.
  static constexpr std::chrono::milliseconds window{200};
  /// The greatest part of the share for lists. A new name is found by a list only.
  static constexpr double of_lists = 2.0 / 3;
  static constexpr std::chrono::milliseconds between_lists{100};

 private:
  struct burst {
    boot_time at;
    std::chrono::nanoseconds length;
  };
  void owe(boot_time from, std::chrono::nanoseconds work);
  void remember(boot_time from, boot_time to);

  double share_;
  const double lasting_;
  double lists_take_ = 0;  ///< of all time, until the next list
  boot_time rested_at_;
  boot_time list_at_{};
  bool list_now_ = false;
  boot_time began_ = rested_at_;
  std::deque<burst> bursts_;  ///< of the last minute
};

}  // namespace holdfast::tool
