#pragma once

#include <holdfast/result.hpp>
#include <holdfast/store/state_store.hpp>
#include <memory>

#include "store/sqlite/options.hpp"

/// Locks in a SQLite file, for all processes of one machine. Documented in docs/stores/sqlite.md.
///
/// Reading order: store.cpp (one operation), schema.cpp (the tables), then the wake-ups:
/// writer_queue.hpp (of writers to the file), fifo_inbox.hpp (of waiters for a lock), peer.hpp
/// (which processes are alive).
namespace holdfast::store::sqlite {

/// Opens the file, creating it and its folder PATH-holdfast if necessary. Leaves a file of another
/// program, or of a newer format, unchanged. Errors: the failure table of the page.
result<std::unique_ptr<state_store>> open_sqlite(sqlite_options options);

}  // namespace holdfast::store::sqlite
