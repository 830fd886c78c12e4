#pragma once

#include <string>
#include <string_view>

/// The manual, made from the grammar and its help, as source for scdoc(1).
namespace holdfast::tool {

/// Precondition: it is one of manual_pages().
std::string manual_source(std::string_view page);

}  // namespace holdfast::tool
