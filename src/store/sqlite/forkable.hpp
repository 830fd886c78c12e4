#pragma once

#include <mutex>

namespace holdfast::store::sqlite {

/// Something that fork() must not catch in the middle of its work, and that a child process must
/// let go of. fork() waits for the mutex, so nothing under it is ever half done in a child.
///
/// Why it matters: SQLite remembers inside the process which file locks it has, and a child does
/// not have them. A child that opened the same file beside the parent's connection would hold no
/// lock at all, and the parent's close would delete the log under it.
class forkable {
 public:
  forkable();
  virtual ~forkable();
  forkable(const forkable&) = delete;
  forkable& operator=(const forkable&) = delete;

  /// True in a child process. One load.
  bool forked() const noexcept;
  std::mutex& mutex() noexcept { return mutex_; }

  /// In a child: closes what would mislead it, and leaves the rest to leak. Called once.
  virtual void abandon() noexcept = 0;

 protected:
  /// For the destructor of a derived class, under the mutex, once all is closed: a child of a fork
  /// that happens from now on has nothing to let go of.
  void retire() noexcept { abandoned_ = true; }

 private:
  friend struct fork_registry;
  std::mutex mutex_;
  const unsigned made_in_;
  bool abandoned_ = false;
  forkable* next_ = nullptr;
};

/// Before a child opens anything of its own.
void abandon_what_was_inherited() noexcept;

}  // namespace holdfast::store::sqlite
