#pragma once

namespace holdfast::engine {

/// Notifies a waiter without a thread of its own that there may be news for it. Called from any
/// thread, with the caller's mutex held.
class waker {
 public:
  virtual void wake() noexcept = 0;

 protected:
  ~waker() = default;
};

}  // namespace holdfast::engine
