#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tool/listed_name.hpp"

namespace holdfast::tool {

/// The same of one name, which need not be in use: a round trip or two.
listed_name look_at(const session& s, const std::string& name);

/// Everything that the store knows of the names that match, in their order. One entry that cannot
/// be read does not hide the others: its error is its row. Where the store does not answer, it
/// throws holdfast::error. Costs a scan, and one or two round trips a name.
std::vector<listed_name> look_at_all(const session& s, std::string_view pattern);

}  // namespace holdfast::tool
