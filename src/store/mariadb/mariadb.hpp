#pragma once

#include <holdfast/store/state_store.hpp>
#include <holdfast/store/store.hpp>
#include <memory>

#include "store/mariadb/options.hpp"

/// MariaDB: one row a name, changed by single statements that replace the row that was read
/// (store/sql/row_store.hpp). It has no notifications: waiters poll, and a session notifies only
/// its own waiters, in the process. Documented in docs/stores/mariadb.md.
///
/// Reading order: sql/row_store.cpp (one operation), link.cpp (its statements), schema.cpp (the
/// tables).
namespace holdfast::store::mariadb {

/// Connects, and creates the tables if they are missing and the user has the right to. Errors: the
/// failure table of the page. Costs four round trips.
result<std::unique_ptr<state_store>> open_mariadb(mariadb_options options);

/// `mode=session`: GET_LOCK (user_lock.hpp, sql/session_locks.hpp), no tables. Costs four round
/// trips.
result<std::unique_ptr<session_store>> open_mariadb_session(mariadb_options options);

}  // namespace holdfast::store::mariadb
