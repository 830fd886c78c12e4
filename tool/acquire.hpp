#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/lease.hpp>
#include <optional>
#include <stop_token>
#include <string>

#include "tool/log.hpp"
#include "tool/open_store.hpp"
#include "tool/options.hpp"

namespace holdfast::tool {

/// Acquires the lock that the options name, until the deadline of their wait. Returns nothing if
/// the lock was busy, or the stop was requested. An exclusive lock is acquired as the kind under
/// which the name is in use, so that `run LOCK` and `run LOCK -x` exclude each other. Throws
/// holdfast::error; failure_exit for a wait that could never end, because the surrounding run holds
/// the lock.
std::optional<lease> acquire(const opened_store& at, const take_options& t, boot_time deadline,
                             std::stop_token stop);

struct busy_news {
  std::string text;
  /// The store did not answer the query for the holder in time: do not close the session, which
  /// would wait for that answer.
  bool hangs = false;
};

/// Reports a lock that acquire() did not get: `deploy is busy · held by web-3 pid 812 for 42s`.
/// Queries the store for the holder only if `to` shows details, until `limit`, or for a moment if
/// that is shorter.
busy_news tell_busy(const session& s, const take_options& t, const log& to, boot_time limit);

}  // namespace holdfast::tool
