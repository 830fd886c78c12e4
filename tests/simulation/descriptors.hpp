#pragma once

#include <memory>

namespace simulation {

struct fiber;

/// What a simulated process may wait for with poll(), under a number of its own.
class descriptor {
 public:
  virtual ~descriptor() = default;
  /// Which of these events there are.
  virtual short ready(short events) const noexcept = 0;
  /// Wakes it when something changes, until it leaves.
  virtual void wait_here(fiber& who) = 0;
  virtual void leave_here(const fiber& who) noexcept = 0;
};

/// Gives it a number that no file of this program has.
int open_descriptor(descriptor& d);
void close_descriptor(int number) noexcept;

/// The same, and it lives until close(): found again by its number, null if there is none such.
int open_descriptor(std::unique_ptr<descriptor> d);
descriptor* find_descriptor(int number) noexcept;

}  // namespace simulation
