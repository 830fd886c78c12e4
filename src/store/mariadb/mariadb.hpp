#pragma once

#include <holdfast/store/state_store.hpp>
#include <holdfast/store/store.hpp>
#include <memory>

#include "store/mariadb/options.hpp"

/// MariaDB: a row a name, changed by single statements that replace what was read
/// (store/sql/row_store.hpp). It has no notifications: a waiter polls.
/// docs/stores/mariadb.md is its page.
///
/// Reading order: sql/row_store.cpp (one operation), link.cpp (its statements), schema.cpp (the
/// tables).
namespace holdfast::store::mariadb {

/// Connects, and makes the tables if they are not there and the user may. Errors: the failure table
/// of the page. Four round trips.
result<std::unique_ptr<state_store>> open_mariadb(mariadb_options options);

/// `mode=session`: GET_LOCK (user_lock.hpp, sql/session_locks.hpp). No tables. Four round trips.
result<std::unique_ptr<session_store>> open_mariadb_session(mariadb_options options);

}  // namespace holdfast::store::mariadb
