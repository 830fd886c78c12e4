#pragma once

#include <span>
#include <string>
#include <string_view>

namespace holdfast::tool {

/// The candidate that `word` most likely stands for; empty if none is close. A candidate that
/// begins with `word` counts as close.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// "; did you mean X?", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace holdfast::tool
