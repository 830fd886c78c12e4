#pragma once

#include <holdfast/session.hpp>
#include <string>

#include "tool/log.hpp"
#include "tool/options.hpp"

namespace holdfast::tool {

struct opened_store {
  holdfast::session session;
  std::string url;  ///< without a password, and good in every folder
};

/// The store of --store, else of $HOLDFAST_STORE, else the default one, which is told about once.
/// What happens to its leases goes to the log. Throws holdfast::error, failure_exit.
opened_store open_store(const common_options& how, log& to);

}  // namespace holdfast::tool
