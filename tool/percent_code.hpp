#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::tool {

/// %XX taken out; nothing if it is not well formed.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace holdfast::tool
