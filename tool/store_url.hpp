#pragma once

#include <span>
#include <string>
#include <string_view>

namespace holdfast::tool {

/// What others may read, in whatever folder they work: the URL without its secrets
/// (holdfast::without_secrets), a file by its full path.
std::string url_for_others(std::string_view url);

/// The part before the colon, in lower case: "redis+unix".
std::string scheme_of(std::string_view url);

/// Overwrites the secrets of URLs in the arguments, up to the first "--", where ps and
/// /proc/PID/cmdline show them. Call it when the arguments have been copied.
void blank_secrets(std::span<char* const> arguments);

/// Words of the command line in a message: no secrets of URLs, and not too long.
std::string quotable(std::string_view word);

}  // namespace holdfast::tool
