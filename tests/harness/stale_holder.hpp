#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace harness {

struct verdicts {
  bool successor = false;  ///< the new holder's write was accepted
  bool stale = false;      ///< the stopped process's write was accepted
};

/// A child acquires a lock of that store with a short lease, is stopped (SIGSTOP) until another
/// process has the lock and has written, continues, and writes. `write` is called in both
/// processes, each with its own fence; it makes its own connection. For a process that has no
/// threads yet.
verdicts write_after_a_pause(const std::string& url,
                             const std::function<bool(std::uint64_t fence)>& write);

}  // namespace harness
