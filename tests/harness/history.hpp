#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Checks whether a history could have happened under a correct lock. Times are ticks of the
/// resource's own sequence (resource.hpp), never of a clock: an event with a smaller tick did
/// happen before one with a greater tick, in whatever process.
namespace harness {

/// One hold, from the first to the last action under the lock.
struct hold_event {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t worker = 0;
  std::uint64_t fence = 0;
  std::uint32_t weight = 1;
  std::uint64_t asked = 0;   ///< before the call that waited
  std::uint64_t queued = 0;  ///< when it was seen in the queue; 0 if nobody checked
};

struct history_rules {
  std::uint32_t capacity = 1;  ///< an exclusive hold has this weight
  bool readers_share = false;  ///< holds that do not exclude each other may have the same fence
  bool fair = false;           ///< a waiter seen in the queue before another asked is served first
};

/// Every rule that the history breaks, in words; empty if there is none.
///    - the weights of holds that overlap sum up to the capacity at most
///    - no two holds have the same fence, and none has 0 (readers_share: see history_rules)
///    - of two holds that exclude each other, the later one has the greater fence
///    - fair: see history_rules
std::vector<std::string> violations(std::vector<hold_event> history, const history_rules& rules);

/// At most ten of them in one text, for a message.
std::string summary(const std::vector<std::string>& violations);

}  // namespace harness
