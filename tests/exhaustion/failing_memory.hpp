#pragma once

/// Makes allocations of this process fail. This program replaces operator new for that.
namespace exhaustion {

/// Whose allocations fail: those of the calling thread, those of all others (the library's own
/// threads), or everybody's.
enum class of { this_thread, others, everybody };
/// One fails, or all from that one on.
enum class how { once, for_good };

/// While this object lives, the allocation after `allocations` successful ones fails. One object at
/// a time.
class no_memory_after {
 public:
  no_memory_after(long allocations, of whose, how often = how::once);
  ~no_memory_after();
  no_memory_after(const no_memory_after&) = delete;
  no_memory_after& operator=(const no_memory_after&) = delete;

  /// Whether any has failed.
  static bool failed() noexcept;
};

/// While this object lives, this thread has memory: for the test's own work.
class enough_memory {
 public:
  enough_memory() noexcept;
  ~enough_memory();
  enough_memory(const enough_memory&) = delete;
  enough_memory& operator=(const enough_memory&) = delete;
};

}  // namespace exhaustion
