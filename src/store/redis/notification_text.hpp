#pragma once

#include <holdfast/store/inbox.hpp>
#include <string_view>
#include <vector>

namespace holdfast::store::redis {

/// Reads `granted <owner> <fence> <expires_at> <key>`, or `passed <owner> <fence> <expires_at>
/// <secret> <key>`; instead of one owner several, with a `+` between them, who are told the same.
/// Empty if it is something else.
std::vector<notification> parse_notifications(std::string_view text);

}  // namespace holdfast::store::redis
