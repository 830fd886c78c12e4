#pragma once

#include <holdfast/result.hpp>
#include <holdfast/store/state_store.hpp>
#include <memory>

#include "store/sqlite/options.hpp"

namespace holdfast::store::sqlite {

/// The file for a user who may read but not write it: an operation that would change a record is
/// refused (read_only), and nothing is created, not even beside the file. Each operation reads a
/// copy of the whole file. Detects processes that have died, as a store opened for writing does.
result<std::unique_ptr<state_store>> open_to_read(sqlite_options options);

}  // namespace holdfast::store::sqlite
