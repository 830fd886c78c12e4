#pragma once

#include <holdfast/store/state_store.hpp>
#include <holdfast/store/store.hpp>
#include <memory>

#include "store/postgres/options.hpp"

/// PostgreSQL: a row a name, changed by single statements that replace what was read
/// (store/sql/row_store.hpp), and LISTEN/NOTIFY. docs/stores/postgres.md is its page.
///
/// Reading order: sql/row_store.cpp (one operation), link.cpp (its statements), wire.hpp (one
/// connection), schema.cpp (the tables), listener.hpp (what wakes people up).
namespace holdfast::store::postgres {

/// Connects, and makes the tables if they are not there and the user may. Errors: the failure table
/// of the page. Three round trips, and the connection for notifications.
result<std::unique_ptr<state_store>> open_postgres(postgres_options options);

/// `mode=session`: advisory locks (advisory.hpp, sql/session_locks.hpp). No tables. Six round
/// trips.
result<std::unique_ptr<session_store>> open_postgres_session(postgres_options options);

}  // namespace holdfast::store::postgres
