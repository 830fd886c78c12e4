#pragma once

#include <holdfast/error.hpp>
#include <string_view>

namespace holdfast::store::redis {

/// What the server's error means for the caller, by its first word.
failure server_says(std::string_view error);

/// The answer is none that this command can have.
failure strange_answer(std::string_view what);

/// After it the connection is of no use: another address, another role or another login is needed.
bool ends_connection(std::string_view error) noexcept;

}  // namespace holdfast::store::redis
