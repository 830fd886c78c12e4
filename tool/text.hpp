#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::tool {

/// Makes a text safe for a terminal: escapes control characters, direction overrides and broken
/// UTF-8.
std::string escaped(std::string_view text);

/// For text from a shared store: if anything is escaped, the whole is put in quotes.
std::string printable(std::string_view text);

/// The same document of JSON, safe for a terminal: the characters that escaped() escapes are
/// written as JSON's escapes.
std::string escaped_json(std::string_view document);

/// A message of the library without its signature, to be put after our own.
std::string_view unsigned_message(std::string_view text);

/// For messages of others, which may have several lines: a line's end, and the indentation of the
/// next line, become one space.
std::string one_line(std::string_view text);

/// `2024-05-01T12:30:00.250Z`
std::string rfc3339(std::chrono::system_clock::time_point t);

/// False for the epoch, which stands for an unknown time.
bool is_known(std::chrono::system_clock::time_point t) noexcept;

/// 1st, 2nd, 3rd, 4th, 11th, 21st
std::string ordinal(std::size_t n);

/// To the millisecond: for waits and holds.
double seconds_of(std::chrono::nanoseconds d);
/// With all digits: for round trips.
double exact_seconds(std::chrono::nanoseconds d);

/// Its columns on a terminal: two for a wide letter, none for a mark on the letter before.
std::size_t columns_of(std::string_view text);

/// At most `columns` columns, the last one an ellipsis if something was cut.
std::string shortened(const std::string& text, std::size_t columns);

/// Exactly `columns` columns: cut as by shortened(), or filled with blanks.
std::string padded(const std::string& text, std::size_t columns);

}  // namespace holdfast::tool
