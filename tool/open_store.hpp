#pragma once

#include <chrono>
#include <holdfast/session.hpp>

#include "tool/log.hpp"
#include "tool/options.hpp"

namespace holdfast::tool {

/// The store of --store, else of $HOLDFAST_STORE, else the default one, which is told about once.
/// What happens to its leases goes to the log. Throws holdfast::error, failure_exit.
session open_store(const common_options& how, log& to);

}  // namespace holdfast::tool
