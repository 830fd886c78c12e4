#pragma once

#include <mutex>

namespace holdfast::store::sqlite {

/// An object that fork() must not interrupt in the middle of its work, and that a child process
/// must abandon. fork() waits for the mutex, so no work under the mutex is ever half done in a
/// child.
///
/// The reason: SQLite remembers inside the process which file locks it has, and a child does not
/// inherit them. A child that opened the same file beside the parent's connection would hold no
/// lock at all, and closing the parent's connection would delete the log that the child uses.
class forkable {
 public:
  forkable();
  virtual ~forkable();
  forkable(const forkable&) = delete;
  forkable& operator=(const forkable&) = delete;

  /// True in a child process. Costs one load.
  bool forked() const noexcept;
  std::mutex& mutex() noexcept { return mutex_; }

  /// In a child: closes what would mislead it, and leaks the rest. Called once.
  virtual void abandon() noexcept = 0;

 protected:
  /// Called by the destructor of a derived class, under the mutex, once everything is closed: a
  /// child of a later fork has nothing to abandon.
  void retire() noexcept { abandoned_ = true; }

 private:
  friend struct fork_registry;
  std::mutex mutex_;
  const unsigned made_in_;
  bool abandoned_ = false;
  forkable* next_ = nullptr;
};

/// To be called before a child opens anything of its own.
void abandon_what_was_inherited() noexcept;

}  // namespace holdfast::store::sqlite
