#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace harness {

struct verdicts {
  bool successor = false;  ///< the write of the one who got the lock after the pause
  bool stale = false;      ///< the write of the one who was stopped, and goes on as if it held it
};

/// A child takes a lock of that store with a short lease, is stopped (SIGSTOP) until somebody else
/// has it and has written, goes on, and writes. `write` is called in both processes, each with its
/// own fence; it makes its own connection. For a process that has no threads yet.
verdicts write_after_a_pause(const std::string& url,
                             const std::function<bool(std::uint64_t fence)>& write);

}  // namespace harness
