#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::tool {

/// A URL that others may read, in whatever folder they work: without its secrets
/// (holdfast::without_secrets), a file by its full path. A database has one URL, but for its
/// options, whatever links lead to it.
std::string url_for_others(std::string_view url);

/// The store's URL for people: the same, of the URL in a `file:`.
std::string url_for_people(std::string_view url);

/// The file of an SQLite store; nothing for other stores, and for URLs that open() refuses.
std::optional<std::string> database_of(std::string_view url);

/// The part before the colon, in lower case: "redis+unix".
std::string scheme_of(std::string_view url);

/// Overwrites the secrets of URLs in the arguments, up to the first "--", where ps and
/// /proc/PID/cmdline show them. Call it when the arguments have been copied.
void blank_secrets(std::span<char* const> arguments);

/// A word of the command line for a message: without secrets of URLs, and not too long.
std::string quotable(std::string_view word);

}  // namespace holdfast::tool
