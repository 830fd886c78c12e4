#pragma once

#include <holdfast/result.hpp>
#include <string_view>

namespace holdfast::store::mariadb {

/// What a call failed with. errc::busy: another session was faster, try again.
failure server_says(unsigned number, std::string_view said);

/// Nothing came for as long as is waited.
failure no_answer();

/// The same of a server that says it without being asked to write.
failure takes_no_writes(std::string_view said);

/// The server has undone what it was asked, or will when the connection ends: the outcome is known.
bool proves_that_nothing_was_done(unsigned number) noexcept;

/// After it the connection must not be used.
bool ends_connection(unsigned number) noexcept;

}  // namespace holdfast::store::mariadb
