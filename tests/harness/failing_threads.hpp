#pragma once

namespace harness {

/// For as long as it lives, no std::thread can be started after so many: that one only, or all from
/// it on. The program that is linked with it has a start of threads of its own. One at a time.
class no_thread_after {
 public:
  enum class how { once, for_good };
  no_thread_after(int threads, how often);
  ~no_thread_after();
  no_thread_after(const no_thread_after&) = delete;
  no_thread_after& operator=(const no_thread_after&) = delete;

  /// Whether any could not be started.
  static bool failed() noexcept;
};

}  // namespace harness
