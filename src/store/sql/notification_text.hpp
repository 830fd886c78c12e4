#pragma once

#include <holdfast/store/command.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::store::sql {

/// A notification on its way between processes, one line:
///     hf1 granted OWNER FENCE EXPIRES_AT NAME   (or wanted, opened)
///     hf1 passed OWNER FENCE EXPIRES_AT SECRET NAME   (granted, with a secret)
/// Empty for one that cannot be sent so (a name with a line break, or longer than a pipe takes
/// whole): nobody gets it, and the waiter looks again by itself.
std::string encode(const notification& n);

/// The line without its end; nothing if it is not exactly what encode() makes. `peer` stays empty.
std::optional<notification> decode(std::string_view line);

}  // namespace holdfast::store::sql
