#pragma once

#include <atomic>
#include <stop_token>

namespace holdfast::engine {

/// Which process made an object. Of a mutex that a thread of the parent held at a fork(), the child
/// has a copy that nobody unlocks: so it has to ask here before it locks one.
class maker {
 public:
  maker() noexcept;
  /// True in a child of the process that made it. Cheaper than getpid().
  bool forked() const noexcept { return forks.load(std::memory_order_relaxed) != made_after_; }

 private:
  static std::atomic<unsigned> forks;  ///< from the first process to this one
  unsigned made_after_;
};

/// What a child is told of its parent's leases. The callbacks of the parent's threads are not
/// called in it, and no mutex is locked.
inline std::stop_token lost_in_a_child() {
  std::stop_source lost;
  lost.request_stop();
  return lost.get_token();
}

}  // namespace holdfast::engine
