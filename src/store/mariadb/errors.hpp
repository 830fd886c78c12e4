#pragma once

#include <holdfast/result.hpp>
#include <string_view>

namespace holdfast::store::mariadb {

/// The failure of a call. errc::busy: another session was faster, try again.
failure server_says(unsigned number, std::string_view said);

/// The failure when no answer came in time.
failure no_answer();

/// The failure of a server that reports read_only without a write.
failure takes_no_writes(std::string_view said);

/// True if the server has undone the request, or will when the connection ends: the outcome is
/// known.
bool proves_that_nothing_was_done(unsigned number) noexcept;

/// True if the connection must not be used after this error.
bool ends_connection(unsigned number) noexcept;

}  // namespace holdfast::store::mariadb
