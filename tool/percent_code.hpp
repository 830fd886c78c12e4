#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::tool {

/// The text with %XX decoded; nothing if it is malformed.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace holdfast::tool
