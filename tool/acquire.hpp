#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/lease.hpp>
#include <optional>
#include <stop_token>

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

}  // namespace holdfast::tool
