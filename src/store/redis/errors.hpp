#pragma once

#include <holdfast/error.hpp>
#include <string_view>

namespace holdfast::store::redis {

/// Translates the server's error to a failure for the caller, by its first word.
failure server_says(std::string_view error);

/// The failure for an answer that this command cannot have.
failure strange_answer(std::string_view what);

/// True if the connection is useless after this error: another address, role, or login is needed.
bool ends_connection(std::string_view error) noexcept;

}  // namespace holdfast::store::redis
