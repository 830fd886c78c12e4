#pragma once

namespace holdfast::engine {

/// Tells a waiter without a thread of its own that there may be news for it. From any thread, and
/// with the mutex of what tells it held.
class waker {
 public:
  virtual void wake() noexcept = 0;

 protected:
  ~waker() = default;
};

}  // namespace holdfast::engine
