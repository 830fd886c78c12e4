#pragma once

#include <chrono>

namespace holdfast::tool {

/// How long a thread was ready to run and had no processor. Only the thread that made it may ask.
class processor_wait {
 public:
  processor_wait() noexcept;
  processor_wait(const processor_wait&) = delete;
  processor_wait& operator=(const processor_wait&) = delete;
  ~processor_wait();

  /// Since the thread began; 0 where the kernel does not count it.
  std::chrono::nanoseconds sum() const noexcept;

 private:
  const int file_;
};

}  // namespace holdfast::tool
