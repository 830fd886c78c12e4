#pragma once

#include <cstddef>
#include <memory>

namespace simulation {

struct fiber;
struct process;

/// An object that a simulated process may wait for with poll(), under a number of its own.
class descriptor {
 public:
  virtual ~descriptor() = default;
  /// Returns those of the requested events that are present.
  virtual short ready(short events) const noexcept = 0;
  /// Registers the fiber: a change of the descriptor wakes it until it leaves.
  virtual void wait_here(fiber& who) = 0;
  virtual void leave_here(const fiber& who) noexcept = 0;
};

/// Gives the descriptor a number that no file of this program has.
int open_descriptor(descriptor& d);
void close_descriptor(int number) noexcept;

/// The same for an owned descriptor, which lives until close(). find_descriptor() returns null for
/// an unknown number.
int open_descriptor(std::unique_ptr<descriptor> d);
descriptor* find_descriptor(int number) noexcept;
/// How many owned descriptors the threads of that process have opened, and not closed.
std::size_t open_descriptors_of(const process& p) noexcept;

}  // namespace simulation
