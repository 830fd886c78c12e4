#pragma once

#include <holdfast/mutex.hpp>

namespace holdfast {

/// A mutex that is granted strictly in the order in which acquisitions reach the store, whatever
/// process and thread they come from. A plain mutex lets one contender of each process queue at the
/// store, which is cheaper; here every waiter has a queue entry of its own.
///
/// A waiter loses its queue entry if it dies, or sleeps for longer than the entry lasts: 4 s, on
/// stores that do not notify 2 s or more. It also loses the entry if it does not take its turn in
/// time: within 0.5 s (2 s on stores that see a death, 2.5 s on stores that do not notify). The
/// order of the others is unchanged. Shares names with mutex and recursive_mutex.
class fair_mutex : public mutex {
 public:
  /// As mutex, but errc::invalid_argument for the options of the local queue: linger, local_time,
  /// max_bypass, max_waiters.
  fair_mutex(session s, std::string name, lock_options options = {});
};

}  // namespace holdfast
