#pragma once

#include <holdfast/clock.hpp>
#include <memory>

namespace holdfast::engine {

class local_queue;

/// Watches the locks that the process keeps while no thread uses them (lock_options::linger).
class idle_locks {
 public:
  /// The linger time of an idle lock in this local queue may end at `when`.
  virtual void look_at(const std::shared_ptr<local_queue>& at, boot_time when) = 0;

 protected:
  ~idle_locks() = default;
};

}  // namespace holdfast::engine
