#pragma once

#include <atomic>
#include <stop_token>

namespace holdfast::engine {

/// Tells in which process an object was made. If a thread of the parent held a mutex at a fork(),
/// the child has a copy that no thread unlocks: so the child has to check here before it locks a
/// mutex.
class maker {
 public:
  maker() noexcept;
  /// True in a child of the process that made the object. Cheaper than getpid().
  bool forked() const noexcept { return forks.load(std::memory_order_relaxed) != made_after_; }

 private:
  static std::atomic<unsigned> forks;  ///< the number of forks from the first process to this one
  unsigned made_after_;
};

/// The token that a child gets for its parent's leases: stop is requested. It neither calls the
/// callbacks of the parent's threads nor locks a mutex.
inline std::stop_token lost_in_a_child() {
  std::stop_source lost;
  lost.request_stop();
  return lost.get_token();
}

}  // namespace holdfast::engine
