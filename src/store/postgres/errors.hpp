#pragma once

#include <libpq-fe.h>

#include <holdfast/result.hpp>
#include <string_view>

namespace holdfast::store::postgres {

/// The failure of a statement. errc::busy: another session was faster, try again.
failure server_says(const PGresult* answer);

/// The failure of a broken connection.
failure connection_says(const PGconn* connection, std::string_view tried);

/// The failure when a read-only server was found where a writable one is needed. It is
/// errc::unavailable if the connection's list names several hosts, because one of them may be
/// promoted soon.
failure only_reads_here(const PGconn* connection, std::string why);
/// The failure when a setting of the server shows that it takes no writes.
failure takes_no_writes(std::string_view said);

/// True if the server's answer proves that the statement was undone, so that the outcome is known.
bool proves_that_nothing_was_done(const PGresult* answer) noexcept;

/// True if the connection must not be used after this state: the server ends it.
bool ends_connection(std::string_view sqlstate) noexcept;
std::string_view sqlstate_of(const PGresult* answer) noexcept;

}  // namespace holdfast::store::postgres
