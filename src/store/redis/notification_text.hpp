#pragma once

#include <holdfast/store/inbox.hpp>
#include <string_view>
#include <vector>

namespace holdfast::store::redis {

/// Reads `granted <owner> <fence> <expires_at> <key>`, or `passed <owner> <fence> <expires_at>
/// <secret> <key>`. Instead of one owner there may be several, separated by `+`, which all get the
/// same notification. Returns nothing for any other text.
std::vector<notification> parse_notifications(std::string_view text);

}  // namespace holdfast::store::redis
