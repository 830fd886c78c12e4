#pragma once

#include <cstddef>
#include <holdfast/error.hpp>
#include <string_view>

// The clients' own types, so that nobody needs both of their headers.
struct pg_conn;   // PGconn
struct st_mysql;  // MYSQL

/// Locks inside a transaction that the caller has begun, over the caller's connection. The locks
/// end with the transaction, so nothing has to be renewed or fenced. See docs/transaction_locks.md.
///
/// Each is one round trip, uses the connection as the caller's own statements do (one thread at a
/// time), and throws holdfast::error:
///   timed_out         the server's lock_timeout or innodb_lock_wait_timeout passed
///   deadlock          the server chose this transaction as the victim; MariaDB has rolled it back
///   busy              when_locked::refuse, and another session has it; at PostgreSQL also a
///                     serialization failure
///   invalid_argument  no transaction is open, an earlier statement of it failed, or the table or
///                     the condition is wrong
///   unavailable       the connection broke
/// After any of these, PostgreSQL accepts only a rollback of the transaction. On MariaDB the
/// transaction can continue after timed_out and busy. After deadlock MariaDB has rolled it back.
/// There, every failure with a rollback is reported as deadlock, also a changed snapshot (1020),
/// and a time-out under innodb_rollback_on_timeout. On MariaDB a failure costs one more round trip,
/// which asks whether there was a rollback.
namespace holdfast {

/// What to do about rows that another transaction has locked.
enum class when_locked {
  wait,
  refuse,  ///< NOWAIT: errc::busy
  skip,    ///< SKIP LOCKED: such rows are left out, and not counted
};

/// Locks the rows for update, and returns how many: `select 1 from TABLE where WHICH for update`.
/// Both go into the statement as they are: never pass a user's input.
std::size_t row_lock(pg_conn* connection, std::string_view table, std::string_view which,
                     when_locked how = when_locked::wait);
std::size_t row_lock(st_mysql* connection, std::string_view table, std::string_view which,
                     when_locked how = when_locked::wait);

/// The lock of that name until the end of the transaction (PostgreSQL only: MariaDB's GET_LOCK
/// belongs to the connection). It excludes holders in `?mode=session` of the same schema's name.
void transaction_lock(pg_conn* connection, std::string_view name,
                      std::string_view schema = "public");
/// False if another session holds the lock.
bool try_transaction_lock(pg_conn* connection, std::string_view name,
                          std::string_view schema = "public");

}  // namespace holdfast
