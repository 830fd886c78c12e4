#pragma once

#include <libpq-fe.h>

#include <holdfast/result.hpp>
#include <string_view>

namespace holdfast::store::postgres {

/// What a statement failed with. errc::busy: another session was faster, try again.
failure server_says(const PGresult* answer);

/// What a connection that is no more says.
failure connection_says(const PGconn* connection, std::string_view tried);

/// A server that only reads was found where one that takes writes was looked for. It is
/// errc::unavailable if the connection's list names several hosts: one of them is promoted soon.
failure only_reads_here(const PGconn* connection, std::string why);
/// A setting of a server says that it takes no writes.
failure takes_no_writes(std::string_view said);

/// The server says that it has undone what it was asked, and that the outcome is known.
bool proves_that_nothing_was_done(const PGresult* answer) noexcept;

/// The state is one after which the connection must not be used: the server ends it.
bool ends_connection(std::string_view sqlstate) noexcept;
std::string_view sqlstate_of(const PGresult* answer) noexcept;

}  // namespace holdfast::store::postgres
