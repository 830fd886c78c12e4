#pragma once

#include <atomic>
#include <cstddef>
#include <holdfast/store/state_store.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::family {

/// Removes records that are over and that no client returns to: a latch that was not used for its
/// `keep`, a limiter that is full again, a lock whose holder died. A session that has created some
/// records looks at twice as many others, anywhere in the store. So the left-over records never
/// exceed a share of those created, and a session that creates no records pays nothing. Each look
/// is short, and never part of a call that is granted a lease, because the lease would run
/// meanwhile. Thread-safe.
class state_sweep {
 public:
  explicit state_sweep(store::state_store& port);

  /// Notes that a record was created.
  void made_one() noexcept { made_.fetch_add(1, std::memory_order_relaxed); }
  /// Makes one look, if enough records were created; `name` is a name in use. Never fails: a missed
  /// sweep costs a little room.
  void look_if_due(std::string_view name) noexcept;

 private:
  void look(std::string_view name);

  store::state_store& port_;
  std::atomic<std::size_t> made_;  ///< records created since the last look
  std::mutex mutex_;
  std::optional<std::string> looked_to_;  ///< the last name looked at, in the order of the names
};

}  // namespace holdfast::family
