#pragma once

#include <holdfast/clock.hpp>
#include <memory>

namespace holdfast::engine {

class local_queue;

/// Looks after what the process keeps though no thread uses it (lock_options::linger).
class idle_locks {
 public:
  /// The time of what is idle at the local queue may be over then.
  virtual void look_at(const std::shared_ptr<local_queue>& at, boot_time when) = 0;

 protected:
  ~idle_locks() = default;
};

}  // namespace holdfast::engine
