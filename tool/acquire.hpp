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

/// Takes the lock that the options name, until the deadline: that of their wait. Nothing if it was
/// busy, or the stop was asked for.
/// An exclusive lock is taken as the kind under which the name is in use, so that `run LOCK` and
/// `run LOCK -x` exclude each other. Throws holdfast::error; failure_exit for a wait that could
/// never end, because the run around this one holds the lock.
std::optional<lease> acquire(const opened_store& at, const take_options& t, boot_time deadline,
                             std::stop_token stop);

struct busy_news {
  std::string text;
  /// The store was asked who holds it, and did not answer in time: nobody should wait for that by
  /// closing the session.
  bool hangs = false;
};

/// For a lock that acquire() did not get: `deploy is busy · held by web-3 pid 812 for 42s`. The
/// store is asked for the holder only if `to` shows details, and until `limit`, or for a moment if
/// that is shorter.
busy_news tell_busy(const session& s, const take_options& t, const log& to, boot_time limit);

}  // namespace holdfast::tool
