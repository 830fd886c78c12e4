#pragma once

#include <cstdint>
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
/// Thread-safe.
class state_sweep {
 public:
  explicit state_sweep(store::state_store& port);

  /// A record was made where there was none. Never fails: what is not swept costs a little room.
  void made_one(std::string_view name) noexcept;

 private:
  void run(std::string_view made);

  store::state_store& port_;
  std::mutex mutex_;
  std::size_t made_;                      ///< since the last look
  std::optional<std::string> looked_to_;  ///< so far in the order of the names
};

}  // namespace holdfast::family
