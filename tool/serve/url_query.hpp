#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::tool {

/// The value of `key` in `a=1&b=x%20y`, decoded; nothing if it is missing or malformed.
std::optional<std::string> query_value(std::string_view query, std::string_view key);

/// A number of seconds, not negative; nothing if it is something else.
std::optional<double> seconds_in(std::string_view text);

}  // namespace holdfast::tool
