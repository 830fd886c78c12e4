#pragma once

#include <holdfast/holdfast.hpp>
#include <string>

#include "harness/process.hpp"
#include "harness/resource.hpp"
#include "harness/temp_dir.hpp"

/// Processes that are killed and stopped while they hold and wait. Where only the observation of a
/// death can free the lock in time, a lease lasts a month here: then no test needs a clock to prove
/// it.
namespace fault_test {

inline constexpr std::chrono::milliseconds a_month = holdfast::max_lease;

/// A store and a resource of this test's own.
struct ground {
  harness::temp_dir dir;
  std::string url = "sqlite:" + dir.file("locks.db");
  std::string page = dir.file("resource");

  void await_waiters(const holdfast::session& s, const std::string& name, std::size_t n) const;
  /// Stops the child outside a transaction: a child that is stopped inside one keeps the file from
  /// all others, as docs/stores/sqlite.md says. Others see a change before the transaction has
  /// ended.
  void stop(harness::child& one) const;
};

}  // namespace fault_test
