#pragma once

#include <holdfast/result.hpp>
#include <holdfast/store/state_store.hpp>
#include <memory>

#include "store/sqlite/options.hpp"

/// Locks in a SQLite file, for all processes of one machine. docs/stores/sqlite.md is its page.
///
/// Reading order: store.cpp (one operation), schema.cpp (the tables), then what wakes people up:
/// writer queue.hpp (at the file), fifo_inbox.hpp (at a lock), peer.hpp (who is alive).
namespace holdfast::store::sqlite {

/// Opens the file, making it and its folder PATH-holdfast if need be. A file that is not ours, or
/// of a newer format, is left as it is. Errors: the failure table of the page.
result<std::unique_ptr<state_store>> open_sqlite(sqlite_options options);

}  // namespace holdfast::store::sqlite
