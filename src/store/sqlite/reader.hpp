#pragma once

#include <holdfast/result.hpp>
#include <holdfast/store/state_store.hpp>
#include <memory>

#include "store/sqlite/options.hpp"

namespace holdfast::store::sqlite {

/// The file for a user who may read it and not write: what changes a record is refused (read_only),
/// and nothing is made, not beside the file either. Each operation reads a copy of the whole file.
/// It sees which processes have died, as a store that was opened to write does.
result<std::unique_ptr<state_store>> open_to_read(sqlite_options options);

}  // namespace holdfast::store::sqlite
