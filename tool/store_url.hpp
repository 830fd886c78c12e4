#pragma once

#include <span>
#include <string>
#include <string_view>

namespace holdfast::tool {

/// Where the password of `scheme://user:password@host` stands in `url`; empty if there is none.
std::string_view password_in(std::string_view url) noexcept;

/// The URL with *** in place of the password.
std::string without_password(std::string_view url);

/// What a child may be told, in whatever folder it works: no password, a SQLite file by its full
/// path.
std::string url_for_others(std::string_view url);

/// Overwrites passwords in the arguments, up to the first "--", where ps and /proc/PID/cmdline show
/// them. Call it when the arguments have been copied. True if there was one.
bool blank_passwords(std::span<char* const> arguments) noexcept;

}  // namespace holdfast::tool
