#pragma once

#include <atomic>
#include <cstddef>
#include <holdfast/store/state_store.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::family {

/// Ends the records that are over and that nobody comes back to: a latch that was not used for its
/// `keep`, a limiter that is full again, a lock whose holder died. A session that has made some
/// records looks at twice as many others, wherever in the store they are. So what is left behind
/// never grows beyond a share of what is made, and a session that makes no records pays nothing.
/// Each look is short, and never part of a call that is granted a lease: the lease would run out
/// meanwhile. Thread-safe.
class state_sweep {
 public:
  explicit state_sweep(store::state_store& port);

  /// A record was made where there was none.
  void made_one() noexcept { made_.fetch_add(1, std::memory_order_relaxed); }
  /// One look, if enough were made; `name` is one of those that are used. Never fails: what is not
  /// swept costs a little room.
  void look_if_due(std::string_view name) noexcept;

 private:
  void look(std::string_view name);

  store::state_store& port_;
  std::atomic<std::size_t> made_;  ///< those that no look was for yet
  std::mutex mutex_;
  std::optional<std::string> looked_to_;  ///< so far in the order of the names
};

}  // namespace holdfast::family
