#pragma once

#include <holdfast/store/state_store.hpp>
#include <holdfast/store/store.hpp>
#include <memory>

#include "store/postgres/options.hpp"

/// PostgreSQL: one row a name, changed by single statements that replace the row that was read
/// (store/sql/row_store.hpp), and LISTEN/NOTIFY. Documented in docs/stores/postgres.md.
///
/// Reading order: sql/row_store.cpp (one operation), link.cpp (its statements), wire.hpp (one
/// connection), schema.cpp (the tables), listener.hpp (the notifications).
namespace holdfast::store::postgres {

/// Connects, and creates the tables if they are missing and the user has the right to. Errors: the
/// failure table of the page. Costs three round trips, and the connection for notifications.
result<std::unique_ptr<state_store>> open_postgres(postgres_options options);

/// `mode=session`: advisory locks (advisory.hpp, sql/session_locks.hpp), no tables. Costs six round
/// trips.
result<std::unique_ptr<session_store>> open_postgres_session(postgres_options options);

}  // namespace holdfast::store::postgres
