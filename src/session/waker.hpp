#pragma once

namespace holdfast::engine {

/// Notifies a waiter without a thread of its own that its state may have changed. May be called
/// from any thread, and with the mutex of the notifying object held.
class waker {
 public:
  virtual void wake() noexcept = 0;

 protected:
  ~waker() = default;
};

}  // namespace holdfast::engine
