#pragma once

#include <holdfast/testing.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace conformance {

/// Faults that a test requests one by one, while it runs. Copies share the script.
class fault_script {
 public:
  using fault = holdfast::testing::fault;
  using verb = holdfast::store::permits_verb;

  /// The next `times` commands with that verb meet this fault. (A latch's count_down and wait count
  /// as `acquire`.)
  void next(verb v, fault f, int times = 1) const {
    const std::lock_guard guard{state_->mutex};
    state_->coming[v] = {f, times};
  }
  /// From now on all commands meet this fault.
  void all(fault f) const {
    const std::lock_guard guard{state_->mutex};
    state_->all = f;
  }
  int met() const {
    const std::lock_guard guard{state_->mutex};
    return state_->met;
  }

  holdfast::testing::fault_plan plan(std::chrono::milliseconds delay = {}) const {
    return {[s = state_](std::uint64_t, std::string_view, verb v) { return s->choose(v); }, delay};
  }

 private:
  struct state {
    std::mutex mutex;
    std::map<verb, std::pair<fault, int>> coming;
    fault all = fault::none;
    int met = 0;

    fault choose(verb v) {
      const std::lock_guard guard{mutex};
      fault chosen = all;
      if (const auto at = coming.find(v); at != coming.end() && at->second.second > 0) {
        --at->second.second;
        chosen = at->second.first;
      }
      met += chosen == fault::none ? 0 : 1;
      return chosen;
    }
  };
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

}  // namespace conformance
