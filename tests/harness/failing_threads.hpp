#pragma once

namespace harness {

/// While this object lives, std::thread fails to start after `threads` starts: once, or from then
/// on. A program that links this file has its own definition of the function that starts threads.
/// One object at a time.
class no_thread_after {
 public:
  enum class how { once, for_good };
  no_thread_after(int threads, how often);
  ~no_thread_after();
  no_thread_after(const no_thread_after&) = delete;
  no_thread_after& operator=(const no_thread_after&) = delete;

  /// Whether any thread failed to start.
  static bool failed() noexcept;
};

}  // namespace harness
