#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace harness {

/// The order in which queued waiters are served; each waiter records its turn before the next can
/// be served. A waiter that misses the claim time of its turn is queued last again. So on a slow or
/// frozen machine as many waiters may be out of order as claim times have passed.
class turns {
 public:
  /// `claim_us` is capabilities::claim_us of their store; nothing where no turn can be lost.
  explicit turns(std::optional<std::int64_t> claim_us) {
    if (claim_us) claim_.emplace(*claim_us - *claim_us / 10);  // by another clock
  }

  /// The lock that all wait for is about to be released.
  void begin() { last_ = clock::now(); }
  void next(std::size_t who) {
    const auto now = clock::now();
    if (claim_) late_ += static_cast<std::size_t>((now - last_) / *claim_);
    last_ = now;
    order_.push_back(who);
  }
  const std::vector<std::size_t>& order() const { return order_; }
  /// The number of waiters that were served after a later one.
  std::size_t out_of_order() const {
    std::vector<std::size_t> ends;  // of the rising sequences of each length
    for (const auto who : order_) {
      const auto at = std::lower_bound(ends.begin(), ends.end(), who);
      if (at == ends.end()) {
        ends.push_back(who);
      } else {
        *at = who;
      }
    }
    return order_.size() - ends.size();
  }
  /// The number of turns that may have been lost by lateness.
  std::size_t too_late() const { return late_; }

 private:
  using clock = std::chrono::steady_clock;
  std::optional<std::chrono::microseconds> claim_;
  clock::time_point last_ = clock::now();
  std::size_t late_ = 0;
  std::vector<std::size_t> order_;
};

}  // namespace harness
