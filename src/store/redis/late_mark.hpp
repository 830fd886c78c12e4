#pragma once

#include <string>
#include <string_view>

namespace holdfast::store::redis {

/// The key beside a key of a dialect that says until when what may be on its way is too late:
/// late.lua. It begins with the same prefix, which is what a user may write; and lies in the same
/// slot of a cluster, unless a brace in the key makes that impossible.
std::string late_mark(std::string_view prefix, std::string_view key, bool in_a_cluster);

}  // namespace holdfast::store::redis
